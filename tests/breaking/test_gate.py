"""The gate before a run: what points at nothing is asked about, not searched for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from otel_loopguard.breaking.gate import unresolved

FRESH = [
    ("Please delete that file.", "that file"),
    ("Take the second one", "the second one"),
    ("Run the same query again", "the same query"),
    ("Lösche diese Datei", "diese Datei"),
    ("Supprime ce fichier", "ce fichier"),
    ("Borra este archivo", "este archivo"),
    ("删除那个文件", "那个文件"),
    ("その件を消して", "その件"),
]


@pytest.mark.parametrize(("message", "words"), FRESH)
def test_a_pointer_without_any_history_is_unresolved(message: str, words: str) -> None:
    found = unresolved(message)
    assert found is not None
    assert found.words == words
    assert message[found.start :].startswith(words)


@pytest.mark.parametrize(
    ("message", "history"),
    [
        ("Please delete that file.", ["I found the file notes.txt"]),
        ("Delete those files", ["There is one file: a.txt"]),
        ("Take the second one", ["1. Hotel Adler\n2. Hotel Krone"]),
        ("Take the second one", ["There is the Adler and the Krone."]),
        ("Lösche diese Datei", ["Die Datei notes.txt ist alt."]),
        ("删除那个文件", ["我找到了那个文件"]),
    ],
)
def test_what_the_history_holds_is_resolved(message: str, history: list[str]) -> None:
    assert unresolved(message, history) is None


@pytest.mark.parametrize(
    "message",
    [
        "What is the capital of France?",
        "Book a table this week",
        "I have the files a.txt and b.txt. Delete those files.",
        "Compare red, green and blue and explain the second one",
        "That is good news, go on with the report",
        "",
    ],
)
def test_what_needs_no_history_passes(message: str) -> None:
    assert unresolved(message) is None


def test_an_item_beyond_the_end_of_the_list_is_unresolved() -> None:
    assert unresolved("Take the third one", ["- Adler\n- Krone"]) is not None


def test_a_model_may_find_what_words_did_not_and_is_asked_only_then() -> None:
    asked: list[str] = []

    def judge(message: str, history: object) -> bool:
        asked.append(message)
        return "photo" in str(history)

    assert unresolved("Delete that picture", ["Here is your photo"], judge=judge) is None
    assert unresolved("Delete that picture", ["Hello"], judge=judge) is not None
    assert unresolved("Good morning", judge=judge) is None
    assert len(asked) == 2


@given(st.text(), st.lists(st.text(), max_size=4))
def test_any_text_is_read(message: str, history: list[str]) -> None:
    found = unresolved(message, history)
    assert found is None or found.words in message


NOUNS = ("file", "invoice", "ticket", "picture", "contract")


class Machine(RuleBasedStateMachine):
    """A conversation that names things and lists them, and users who point at some."""

    def __init__(self) -> None:
        super().__init__()
        self.history: list[str] = []
        self.named: set[str] = set()
        self.listed = 0

    @rule(
        noun=st.sampled_from(NOUNS), way=st.sampled_from(["I see a {}.", "{}s are here", "The {}"])
    )
    def name(self, noun: str, way: str) -> None:
        self.history.append(way.format(noun))
        self.named.add(noun)

    @rule(count=st.integers(1, 4), mark=st.sampled_from(["- ", "* ", "{}. ", "({}) "]))
    def list(self, count: int, mark: str) -> None:
        lines = (mark.format(n + 1) + f"Hotel {n}" for n in range(count))
        self.history.append("\n".join(lines))
        self.listed += count

    @rule(text=st.sampled_from(["Good morning.", "Thank you!", "It is nine."]))
    def chat(self, text: str) -> None:
        self.history.append(text)

    @rule()
    def forget(self) -> None:
        self.history, self.named, self.listed = [], set(), 0

    @rule(noun=st.sampled_from(NOUNS), word=st.sampled_from(["that", "this", "the same"]))
    def point(self, noun: str, word: str) -> None:
        found = unresolved(f"Delete {word} {noun}", self.history)
        assert (found is None) == (noun in self.named)

    @rule(ordinal=st.sampled_from([(1, "first"), (2, "second"), (3, "third"), (4, "fourth")]))
    def pick(self, ordinal: tuple[int, str]) -> None:
        number, word = ordinal
        found = unresolved(f"Take the {word} one", self.history)
        if self.listed:
            assert (found is None) == (self.listed >= number)
        elif not self.history:
            assert found is not None

    @rule(answer=st.sampled_from([True, False, None]), noun=st.sampled_from(NOUNS))
    def ask_a_model(self, answer: bool | None, noun: str) -> None:
        """A model is asked only where something is missing, and only its yes helps."""
        asked: list[str] = []

        def judge(message: str, _: object) -> bool | None:
            asked.append(message)
            return answer

        found = unresolved(f"Send that {noun}", self.history, judge=judge)
        missing = noun not in self.named
        assert len(asked) == missing
        assert (found is not None) == (missing and answer is not True)

    @rule(noun=st.sampled_from(NOUNS))
    def a_model_that_fails_is_the_application_s(self, noun: str) -> None:
        def judge(_: str, __: object) -> bool:
            raise TimeoutError

        if noun in self.named:
            assert unresolved(f"Send that {noun}", self.history, judge=judge) is None
        else:
            with pytest.raises(TimeoutError):
                unresolved(f"Send that {noun}", self.history, judge=judge)


TestMachine = Machine.TestCase
