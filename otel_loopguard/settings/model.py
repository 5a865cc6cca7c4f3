"""All that can be set: one field a setting, whose metadata says its variable, form and meaning."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from otel_loopguard.core.action import Action
from otel_loopguard.core.detectors import BUILTIN, Builtin
from otel_loopguard.core.model import Pattern
from otel_loopguard.settings import callers, forms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_loopguard.breaking.questions import Escalate
    from otel_loopguard.core.traits import Traits
    from otel_loopguard.settings.forms import Form

_T = TypeVar("_T")


class Signal(str, Enum):
    """Where a deadlock is told."""

    SPAN = "span"
    METRIC = "metric"
    LOG = "log"


class ErrorStatus(str, Enum):
    """From which severity on a finding sets its span's status to ERROR."""

    CRITICAL = "critical"
    WARNING = "warning"
    NONE = "none"


def _setting(default: _T, env: str, form: Form, doc: str) -> _T:
    """A field that can be set; a secret one stays out of the repr."""
    metadata = {"env": env, "form": form, "doc": doc}
    return field(default=default, repr=not form.secret, metadata=metadata)


def _default_thresholds() -> dict[Pattern, Builtin]:
    return {pattern: detector() for pattern, detector in BUILTIN.items()}


@dataclass(frozen=True, slots=True)
class Settings:
    """All that can be set. The metadata of each field says its variable, its unit and its meaning.

    `thresholds` holds a detector for each built-in pattern: the detector's fields are its settings.
    """

    disabled: bool = _setting(
        default=False, env="OTEL_LOOPGUARD_DISABLED", form=forms.FLAG, doc="do nothing at all"
    )
    emit: frozenset[Signal] = _setting(
        default=frozenset({Signal.SPAN, Signal.METRIC}),
        env="OTEL_LOOPGUARD_EMIT",
        form=forms.some_of(Signal),
        doc="where a deadlock is told",
    )
    hash_key: bytes | None = _setting(
        default=None,
        env="OTEL_LOOPGUARD_HASH_KEY",
        form=forms.KEY,
        doc="key of the digests; set, they are comparable across processes; unset, it is random",
    )
    agent_name: str | None = _setting(
        default=None,
        env="OTEL_LOOPGUARD_AGENT_NAME",
        form=forms.TEXT,
        doc="name of an agent that has none of its own; unset, it is the service's name",
    )
    error_status: ErrorStatus = _setting(  # noqa: RUF009 - it makes a field, as `field` does
        default=ErrorStatus.CRITICAL,
        env="OTEL_LOOPGUARD_ERROR_STATUS",
        form=forms.one_of(ErrorStatus),
        doc="severity from which on a finding sets the status of its span to ERROR",
    )
    ignored_tools: frozenset[str] = _setting(
        default=frozenset[str](),
        env="OTEL_LOOPGUARD_IGNORED_TOOLS",
        form=forms.NAME_SET,
        doc="tools whose calls are never counted",
    )
    muted_patterns: frozenset[Pattern] = _setting(
        default=frozenset[Pattern](),
        env="OTEL_LOOPGUARD_MUTED_PATTERNS",
        form=forms.some_of(Pattern),
        doc="patterns that are never reported",
    )
    detectors: tuple[str, ...] = _setting(
        default=(),
        env="OTEL_LOOPGUARD_DETECTORS",
        form=forms.NAME_LIST,
        doc="detectors of other packages to load, by the names of their entry points",
    )
    thresholds: Mapping[Pattern, Builtin] = field(
        default_factory=_default_thresholds,
        metadata={
            "env": "OTEL_LOOPGUARD_<PATTERN>_<FIELD>",
            "doc": "the detector of each pattern, with its thresholds",
        },
    )
    action: Action = _setting(  # noqa: RUF009 - it makes a field, as `field` does
        default=Action.OBSERVE,
        env="OTEL_LOOPGUARD_ACTION",
        form=forms.one_of(Action),
        doc="what is done about a loop besides telling of it: shadow only says what would be done, "
        "nudge answers the repeated call with a note, break also stops the run",
    )
    actions: Mapping[Pattern, Action] | None = _setting(
        default=None,
        env="OTEL_LOOPGUARD_ACTIONS",
        form=forms.pairs(Pattern, forms.one_of(Action), ",", "commas"),
        doc="the same for single patterns",
    )
    note_language: str = _setting(
        default="en",
        env="OTEL_LOOPGUARD_NOTE_LANGUAGE",
        form=forms.TEXT,
        doc="language of the notes to the model: en or de",
    )
    notes: Mapping[Pattern, str] | None = _setting(
        default=None,
        env="OTEL_LOOPGUARD_NOTES",
        form=forms.pairs(Pattern, forms.LONG_TEXT, "\n", "line breaks"),
        doc="your own notes to the model, with `{tool}` and `{count}`",
    )
    tools: Mapping[str, Traits] | None = _setting(
        default=None,
        env="OTEL_LOOPGUARD_TOOLS",
        form=callers.TOOLS,
        doc="what is known of tools: equal results of a poll are waiting; an idempotent one only "
        "reads; about an irreversible one a human is asked where its run is in trouble; an equal "
        "call is made max_repeats times at most",
    )
    escalate: Escalate | None = _setting(  # noqa: RUF009 - it makes a field, as `field` does
        default=None,
        env="OTEL_LOOPGUARD_ESCALATE",
        form=callers.ASKER,
        doc="who is asked about irreversible calls, and whether a run may go on; unset, nobody is",
    )
    escalate_timeout_s: int = _setting(
        default=300,
        env="OTEL_LOOPGUARD_ESCALATE_TIMEOUT_S",
        form=forms.number(1),
        doc="seconds after which no answer is a no",
    )
    max_runs: int = _setting(
        default=10_000,
        env="OTEL_LOOPGUARD_MAX_RUNS",
        form=forms.number(1),
        doc="runs that are remembered at once",
    )
    run_ttl_s: int = _setting(
        default=900,
        env="OTEL_LOOPGUARD_RUN_TTL_S",
        form=forms.number(1),
        doc="seconds without a step after which a run is over",
    )
    max_open_spans: int = _setting(
        default=1_000,
        env="OTEL_LOOPGUARD_MAX_OPEN_SPANS",
        form=forms.number(1),
        doc="spans of agents that are held open at once",
    )
    max_agent_names: int = _setting(
        default=100,
        env="OTEL_LOOPGUARD_MAX_AGENT_NAMES",
        form=forms.number(1),
        doc="agents that metrics tell apart; further ones are counted as `other`",
    )
    flush: bool = _setting(
        default=True,
        env="OTEL_LOOPGUARD_FLUSH",
        form=forms.FLAG,
        doc="a critical finding flushes the providers of what is emitted",
    )
    flush_timeout_ms: int = _setting(
        default=500,
        env="OTEL_LOOPGUARD_FLUSH_TIMEOUT_MS",
        form=forms.number(1),
        doc="milliseconds that such a flush may take",
    )
    log_warnings: bool = _setting(
        default=True,
        env="OTEL_LOOPGUARD_LOG_WARNINGS",
        form=forms.FLAG,
        doc="one WARNING line through `logging` each time a finding speaks",
    )
    capture_content: bool = _setting(
        default=False,
        env="OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
        form=forms.CAPTURE,
        doc="OpenTelemetry's own setting: whether spans carry arguments and results",
    )
