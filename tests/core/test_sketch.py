"""Sketches: which texts are alike, which chant, of which kind they are."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.core.sketch import (
    MAX_HASHES,
    Form,
    Sketch,
    chant,
    form_of,
    likeness,
    sketch,
)

PLAN = (
    "First I read the file that holds the settings, then I compare each value with the defaults, "
    "and at last I write down which of them were changed by hand and by whom."
)
CHINESE = "首先我需要查看配置文件的内容, 然后把每一项和默认值进行比较, 最后写下有哪些改动。"
UNSPACED = "首先我需要查看配置文件的内容然后把每一项和默认值进行比较最后写下有哪些改动"
words = st.lists(st.text("abcdefgh", min_size=1, max_size=6), min_size=12, max_size=60)


def made(text: str) -> Sketch:
    result = sketch(text)
    assert result is not None
    return result


def like(one: str, other: str) -> float:
    return likeness(made(one), made(other))


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_a_blank_text_has_no_sketch(text: str) -> None:
    assert sketch(text) is None


def test_a_text_without_spaces_is_compared_by_its_characters() -> None:
    assert like(UNSPACED, UNSPACED.replace("改动", "变动")) > 0.8
    assert like(UNSPACED, UNSPACED[::-1]) < 0.2


@given(st.text(max_size=6_000))
def test_a_text_is_like_itself_and_its_sketch_is_bounded(text: str) -> None:
    result = sketch(text)
    if result is None:
        assert not text.strip()
    else:
        assert likeness(result, result) == 1.0
        assert len(result.hashes) <= 4 * MAX_HASHES
        assert result.words >= 1


@given(words, words)
def test_likeness_is_a_share_and_has_no_direction(one: list[str], other: list[str]) -> None:
    there, back = like(" ".join(one), " ".join(other)), like(" ".join(other), " ".join(one))
    assert there == back
    assert 0.0 <= there <= 1.0


def test_it_is_the_share_of_equal_word_triples() -> None:
    text = [f"w{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(50)]
    other = [*text[:25], "zz", *text[25:]]
    one, two = ({tuple(t[i : i + 3]) for i in range(len(t) - 2)} for t in (text, other))
    assert like(" ".join(text), " ".join(other)) == pytest.approx(len(one & two) / len(one | two))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("I try it again (attempt 1)", "I try it again (attempt 2)", id="a count"),
        pytest.param(
            "Let me SEE what is there", "let me see  what\nis there", id="case and blanks"
        ),
    ],
)
def test_what_makes_no_difference(one: str, other: str) -> None:
    assert like(one, other) == 1.0


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        pytest.param(PLAN, PLAN + " Shall I go on?", 0.7, 0.99, id="one sentence more"),
        pytest.param(CHINESE, CHINESE + "是否继续?", 0.7, 0.99, id="one more without spaces"),
        pytest.param(PLAN, PLAN[::-1], 0.0, 0.0, id="other words"),
        pytest.param(CHINESE, "今天的天气很好, 我们可以一起去公园散步, 然后回家吃饭。", 0.0, 0.1,
                     id="other characters"),
        pytest.param('{"row": 1, "sum": 20}', '{"row": 2, "sum": 30}', 0.0, 0.5, id="data"),
    ],
)  # fmt: skip
def test_how_alike_two_texts_are(one: str, other: str, least: float, most: float) -> None:
    assert least <= like(one, other) <= most


def test_notes_on_the_next_of_many_steps_are_not_nearly_the_same() -> None:
    note = "Step {} of 9 is done, it was the {}. Shall I go on with the next of the steps?"
    assert 0.2 < like(note.format(3, "harbor"), note.format(4, "garden")) < 0.5
    assert like(note.format(3, "harbor"), note.format(3, "garden")) > 0.5


def test_of_a_very_long_text_both_ends_are_read() -> None:
    long = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}" for n in range(5_000))
    assert like(long, long[:-3_000] + PLAN * 20) < 0.9
    assert like(long, PLAN * 20 + long[3_000:]) < 0.9
    assert made(long).size == len(long)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (PLAN, Form.PROSE),
        ("Look (once more) at it", Form.PROSE),
        ('{"a": 1}', Form.DATA),
        ("[1, 2, 3]", Form.DATA),
        ("| a | b |\n| - | - |\n| 1 | 2 |", Form.DATA),
        ("a\tb\tc\n1\t2\t3", Form.DATA),
        ("Here it is:\n```\nx\n```", Form.CODE),
        ("if (a) { b = [1]; } else { c = {}; }", Form.CODE),
    ],
)
def test_the_kind_of_a_text(text: str, form: Form) -> None:
    assert form_of(text) is form


@given(
    st.text("abc \n", min_size=1, max_size=30).filter(lambda text: not text.isspace()),
    st.integers(4, 50),
)
def test_a_passage_again_and_again_up_to_the_end_is_a_chant(passage: str, copies: int) -> None:
    length, period = chant(passage * copies)
    if len(passage) * copies >= 60:
        assert length == min(len(passage) * copies, 8_000)
        assert length % period in range(period)
        assert passage * 2 == (passage * 2)[period:] + (passage * 2)[:period]
    else:
        assert (length, period) == (0, 0)


@pytest.mark.parametrize(
    ("text", "period"),
    [
        pytest.param(PLAN + "\n" + "yes, I agree\n" * 20, 13, id="after a start"),
        pytest.param("I will now write the section.\n" * 20 + "I will now wri", 30, id="cut off"),
        pytest.param("好的, 我马上开始处理这个文件。" * 9, 16, id="without spaces"),
        pytest.param("One.\n\nNo, two first.\n\nHold on, one.\n\n" * 6, 37,
                     id="three sentences in turn"),
        pytest.param(f"{PLAN} {PLAN.upper()} Then, of course, this is done once more. \n" * 5, 372,
                     id="whole paragraphs"),
    ],
)  # fmt: skip
def test_chants(text: str, period: int) -> None:
    assert chant(text)[1] == period


DOUBTS = (
    "Wait, the name of the key has to be checked once more",
    "I only draft the answer now",
    "Hold on, did I say that the file is new",
    "The summary should be short",
)
GERMAN = (
    "Moment, den Namen des Schl\u00fcssels muss ich noch einmal pr\u00fcfen",
    "Jetzt schreibe ich die Antwort",
    "Habe ich gesagt, dass die Datei neu ist",
)
JAPANESE = ("もう一度キーの名前を確認します", "いや、先にファイルを見ます", "では回答を書きます")


def at_random(sentences: tuple[str, ...], count: int, end: str = ". ", seed: int = 1) -> str:
    """Sentences in an order that never repeats."""
    return end.join(random.Random(seed).choices(sentences, k=count)) + end


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(at_random(DOUBTS, 90), id="four sentences in whatever order"),
        pytest.param(at_random(DOUBTS, 90, "\n\n"), id="each a paragraph"),
        pytest.param(at_random(DOUBTS[:2], 60), id="two sentences"),
        pytest.param(at_random((*DOUBTS, "Hm"), 120), id="with an interjection"),
        pytest.param(PLAN * 9 + at_random(DOUBTS, 60), id="after a start"),
        pytest.param(at_random(DOUBTS, 90)[:-9], id="cut off"),
        pytest.param(at_random(GERMAN, 90), id="German"),
        pytest.param(at_random(JAPANESE, 150, "\u3002"), id="Japanese"),
        pytest.param(at_random(DOUBTS + GERMAN, 150), id="seven sentences"),
    ],
)  # fmt: skip
def test_a_text_that_goes_round(text: str) -> None:
    length, passage = chant(text)
    assert 600 <= length <= 1_800
    assert passage * 4 <= length


SONG = " ".join(f"{one}ing {other}ed" for one in "bcdfghjklmnp" for other in "bcdfghjklmnp")
AGAIN = "Hmm, the flag is only set there, so the other branch is taken.\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(AGAIN * 40 + "So it is the linker.", True, id="it found an end"),
        pytest.param(AGAIN * 40 + PLAN, True, id="it found an end of some length"),
        pytest.param("等等, 我再看一遍。" * 160 + CHINESE, True, id="Chinese"),
        pytest.param(AGAIN * 14 + PLAN, False, id="not for long"),
        pytest.param((AGAIN + PLAN * 2) * 9 + CHINESE, False, id="a few times"),
        pytest.param(AGAIN * 40 + SONG, False, id="and much came after it"),
        pytest.param("| a | b |\n" * 300 + PLAN, False, id="a table"),
    ],
)  # fmt: skip
def test_a_chant_that_came_to_an_end(text: str, *, told: bool) -> None:
    length, passage = chant(text)
    assert (length > 0) == told
    assert length <= 1_800
    assert passage * 10 <= length


def hanoi(disks: int, start: str = "A", over: str = "B", to: str = "C") -> list[str]:
    """The moves that bring a tower from one peg to another."""
    if not disks:
        return []
    move = f"Move disk {disks} from peg {start} to peg {to}"
    return [*hanoi(disks - 1, start, to, over), move, *hanoi(disks - 1, over, start, to)]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(at_random(DOUBTS, 12), id="not for long"),
        pytest.param(at_random(DOUBTS, 90) + "All right, here it is: the file is new, that is all",
                     id="it ended"),
        pytest.param(at_random(("positive", "negative", "no opinion"), 300, "\n"), id="labels"),
        pytest.param(at_random(tuple(f"- {each}" for each in DOUBTS), 90, "\n"), id="items"),
        pytest.param(at_random(tuple(f"{each} |" for each in DOUBTS), 90, "\n"), id="rows"),
        pytest.param(at_random(tuple(f"f(x) = [y]; // {e}" for e in DOUBTS), 90, "\n"), id="code"),
        pytest.param(". ".join(f"{DOUBTS[n % 3]}{', no. ' * (n % 9 == 5)}{n * (n % 9 == 5) or ''}"
                               for n in range(90)), id="something new now and then"),
        pytest.param("\n".join(hanoi(6)), id="moves of a game"),
    ],
)  # fmt: skip
def test_what_does_not_go_round(text: str) -> None:
    assert chant(text) == (0, 0)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param(PLAN, id="prose"),
        pytest.param("Thank you, thank you, thank you!", id="three times"),
        pytest.param("=" * 900, id="a divider"),
        pytest.param("| --- | --- | --- |\n" * 40, id="an empty table"),
        pytest.param("| none | none |\n" * 40, id="equal rows of a table"),
        pytest.param("0, 0, 0, 0, 0, 0, 0, 0, " * 40, id="numbers"),
        pytest.param("".join(f"- item {n} is done\n" for n in range(80)), id="rows that differ"),
        pytest.param(SONG + "Over and over, we sing.\n" * 4, id="a refrain of a long song"),
        pytest.param("I try again.\n" * 20 + "Done, the file is written.", id="it ended"),
    ],
)
def test_what_is_no_chant(text: str) -> None:
    assert chant(text) == (0, 0)


def test_of_a_long_text_the_length_has_to_be_the_same_too() -> None:
    long = " ".join(f"w{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(200))
    assert like(long, long.upper()) == 1.0
    assert like(long + " 8 of them", long + " 12 of them") < 1.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Now reading the file auth.py again", "Now reading the file main.py again"),
        ("Copied 100 of 900 rows so far", "Copied 200 of 900 rows so far"),
        ("The upload is at 37 percent", "The upload is at 41 percent"),
        ("A short one", PLAN + PLAN),
    ],
)
def test_the_next_of_many_things_is_another_text(one: str, other: str) -> None:
    assert like(one, other) == 0.0
