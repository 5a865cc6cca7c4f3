"""Settings, from the environment and from code. Only this package reads `os.environ`.

One table drives everything: the fields of `Settings` and those of the detectors say each variable's
name, form, default and meaning. What cannot be read is warned of once and never raises.
"""

from __future__ import annotations

import logging
import os
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from otel_loopguard.core.action import Action
from otel_loopguard.core.detectors import BUILTIN, Builtin
from otel_loopguard.settings import forms
from otel_loopguard.settings.model import ErrorStatus, Settings, Signal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from otel_loopguard.core.model import Pattern
    from otel_loopguard.settings.forms import Form

__all__ = ["Action", "ErrorStatus", "Row", "Settings", "Signal", "from_env", "rows"]

PREFIX: Final = "OTEL_LOOPGUARD_"
_log = logging.getLogger(__name__)


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
