"""Settings, from the environment and from code. Only this package reads `os.environ`.

One table drives everything: the fields of `Settings` and those of the detectors say each variable's
name, form, default and meaning. What cannot be read is warned of once and never raises.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar, cast

from otel_loopguard.core.detectors import BUILTIN, Builtin
from otel_loopguard.core.model import Pattern
from otel_loopguard.settings import forms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from otel_loopguard.settings.forms import Form

__all__ = ["ErrorStatus", "Row", "Settings", "Signal", "from_env", "rows"]

PREFIX: Final = "OTEL_LOOPGUARD_"
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


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


class _Variable(NamedTuple):
    """One setting: its name in the environment and in code, its form, its default, its meaning."""

    env: str
    argument: str
    form: Form
    default: object
    doc: str


def _of_detector(pattern: Pattern, detector: type[Builtin]) -> dict[str, _Variable]:
    """The settings of a detector. All are numbers; those that count repeats start at 1."""
    found: dict[str, _Variable] = {}
    for each in fields(detector):
        argument = f"{pattern.value}_{each.name}"
        form = forms.number(1 if each.name.endswith(("warning", "critical")) else 0)
        found[each.name] = _Variable(
            PREFIX + argument.upper(), argument, form, each.default, each.metadata["doc"]
        )
    return found


_GENERAL: Final = {
    each.name: _Variable(
        each.metadata["env"], each.name, each.metadata["form"], each.default, each.metadata["doc"]
    )
    for each in fields(Settings)
    if "form" in each.metadata
}
_THRESHOLDS: Final = {pattern: _of_detector(pattern, each) for pattern, each in BUILTIN.items()}
_ALL: Final = [*_GENERAL.values(), *(v for each in _THRESHOLDS.values() for v in each.values())]

# `opentelemetry-instrument` makes each attribute of this module that starts with OTEL_ an option.
# They come from the table, so that no name is written twice; OpenTelemetry's own variable is left
# out, since an option that two packages offer breaks the command.
globals().update({each.env: each.env for each in _ALL if each.env.startswith(PREFIX)})


class Row(NamedTuple):
    """One line of the table of settings, for people."""

    variable: str
    allowed: str
    default: str
    meaning: str


def rows() -> list[Row]:
    """The table of all settings, in the order in which the README shows it."""
    return [
        Row(each.env, each.form.allowed, each.form.show(each.default), each.doc) for each in _ALL
    ]


def from_env(environ: Mapping[str, str] | None = None, **overrides: object) -> Settings:
    """Read the settings. Never raises: what is malformed counts as not given, with one warning.

    Args:
        environ: the environment; None for that of the process.
        overrides: settings from code, which win: the name of a variable in lower case without its
            prefix (`hard_loop_warning=4`), or `capture_content`. None and empty text mean "not
            given", as empty text does in the environment.
    """
    given = _Given(os.environ if environ is None else environ, overrides)
    given.warn_of_unknown()
    thresholds = {pattern: given.detector(pattern) for pattern in BUILTIN}
    general = {name: given.read(variable)[0] for name, variable in _GENERAL.items()}
    return replace(Settings(thresholds=thresholds), **general)


class _Given:
    """What somebody has set, in the environment and in code."""

    def __init__(self, environ: Mapping[str, str], overrides: Mapping[str, object]) -> None:
        self._environ = environ
        self._overrides = overrides

    def read(self, variable: _Variable) -> tuple[object, str]:
        """The value to use and the name under which it was given."""
        value, name, form = variable.default, variable.env, variable.form
        malformed: list[tuple[str, object]] = []
        for source, raw in (
            (variable.env, self._environ.get(variable.env)),
            (variable.argument, self._overrides.get(variable.argument)),
        ):
            if raw is None or (isinstance(raw, str | bytes) and not raw.strip()):
                continue
            try:
                value, name = form.read(raw), source
            except ValueError:
                malformed.append((source, raw))
        for source, raw in malformed:
            written = "(hidden)" if form.secret else forms.quote(raw)
            _warn(f"{source}={written}: expected {form.allowed}; used instead: {form.show(value)}")
        return value, name

    def detector(self, pattern: Pattern) -> Builtin:
        """The detector of a pattern with its thresholds; critical is never below warning."""
        variables = _THRESHOLDS[pattern]
        given = {name: self.read(variable) for name, variable in variables.items()}
        numbers = {name: cast("int", value) for name, (value, _) in given.items()}
        for low in [name for name in numbers if name.endswith("warning")]:
            high = low.removesuffix("warning") + "critical"
            if numbers[high] < numbers[low]:
                problem = (
                    f"{given[high][1]}={numbers[high]} is below {given[low][1]}={numbers[low]}"
                )
                for name in (low, high):
                    numbers[name] = cast("int", variables[name].default)
                _warn(f"{problem}; used instead: {numbers[high]} and {numbers[low]}")
        return replace(BUILTIN[pattern](), **numbers)

    def warn_of_unknown(self) -> None:
        """Warn of names that do not exist; never of their values, one might be a misspelt key."""
        variables = [name for name in self._environ if name.startswith(PREFIX)]
        _warn_of_unknown(variables, [each.env for each in _ALL])
        _warn_of_unknown(self._overrides, [each.argument for each in _ALL])


def _warn_of_unknown(names: Iterable[str], known: list[str]) -> None:
    for name in names:
        if name not in known:
            from difflib import get_close_matches  # noqa: PLC0415 - only for a misspelt name

            closest = get_close_matches(name[: forms.MAX_TEXT], known, n=1, cutoff=0.0)[0]
            _warn(
                f"no setting is named {forms.quote(name)}; it is ignored; the closest is {closest}"
            )


def _warn(message: str) -> None:
    _log.warning("otel_loopguard: %s", message)
