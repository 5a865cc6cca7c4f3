"""reflection_paralysis: who only talks, and the neighbours that are left alone."""

from __future__ import annotations

import random

import pytest

from otel_loopguard.core.model import MISSING, Kind, Sighting
from tests.core.steps import SECOND, START, Spoken, call, failure, make_guard, observe, seen
from tests.core.steps import utterances as all_utterances

PROMISE = "I will now look for the file and report what it says."
LONG = (
    "To change the booking I need the number of your reservation and your name. Please tell me "
    "both, and I will look for another flight on the same day at no further cost."
)
NAME = "reflection_paralysis"


def says(text: object = PROMISE, **more: object) -> Sighting:
    """A turn of a model."""
    return seen(Kind.MODEL, result=text, **more)


def user(text: str = "Go on.") -> Sighting:
    return seen(Kind.USER, result=text)


def spoken(*steps: Sighting) -> list[Spoken]:
    """What was said of texts."""
    return [each for each in all_utterances(steps) if each[1] == NAME]


def test_the_same_again_with_nothing_done() -> None:
    assert spoken(*[says()] * 9) == [(3, NAME, "warning"), (5, NAME, "critical")]


def test_the_same_but_for_a_number() -> None:
    assert spoken(*[says(f"Let me think about it ({n})") for n in range(3)]) == [
        (3, NAME, "warning")
    ]


def test_nearly_the_same_needs_one_more() -> None:
    ends = ("", " Shall I go on?", " Please confirm.", " Let me know.", " Agreed?", " Fine?")
    assert spoken(*[says(LONG + end) for end in ends])[0] == (4, NAME, "warning")


def test_in_a_language_without_spaces() -> None:
    text = "我现在去查看这个文件, 然后告诉你里面写了什么内容。"
    assert spoken(*[says(text)] * 3) == [(3, NAME, "warning")]


def test_it_tells_where_the_loop_began_and_what_it_wasted() -> None:
    steps = [
        says("Something else entirely, to begin with.", span=(1, 1), tokens=10, end_ns=START),
        *(says(span=(1, n), tokens=100, end_ns=START + n * SECOND) for n in (2, 3, 4)),
    ]
    found = [u.finding for each in observe(steps) for u in each.utterances]
    assert [(each.first_span, each.repeats, each.wasted_calls) for each in found] == [
        ((1, 2), 3, 2)
    ]
    assert (found[0].wasted_tokens, found[0].wasted_seconds) == (200, 2.0)
    assert PROMISE not in found[0].evidence


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([says()] * 2, id="twice"),
        pytest.param([says(MISSING)] * 9, id="texts not captured"),
        pytest.param([says("yes")] * 9, id="labels"),
        pytest.param([says(f'{{"verdict": "relevant", "row": {n}}}') for n in range(9)],
                     id="structured answers that differ"),
        pytest.param([says(f"The {w} is in the {w} of the {w}, near the old {w}.") for w in
                      ("key", "hat", "cup", "map", "pen", "box")], id="one template, other words"),
        pytest.param([says(f"Copied {n} of 900 rows so far, going on") for n in range(0, 900, 90)],
                     id="numbers that move on"),
        pytest.param([says(f"{w} is the next one on my long list") for w in "abcdefgh"],
                     id="one word is another"),
        pytest.param([step for n in range(9) for step in (says(), call(args=n, result=f"row {n}"))],
                     id="calls between bring something new"),
        pytest.param([step for n in range(9) for step in (says(), call("read", str(n), MISSING))],
                     id="the results between are unknown"),
        pytest.param([step for _ in range(3) for step in (says(), user())], id="the user spoke"),
        pytest.param([says(error="RateLimitError")] * 9, id="failed calls of the model"),
        pytest.param([says(acts=True)] * 9, id="each asks for a tool that nobody shows"),
        pytest.param([says(agent=f"sub-{n}") for n in range(9)], id="each by another agent"),
        pytest.param([says(start_ns=START + n, end_ns=START + SECOND) for n in range(9)],
                     id="branches side by side"),
        pytest.param([says(tokens=900 - n, output_tokens=20) for n in range(9)],
                     id="each read less than the one before"),
    ],
)  # fmt: skip
def test_equal_texts_that_are_no_loop(steps: list[Sighting]) -> None:
    assert spoken(*steps) == []


def test_calls_between_that_bring_nothing_weigh_half() -> None:
    steps = [step for _ in range(6) for step in (says(), failure(text="no such file"))]
    assert spoken(*steps)[0] == (9, NAME, "warning")


def test_two_agents_who_agree_in_turn() -> None:
    texts = (
        "I agree, let us proceed.",
        "Thank you! I agree as well.",
        "Sounds good, let us go ahead.",
        "Great, thank you, we are proceeding.",
    )
    steps = [says(texts[n % 4], agent="ab"[n % 2]) for n in range(12)]
    assert spoken(*steps) == [(9, NAME, "warning")]


CLOSING = (
    "The report is finished, all of its tables are filled in and nothing at all is left to do.",
    "There is nothing left to do here, since each chapter has been written and proof-read by now.",
    "Once more: this job is over, the files are in place, and I have no further step to take.",
)
PARTLY = "The report is finished, all of its tables are filled in, and no step is missing any more."


def in_turn(*texts: str, agents: str = "a") -> list[Sighting]:
    return [says(text, agent=agents[n % len(agents)]) for n, text in enumerate(texts)]


def test_a_few_texts_in_whatever_order() -> None:
    one, two, three = CLOSING
    assert spoken(*in_turn(one, two, one, three, two, three, one)) == [(7, NAME, "warning")]
    assert spoken(*in_turn("Zur Sache.", one, two, one, two, one)) == [(6, NAME, "warning")]
    assert spoken(*in_turn(*(text[:24] for text in (one, two) * 4)))[0] == (7, NAME, "warning")


def test_what_was_said_in_part_is_not_new() -> None:
    one, two, three = CLOSING
    steps = in_turn(one, two, one, PARTLY, two, one)
    assert spoken(*steps) == [(6, NAME, "warning")]
    steps[3] = says(three, agent="a")
    assert spoken(*steps) == []


@pytest.mark.parametrize("agents", ["a", "ab"])
def test_who_says_something_new_in_between_gets_on(agents: str) -> None:
    texts: list[str] = []
    for n in range(9):
        texts += [CLOSING[0], " ".join(f"{word}{'xyz'[n % 3] * n}" for word in CLOSING[1].split())]
    assert spoken(*in_turn(*texts, agents=agents)) == []


def test_a_dialogue_that_says_new_things_is_none() -> None:
    steps = [
        step
        for n in range(12)
        for step in (
            says(PROMISE, agent="a"),
            says(f"{'xyz'[n % 3] * n} is next on my list", agent="b"),
        )
    ]
    assert spoken(*steps) == []


# -- silence and reflection -----------------------------------------------------------------------


def test_turns_without_a_word() -> None:
    assert spoken(says("The draft is ready."), *[says("")] * 6) == [
        (4, NAME, "warning"),
        (6, NAME, "critical"),
    ]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([step for n in range(9) for step in (says(""), call(args=n, result=f"{n}"))],
                     id="each calls a tool"),
        pytest.param([says("", acts=True)] * 9, id="each asks for a tool"),
        pytest.param([says("", agent=f"sub-{n}") for n in range(9)], id="each of another agent"),
        pytest.param([says("", error="Timeout")] * 9, id="failed"),
    ],
)  # fmt: skip
def test_silence_that_is_none(steps: list[Sighting]) -> None:
    assert spoken(*steps) == []


def thinks(n: int, text: str = "Hm.", **more: object) -> Sighting:
    thought = " ".join("abcdefghijk"[n] * length for length in range(1, 25))
    return says(text, thought=thought, **more)


def tells(n: int) -> str:
    return f"It is a {'uvwxyz'[n] * 9} of {'uvwxyz'[n] * 5} now."


def test_thinking_without_acting() -> None:
    assert spoken(*map(thinks, range(4))) == [(3, NAME, "warning")]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([thinks(n, acts=True) for n in range(9)], id="each asks for a tool"),
        pytest.param([thinks(n, f"{'uvwxyzabc'[n] * 4} " + " ".join("qrstuvwxy"[n] * k for k in
                      range(1, 40))) for n in range(9)], id="each gives an answer of some length"),
        pytest.param([step for n in range(9) for step in (thinks(n), call(args=n, result=f"{n}"))],
                     id="a call after each"),
        pytest.param([says("Quite short.", thought="Well.")] * 2, id="twice"),
        pytest.param([thinks(n, tells(n)) for n in range(5)], id="each says something else"),
    ],
)  # fmt: skip
def test_thinking_that_is_fine(steps: list[Sighting]) -> None:
    assert spoken(*steps) == []


def test_thinking_and_saying_something_else_each_time_takes_longer() -> None:
    assert spoken(*[thinks(n, tells(n)) for n in range(6)]) == [(6, NAME, "warning")]


def test_different_thoughts_are_neither_silence_nor_paralysis() -> None:
    thoughts = [each._replace(result=MISSING) for each in map(thinks, range(6))]
    assert spoken(*thoughts) == []


def test_a_turn_that_only_thinks_is_not_silent() -> None:
    assert spoken(*[thinks(n, "") for n in range(9)]) == []
    assert spoken(*[thinks(n % 11, "") for n in range(16)])[0] == (12, NAME, "warning")
    assert spoken(*[thinks(1, "") for n in range(4)])[0] == (3, NAME, "warning")


def test_a_thought_stands_for_the_text_that_is_missing() -> None:
    assert spoken(*[says(MISSING, thought=PROMISE)] * 3) == [(3, NAME, "warning")]


# -- dialogues ------------------------------------------------------------------------------------


def test_the_same_short_answer_to_whatever_the_user_says_needs_more() -> None:
    same = "I am sorry, I cannot do that."
    steps = [step for n in range(7) for step in (user(f"Question {n}"), says(same))]
    assert spoken(*steps) == [(12, NAME, "warning")]


def test_the_same_long_answer_to_whatever_the_user_says() -> None:
    steps = [step for n in range(5) for step in (user(f"Question {n}"), says(LONG))]
    assert spoken(*steps) == [(8, NAME, "warning")]


def test_a_few_answers_in_turn_to_whatever_the_user_says() -> None:
    order = [0, 1, 0, 2, 1, 2, 0, 2, 1]
    steps = [step for n in order for step in (user("Go on, it is not done."), says(CLOSING[n]))]
    assert spoken(*steps) == [(14, NAME, "warning")]
    steps[13] = says("I see: the fourth table of the second chapter lacks its sums, so I add them.")
    assert spoken(*steps) == []
    steps[13] = call("write", 4, "ok")
    assert spoken(*steps) == []


def test_answers_to_who_comes_back_after_a_while_count_less() -> None:
    def rounds(count: int, pause: int) -> list[Sighting]:
        steps: list[Sighting] = []
        for n in range(count):
            at = START + n * (pause + 2) * SECOND
            asked = user()._replace(start_ns=at, end_ns=at)
            steps += [asked, says(LONG, start_ns=at + SECOND, end_ns=at + 2 * SECOND)]
        return steps

    assert spoken(*rounds(9, 5))[0] == (8, NAME, "warning")
    assert spoken(*rounds(9, 600)) == []


def test_steps_of_a_plan_that_the_user_agrees_to_one_by_one() -> None:
    note = "Step {} of 9 is done: the {} is in its place. Shall I go on with the next of them?"
    names = ("door", "roof", "wall", "lamp", "desk", "rug", "bed", "sink", "oven")
    steps = [
        step for n, each in enumerate(names) for step in (user("Yes."), says(note.format(n, each)))
    ]
    assert spoken(*steps) == []


def test_pages_that_are_shown_again_are_not_what_somebody_says() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    pages = [" ".join(f"{n}{a}{b}" for a in letters for b in letters) for n in "xyz"]
    steps = in_turn(*(pages[n] for n in (0, 1, 2, 0, 0, 2, 1)))
    assert spoken(*steps) == []
    short = in_turn(*(pages[n][:300] for n in (0, 1, 2, 0, 0, 2, 1)))
    assert spoken(*short) == [(6, NAME, "warning")]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([step for _ in range(9) for step in (user(), says("It is positive."))],
                     id="short answers"),
        pytest.param([step for n in range(9) for step in (user(), call(args=n, result=f"row {n}"),
                                                          says(LONG))], id="after a call each"),
        pytest.param([step for n in range(9) for step in (user(), says(LONG, agent="ab"[n % 2]))],
                     id="of two agents"),
    ],
)  # fmt: skip
def test_equal_answers_that_are_fine(steps: list[Sighting]) -> None:
    assert spoken(*steps) == []


# -- one text -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "severity"),
    [("ny" * 40, "warning"), ("yes agree\n" * 60, "warning"), ("yes agree\n" * 400, "critical")],
)
def test_a_chant(text: str, severity: str) -> None:
    assert spoken(says(text)) == [(1, NAME, severity)]


def test_a_text_that_goes_round_is_never_critical() -> None:
    sentences = ("I check the list of names once more", "Now the answer", "Wait, the list first")
    text = ". ".join(random.Random(1).choices(sentences, k=300))
    assert spoken(says("", thought=text)) == [(1, NAME, "warning")]


def test_a_chant_in_the_reasoning() -> None:
    assert spoken(says("So.", thought="Wait, once more. " * 30)) == [(1, NAME, "warning")]


# -- commands that only print ---------------------------------------------------------------------


def prints(text: str, command: str = "echo '{}'") -> Sighting:
    return Sighting(Kind.TOOL, "bash", args={"command": command.format(text)}, result=text)


def test_a_command_that_only_prints_is_talk() -> None:
    steps = [prints(f"Sending notice {n} to the whole group now") for n in range(4)]
    assert spoken(*steps) == [(3, NAME, "warning")]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([prints(f"Row {n} of the table is stored", "{}") for n in range(9)],
                     id="notes that are acknowledged by what they say"),
        pytest.param([prints(f"Row {n} of the table is stored", "store --in table --as '{}'")
                      for n in range(9)], id="a command that does more"),
        pytest.param([step for n in range(9) for step in (prints("Step done, on to the next one"),
                                                          call(args=n, result=f"row {n}"))],
                     id="real calls between"),
        pytest.param([Sighting(Kind.TOOL, "bash", args="echo", result="a b c d")] * 2, id="text"),
    ],
)  # fmt: skip
def test_commands_that_do_something(steps: list[Sighting]) -> None:
    assert spoken(*steps) == []


def test_a_condensed_run_remembers_its_newest_text() -> None:
    guard = make_guard(max_runs=2)
    for _ in range(2):
        guard.observe("run", says())
    for other in "abc":
        guard.observe(other, says("Nothing of the sort is said here."))
    assert guard.observe("run", says()) is not None
