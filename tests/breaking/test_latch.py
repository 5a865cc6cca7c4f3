"""The latch on states that go back and forth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from otel_loopguard.breaking.latch import StateLatch

VALUES = st.sampled_from("abcd")


def test_setting_and_undoing_is_held_after_two_returns() -> None:
    latch = StateLatch[str]()
    assert [latch.set("flag", value) for value in "ababa"] == [True] * 4 + [False]
    assert latch.set("flag", "b"), "it is that already"
    assert latch.set("flag", "c"), "a value that it never had is progress"
    assert latch.allows("other", "a")


def test_states_that_only_go_forward_are_never_held() -> None:
    latch = StateLatch[int]()
    assert all(latch.set("page", number) for number in range(100))


def test_setting_the_same_value_again_is_no_change() -> None:
    latch = StateLatch[str](returns=0)
    assert all(latch.set("flag", "a") for _ in range(10))


def test_a_released_state_is_free_again() -> None:
    latch = StateLatch[str](returns=0)
    latch.set("flag", "a")
    latch.set("flag", "b")
    assert not latch.set("flag", "a")
    latch.release("flag")
    assert latch.set("flag", "a")


class Machine(RuleBasedStateMachine):
    """Any order of sets; beside it the plain rule over the whole history."""

    def __init__(self) -> None:
        super().__init__()
        self.latch = StateLatch[str](returns=2)
        self.history: list[str] = []
        self.returned = 0

    @rule(value=VALUES)
    def set(self, value: str) -> None:
        last = self.history[-1] if self.history else None
        goes_back = value != last and value in self.history
        allowed = not (goes_back and self.returned >= 2)
        assert self.latch.allows("x", value) == allowed
        assert self.latch.set("x", value) == allowed
        if not allowed or value == last:
            return
        self.returned = self.returned + 1 if goes_back else 0
        self.history.append(value)

    @rule()
    def release(self) -> None:
        self.latch.release("x")
        self.history, self.returned = [], 0

    @rule(value=VALUES)
    def ask(self, value: str) -> None:
        """To ask whether it may be set is not to set it."""
        first = self.latch.allows("x", value)
        assert self.latch.allows("x", value) == first

    @rule(value=VALUES)
    def set_another(self, value: str) -> None:
        self.latch.set("y", value)


TestMachine = Machine.TestCase


@given(st.lists(st.tuples(st.integers(0, 400), st.integers()), max_size=600))
def test_it_remembers_a_bounded_number_of_states_and_values(sets: list[tuple[int, int]]) -> None:
    latch = StateLatch[int](max_states=8)
    for name, value in sets:
        latch.set(str(name), value)
    assert len(latch) <= 8


@pytest.mark.parametrize("odd", [{"returns": -1}, {"max_states": 0}])
def test_odd_numbers_are_refused(odd: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="are needed"):
        StateLatch(**odd)
