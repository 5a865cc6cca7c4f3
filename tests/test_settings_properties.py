"""Settings: what holds whatever is set."""

from __future__ import annotations

from dataclasses import fields
from hashlib import blake2b

from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.core.detectors import BUILTIN
from otel_loopguard.core.model import Pattern
from otel_loopguard.settings import ErrorStatus, Settings, Signal, from_env, rows
from tests.settings_reading import ENV_NAMES, PREFIX, logged

NUMBERS = [row.variable for row in rows() if row.allowed.startswith("whole number")]


def assert_valid(settings: Settings) -> None:
    assert settings.emit <= set(Signal)
    assert isinstance(settings.error_status, ErrorStatus)
    assert settings.muted_patterns <= set(Pattern)
    assert settings.hash_key is None or 0 < len(settings.hash_key) <= 64
    texts = [*settings.ignored_tools, *settings.detectors, settings.agent_name or "-"]
    for text in texts:
        assert text == text.strip() != ""
        assert "\0" not in text
        text.encode()
    for name in ("disabled", "flush", "log_warnings", "capture_content"):
        assert isinstance(getattr(settings, name), bool)
    for name in ("max_runs", "run_ttl_s", "max_open_spans", "flush_timeout_ms"):
        assert 1 <= getattr(settings, name) <= 10**9
    assert settings.thresholds.keys() == BUILTIN.keys()
    for pattern, detector in settings.thresholds.items():
        assert type(detector) is BUILTIN[pattern]
        numbers = {each.name: getattr(detector, each.name) for each in fields(detector)}
        assert all(type(number) is int and 0 <= number <= 10**9 for number in numbers.values())
        for name in (name for name in numbers if name.endswith("warning")):
            assert 1 <= numbers[name] <= numbers[name.removesuffix("warning") + "critical"]


TEXTS = st.one_of(
    st.text(st.characters(codec=None)),
    st.integers().map(str),
    st.sampled_from(["true", "off", "span", "log,span", "none", "hard_loop", ",", "3", "8" * 5000]),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.binary(), TEXTS),
    lambda inner: st.one_of(st.lists(inner), st.tuples(inner), st.dictionaries(TEXTS, inner)),
    max_leaves=5,
)
NAMES = st.one_of(
    st.sampled_from(ENV_NAMES), st.text(), st.text().map(lambda text: PREFIX + text.upper())
)
ARGUMENTS = st.one_of(
    st.sampled_from([name.removeprefix(PREFIX).lower() for name in ENV_NAMES if PREFIX in name]),
    st.just("capture_content"),
    st.from_regex(r"[a-z_]{1,20}", fullmatch=True),
)


@given(st.dictionaries(NAMES, TEXTS), st.dictionaries(ARGUMENTS, VALUES))
def test_whatever_is_set_the_settings_are_valid(
    environ: dict[str, str], overrides: dict[str, object]
) -> None:
    with logged() as warnings:
        settings = from_env(environ, **overrides)
    assert_valid(settings)
    pairs = sum(name.endswith("WARNING") for name in ENV_NAMES)
    assert len(warnings) <= len(environ) + len(overrides) + pairs
    assert all(text.isascii() for text in warnings if "used instead" not in text)


@given(st.sampled_from(ENV_NAMES), TEXTS)
def test_a_variable_is_either_used_or_told_once(name: str, text: str) -> None:
    with logged() as warnings:
        settings = from_env({name: text})
    assert len(warnings) <= 1
    if warnings:
        assert settings == Settings()
        assert name in warnings[0]


def value_of(settings: Settings, argument: str) -> object:
    for pattern, detector in settings.thresholds.items():
        if argument.startswith(f"{pattern.value}_"):
            return getattr(detector, argument.removeprefix(f"{pattern.value}_"))
    return getattr(settings, argument)


@given(st.sampled_from(NUMBERS), st.integers(1, 10**9))
def test_numbers_mean_the_same_in_text_and_in_code(name: str, number: int) -> None:
    argument = name.removeprefix(PREFIX).lower()
    with logged() as warnings:
        by_text = from_env({name: str(number)})
    with logged() as same_warnings:
        by_code = from_env({}, **{argument: number})
    assert by_text == by_code
    assert len(warnings) == len(same_warnings)
    assert (value_of(by_text, argument) == number) or "is below" in warnings[0]


@given(st.one_of(st.text(min_size=1), st.binary(min_size=1, max_size=200)))
def test_any_key_fits_the_hash_and_different_keys_stay_different(key: str | bytes) -> None:
    made = from_env({}, hash_key=key).hash_key
    if key.strip():
        assert made is not None
        blake2b(b"", key=made)
        longer = key + key[:1] * 100
        assert from_env({}, hash_key=longer).hash_key not in (made, None)
    else:
        assert made is None
