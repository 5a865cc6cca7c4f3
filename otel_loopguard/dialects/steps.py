"""Step files: one JSON object a line, with an `id` and the `steps` of one case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from otel_loopguard.core.model import MISSING, Kind, Sighting, Source
from otel_loopguard.core.tasks import names, values_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MALFORMED: Final = (AttributeError, KeyError, OverflowError, TypeError, ValueError)
"""What a step that is not of the format raises."""


def sightings(case: Mapping[str, object], number: int) -> Iterator[tuple[str, Sighting]]:
    """The steps of one case, each with the run that it belongs to.

    Args:
        case: one line of the file.
        number: which case it is; together with the step's number (from 1 on) it stands for a span.

    Raises:
        ValueError: a step is not of the format; says which and why.
    """
    clock, lineage = 0, _Lineage()
    steps = cast("list[Mapping[str, object]]", case["steps"])
    for index, step in enumerate(cast("list[object]", steps), 1):
        if not isinstance(step, dict):
            raise ValueError(f"step {index}: {type(step).__name__} instead of an object")  # noqa: TRY004 - for callers it is one thing
    for index, step in _whole(steps):
        try:
            start = _start(step, clock)
            clock = start + _nanoseconds(step.get("duration_s"))
            run = str(step.get("run") or "")
            seen = _sighting(step, (number, index), start, clock)
            yield run, seen._replace(parent=lineage.parent(run, seen))
        except _MALFORMED as fault:  # noqa: PERF203 - names the step
            raise ValueError(f"step {index}: {type(fault).__name__}: {fault}") from None


class _Lineage:
    """Which run is nested in which: one that an agent opens whom the call before has named."""

    def __init__(self) -> None:
        self._parents: dict[str, str | None] = {}
        self._call: tuple[str, Sighting] | None = None

    def parent(self, run: str, seen: Sighting) -> str | None:
        """The run that the run of a step is nested in."""
        if run not in self._parents:
            self._parents[run] = self._opener(seen.agent)
        if seen.kind is Kind.TOOL:
            self._call = (run, seen)
        return self._parents[run]

    def _opener(self, agent: str | None) -> str | None:
        if self._call is None or agent is None:
            return None
        run, call = self._call
        is_named = call.agent != agent and names(agent, call.action, values_of(call.args))
        return run if is_named else None


def _sighting(
    step: Mapping[str, object], where: tuple[int, int], start_ns: int, end_ns: int
) -> Sighting:
    kind = Kind(step["kind"])
    usage = cast("Mapping[str, int]", step.get("usage") or {})
    finish = step.get("finish_reason") or step.get("finish")
    result, error = _captured(step, "result"), step.get("error")
    thought = _captured(step, "thought")
    if kind is Kind.MODEL:
        result = _captured(step, "text")
        if thought is True:  # all of it is; what is said after it is not known yet
            result, thought = MISSING, result
        elif "text" not in step and thought is not MISSING:
            result = ""
    elif error and result is MISSING:
        result = error
    named = step.get("tool") or step.get("target") or step.get("agent") or kind.value
    return Sighting(
        kind,
        str(named),
        Source.FILE,
        args=_captured(step, "args" if kind is Kind.TOOL else "text"),
        result=result,
        error="error" if error else None,
        round=_text(step, "round"),
        agent=_text(step, "agent"),
        start_ns=start_ns,
        end_ns=end_ns,
        tokens=_count(usage, "input") + _count(usage, "output") or _count(step, "tokens_before"),
        span=where,
        thought=thought,
        finish=None if finish is None else str(finish),
        output_tokens=_count(usage, "output") or _count(step, "tokens_after"),
    )


def _whole(steps: list[Mapping[str, object]]) -> Iterator[tuple[int, Mapping[str, object]]]:
    """The steps with their numbers; the pieces of a streamed text as one, numbered as the last."""
    pieces: list[str] = []
    for index, step in enumerate(steps, 1):
        if not step.get("chunk"):
            yield index, step
            continue
        pieces.append(str(step.get("text") or ""))
        following = steps[index : index + 1]
        if not any(e.get("chunk") and e.get("agent") == step.get("agent") for e in following):
            yield index, {**step, "text": "".join(pieces)}
            pieces.clear()


def _text(step: Mapping[str, object], key: str) -> str | None:
    value = step.get(key)
    return None if value is None else str(value)


def _count(holder: Mapping[str, object], key: str) -> int:
    return int(cast("int", holder.get(key) or 0))


def _captured(step: Mapping[str, object], key: str) -> object:
    """A value; null stands for one that was not captured."""
    value = step.get(key)
    return MISSING if value is None else value


def _start(step: Mapping[str, object], clock: int) -> int:
    """When a step began: by its own clock, or so long after the one before."""
    if step.get("ts") is not None:
        return _nanoseconds(step["ts"])
    return clock + _nanoseconds(step.get("dt_s"))


def _nanoseconds(seconds: object) -> int:
    return int(float(cast("float", seconds or 0)) * 1e9)
