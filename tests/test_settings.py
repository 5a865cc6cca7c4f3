"""Settings: what the environment and code may say, and what happens when they say it wrongly."""

from __future__ import annotations

import logging
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, fields
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import otel_loopguard.core
from otel_loopguard import settings as module
from otel_loopguard.core.detectors import BUILTIN, HardLoop, IterationBudget, RetryStorm
from otel_loopguard.core.model import Pattern
from otel_loopguard.settings import ErrorStatus, Settings, Signal, from_env, rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PREFIX = "OTEL_LOOPGUARD_"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
ENV_NAMES = [row.variable for row in rows()]
NUMBERS = [row.variable for row in rows() if row.allowed.startswith("whole number")]


class Lines(logging.Handler):
    """The warnings that were logged, as text."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        assert record.levelno == logging.WARNING
        self.texts.append(record.getMessage())


@contextmanager
def logged() -> Iterator[list[str]]:
    lines, logger = Lines(), logging.getLogger("otel_loopguard")
    logger.addHandler(lines)
    try:
        yield lines.texts
    finally:
        logger.removeHandler(lines)


def read(environ: Mapping[str, str] | None = None, **overrides: object) -> Settings:
    """Read settings that nothing is wrong with."""
    with logged() as warnings:
        settings = from_env(environ or {}, **overrides)
    assert warnings == []
    return settings


def read_badly(
    environ: Mapping[str, str] | None = None, **overrides: object
) -> tuple[Settings, str]:
    """Read settings that one thing is wrong with."""
    with logged() as warnings:
        settings = from_env(environ or {}, **overrides)
    assert len(warnings) == 1, warnings
    return settings, warnings[0]


def test_nothing_set_gives_the_defaults_of_settings_and_detectors() -> None:
    settings = read()
    assert settings == Settings()
    assert settings.thresholds == {pattern: detector() for pattern, detector in BUILTIN.items()}
    assert settings.emit == {Signal.SPAN, Signal.METRIC}
    assert settings.error_status is ErrorStatus.CRITICAL
    assert not settings.capture_content
    assert not settings.disabled


def test_settings_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().flush = False  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("disabled", "true", True),
        ("emit", " Log , span", frozenset({Signal.SPAN, Signal.LOG})),
        ("hash_key", "secret", b"secret"),
        ("hash_key", " \udcff\0é", b" \xed\xb3\xbf\0\xc3\xa9"),
        ("agent_name", " Übersetzer 🤖\n", "Übersetzer 🤖"),
        ("error_status", "WARNING", ErrorStatus.WARNING),
        ("error_status", "none", ErrorStatus.NONE),
        ("ignored_tools", "think, Plan ,,think", frozenset({"think", "Plan"})),
        ("muted_patterns", "Hard_Loop,context_rot", {Pattern.HARD_LOOP, Pattern.CONTEXT_ROT}),
        ("detectors", "zeta, alpha,zeta", ("zeta", "alpha")),
        ("max_runs", "1", 1),
        ("run_ttl_s", "1000000000", 10**9),
        ("max_open_spans", " +7 ", 7),
        ("flush", "off", False),
        ("flush_timeout_ms", "0250", 250),
        ("log_warnings", "No", False),
    ],
)
def test_a_variable_sets_its_field(name: str, text: str, value: object) -> None:
    assert getattr(read({PREFIX + name.upper(): text}), name) == value
    assert getattr(read(**{name: text}), name) == value
    assert getattr(read(**{name: value}), name) == value


@pytest.mark.parametrize("word", ["true", "TRUE", "1", "yes", "On"])
def test_words_for_true(word: str) -> None:
    assert read({"OTEL_LOOPGUARD_DISABLED": word}).disabled is True


@pytest.mark.parametrize("word", ["false", "False", "0", "no", "OFF"])
def test_words_for_false(word: str) -> None:
    assert read({"OTEL_LOOPGUARD_FLUSH": word}).flush is False


def test_thresholds_reach_the_detector_and_only_that_one() -> None:
    settings = read(
        {"OTEL_LOOPGUARD_HARD_LOOP_WARNING": "4", "OTEL_LOOPGUARD_ITERATION_BUDGET_LIMIT": "25"},
        retry_storm_varied_critical=9,
    )
    assert settings.thresholds == Settings().thresholds | {
        Pattern.HARD_LOOP: HardLoop(warning=4),
        Pattern.RETRY_STORM: RetryStorm(varied_critical=9),
        Pattern.ITERATION_BUDGET: IterationBudget(limit=25),
    }


def test_code_wins_over_the_environment() -> None:
    environ = {"OTEL_LOOPGUARD_EMIT": "log", "OTEL_LOOPGUARD_HARD_LOOP_WARNING": "2"}
    settings = read(environ, emit=["span"], hard_loop_warning=4)
    assert settings.emit == {"span"}
    assert settings.thresholds[Pattern.HARD_LOOP] == HardLoop(warning=4)


@pytest.mark.parametrize("nothing", [None, "", "  ", b""])
def test_what_code_leaves_open_comes_from_the_environment(nothing: object) -> None:
    environ = {"OTEL_LOOPGUARD_HASH_KEY": "k", "OTEL_LOOPGUARD_MAX_RUNS": "5"}
    settings = read(environ, hash_key=nothing, max_runs=nothing)
    assert settings.hash_key == b"k"
    assert settings.max_runs == 5


def test_code_can_empty_a_list() -> None:
    environ = {"OTEL_LOOPGUARD_EMIT": "log", "OTEL_LOOPGUARD_IGNORED_TOOLS": "think"}
    settings = read(environ, emit=(), ignored_tools=frozenset[str]())
    assert settings.emit == settings.ignored_tools == frozenset()


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_a_blank_variable_is_an_unset_one(blank: str) -> None:
    assert read(dict.fromkeys(ENV_NAMES, blank)) == Settings()


def test_the_environment_of_the_process_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_LOOPGUARD_MAX_RUNS", "77")
    assert from_env().max_runs == 77
    assert from_env({}).max_runs == 10_000


BAD = [
    ("DISABLED", "maybe", "'maybe'", "false"),
    ("FLUSH", "2", "'2'", "true"),
    ("EMIT", "span,metrics", "'span,metrics'", "span,metric"),
    ("EMIT", " , ", "' , '", "span,metric"),
    ("AGENT_NAME", "a\0b", r"'a\x00b'", "unset"),
    ("AGENT_NAME", "a\udcffb", r"'a\udcffb'", "unset"),
    pytest.param("AGENT_NAME", "x" * 257, "'" + "x" * 77 + "...'", "unset", id="long"),
    ("ERROR_STATUS", "fatal", "'fatal'", "critical"),
    ("IGNORED_TOOLS", "ok,a\0b", r"'ok,a\x00b'", "unset"),
    ("MUTED_PATTERNS", "hard_loop,hardloop", "'hard_loop,hardloop'", "unset"),
    ("DETECTORS", ",", "','", "unset"),
    ("MAX_RUNS", "0", "'0'", "10000"),
    ("RUN_TTL_S", "-5", "'-5'", "900"),
    ("RUN_TTL_S", "15m", "'15m'", "900"),
    ("MAX_OPEN_SPANS", "1_0", "'1_0'", "1000"),
    ("MAX_OPEN_SPANS", "\u0663", r"'\u0663'", "1000"),
    ("FLUSH_TIMEOUT_MS", "1.5", "'1.5'", "500"),
    pytest.param("RUN_TTL_S", "9" * 100_000, "'" + "9" * 77 + "...'", "900", id="digits"),
    ("FLUSH_TIMEOUT_MS", "1000000001", "'1000000001'", "500"),
    ("HARD_LOOP_WARNING", "0", "'0'", "3"),
    ("RESULT_STAGNATION_SMALL", "-1", "'-1'", "64"),
    ("ITERATION_BUDGET_LIMIT", "none", "'none'", "0"),
]


@pytest.mark.parametrize(("name", "text", "shown", "used"), BAD)
def test_a_malformed_variable_is_named_with_its_value_and_what_is_used(
    name: str, text: str, shown: str, used: str
) -> None:
    settings, warning = read_badly({PREFIX + name: text})
    assert settings == Settings()
    assert f"{PREFIX}{name}={shown}: expected " in warning
    assert warning.endswith(f"; used instead: {used}")


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("disabled", 1, "1"),
        ("max_runs", True, "True"),
        ("max_runs", 2.0, "2.0"),
        pytest.param("max_runs", 10**100_000, "a huge number", id="huge"),
        pytest.param("max_runs", -(10**100_000), "a huge number", id="huge-negative"),
        ("agent_name", 7, "7"),
        ("agent_name", object(), "'object'"),
        ("emit", ["span", "smoke"], "'span,smoke'"),
        ("emit", ("span", 3), "'span,int'"),
        ("emit", [""], "''"),
        ("ignored_tools", {"think": 1}, "'dict'"),
        ("detectors", len, "'builtin_function_or_method'"),
        ("error_status", ["critical"], "'critical'"),
        ("capture_content", "true", "'true'"),
        ("hard_loop_warning", float("nan"), "nan"),
    ],
)
def test_a_malformed_argument_is_named_with_its_value(name: str, value: object, shown: str) -> None:
    settings, warning = read_badly(**{name: value})
    assert settings == Settings()
    assert f" {name}={shown}: expected " in warning


def test_a_malformed_argument_leaves_the_environment_in_force() -> None:
    settings, warning = read_badly({"OTEL_LOOPGUARD_RUN_TTL_S": "60"}, run_ttl_s="soon")
    assert settings.run_ttl_s == 60
    assert warning.endswith("; used instead: 60")


def test_a_malformed_variable_under_a_good_argument_is_told_too() -> None:
    settings, warning = read_badly({"OTEL_LOOPGUARD_EMIT": "smoke"}, emit="metric,log")
    assert settings.emit == {"metric", "log"}
    assert "OTEL_LOOPGUARD_EMIT='smoke'" in warning
    assert warning.endswith("; used instead: metric,log")


def test_each_side_is_told_once() -> None:
    with logged() as warnings:
        from_env({"OTEL_LOOPGUARD_FLUSH": "x"}, flush="y")
    assert [text.partition("=")[0] for text in warnings] == [
        "otel_loopguard: OTEL_LOOPGUARD_FLUSH",
        "otel_loopguard: flush",
    ]


def test_the_hash_key_is_never_shown() -> None:
    assert "secret" not in repr(read({"OTEL_LOOPGUARD_HASH_KEY": "secret"}))
    settings, warning = read_badly(hash_key=["secret"])
    assert settings.hash_key is None
    assert "hash_key=(hidden): " in warning
    assert warning.endswith("used instead: unset")
    assert "secret" not in warning
    settings, warning = read_badly({"OTEL_LOOPGUARD_HASH_KEY": "secret"}, hash_key=4711)
    assert settings.hash_key == b"secret"
    assert "secret" not in warning
    assert "4711" not in warning
    assert "secret" not in read_badly({"OTEL_LOOPGUARD_HASHKEY": "secret"})[1]
    assert "secret" not in read_badly(hashkey="secret")[1]


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


@pytest.mark.parametrize("unused", ["", "OTEL_LOOPGUARD_HARD_LOOP_POLL_WARNING"])
def test_critical_below_warning_puts_both_back(unused: str) -> None:
    settings, warning = read_badly(
        {
            unused: "12",
            "OTEL_LOOPGUARD_HARD_LOOP_WARNING": "7",
            "OTEL_LOOPGUARD_HARD_LOOP_CRITICAL": "6",
        }
    )
    assert settings.thresholds[Pattern.HARD_LOOP] == HardLoop(poll_warning=12 if unused else 10)
    assert warning.endswith(
        "OTEL_LOOPGUARD_HARD_LOOP_CRITICAL=6 is below OTEL_LOOPGUARD_HARD_LOOP_WARNING=7; "
        "used instead: 5 and 3"
    )


def test_critical_below_warning_names_the_arguments_that_code_gave() -> None:
    settings, warning = read_badly(
        {"OTEL_LOOPGUARD_RETRY_STORM_WARNING": "6"}, retry_storm_critical=4
    )
    assert settings == Settings()
    assert "retry_storm_critical=4 is below OTEL_LOOPGUARD_RETRY_STORM_WARNING=6" in warning
    assert read(hard_loop_warning=5).thresholds[Pattern.HARD_LOOP] == HardLoop(warning=5)


@pytest.mark.parametrize(
    ("name", "closest"),
    [
        ("OTEL_LOOPGUARD_HARDLOOP_WARNING", "OTEL_LOOPGUARD_HARD_LOOP_WARNING"),
        ("OTEL_LOOPGUARD_HASHKEY", "OTEL_LOOPGUARD_HASH_KEY"),
        pytest.param("OTEL_LOOPGUARD_" + "FLUSH" * 50_000, "OTEL_LOOPGUARD_", id="long"),
        ("OTEL_LOOPGUARD_", "OTEL_LOOPGUARD_"),
        ("OTEL_LOOPGUARD_\0\udcff", "OTEL_LOOPGUARD_"),
    ],
)
def test_an_unknown_variable_is_told_with_the_closest_one(name: str, closest: str) -> None:
    settings, warning = read_badly({name: "some value"})
    assert settings == Settings()
    assert ascii(name[:70])[:-1] in warning
    assert f"the closest is {closest}" in warning
    assert warning.rpartition(" ")[2] in ENV_NAMES
    assert "some value" not in warning


def test_an_unknown_argument_is_told_with_the_closest_one() -> None:
    settings, warning = read_badly(hardloop_warning=4)
    assert settings == Settings()
    assert "'hardloop_warning'" in warning
    assert warning.endswith("the closest is hard_loop_warning")


def test_variables_of_others_are_none_of_our_business() -> None:
    assert read({"OTEL_SERVICE_NAME": "x", "OTEL_LOOPGUARDS": "1", "PATH": "\0"}) == Settings()


@pytest.mark.parametrize(
    ("word", "captures"),
    [
        ("NO_CONTENT", False),
        ("EVENT_ONLY", False),
        ("SPAN_ONLY", True),
        ("span_and_event", True),
        ("", False),
    ],
)
def test_content_is_captured_as_opentelemetry_says(word: str, captures: bool) -> None:
    assert read({CAPTURE: word}).capture_content is captures
    assert read({CAPTURE: word}, capture_content=not captures).capture_content is not captures


@pytest.mark.parametrize("word", ["true", "1", "yes"])
def test_content_capture_has_no_plain_true(word: str) -> None:
    settings, warning = read_badly({CAPTURE: word})
    assert settings.capture_content is False
    assert f"{CAPTURE}='{word}'" in warning
    assert warning.endswith("; used instead: NO_CONTENT")


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


def test_each_field_says_its_variable_and_its_meaning() -> None:
    for each in fields(Settings):
        assert each.metadata["doc"]
        if each.name not in ("thresholds", "capture_content"):
            assert each.metadata["env"] == PREFIX + each.name.upper()


def test_each_setting_of_a_detector_is_a_number_with_a_meaning_and_a_pair() -> None:
    for detector in BUILTIN.values():
        names = {each.name for each in fields(detector)}
        for each in fields(detector):
            assert type(each.default) is int
            assert each.metadata["doc"]
            assert each.name.replace("warning", "critical") in names
            assert each.name.replace("critical", "warning") in names


def test_the_table_has_each_setting_once() -> None:
    own = {each.metadata["env"] for each in fields(Settings) if each.name != "thresholds"}
    thresholds = {
        f"{PREFIX}{pattern.name}_{each.name.upper()}"
        for pattern, detector in BUILTIN.items()
        for each in fields(detector)
    }
    assert sorted(ENV_NAMES) == sorted(own | thresholds)
    assert all(row.allowed and row.default and row.meaning for row in rows())
    assert not any("|" in cell for row in rows() for cell in row)


def test_the_defaults_in_the_table_are_what_the_environment_may_say() -> None:
    environ = {row.variable: row.default for row in rows() if row.default != "unset"}
    assert read(environ) == Settings()


def test_the_module_prints_its_table() -> None:
    command = [sys.executable, "-W", "error", "-m", "otel_loopguard.settings"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert printed.stderr == ""
    head, rule, *lines = printed.stdout.splitlines()
    assert head == "| variable | value | default | meaning |"
    assert rule == "|---|---|---|---|"
    assert [tuple(line[2:-2].split(" | ")) for line in lines] == [
        (f"`{row.variable}`", *row[1:]) for row in rows()
    ]


def test_opentelemetry_instrument_offers_our_variables_as_options() -> None:
    ours = [name for name in ENV_NAMES if name != CAPTURE]
    assert [name for name in dir(module) if name.startswith("OTEL_")] == sorted(ours)
    command = Path(sys.executable).with_name("opentelemetry-instrument")
    printed = subprocess.run([command, "--help"], capture_output=True, text=True, check=True)
    for name in ours:
        assert f"--{name.removeprefix('OTEL_').lower()} " in printed.stdout
    options = ["--loopguard_hard_loop_warning", "4"]
    environ = subprocess.run([command, *options, "env"], capture_output=True, text=True, check=True)
    assert "OTEL_LOOPGUARD_HARD_LOOP_WARNING=4" in environ.stdout.splitlines()


def test_nobody_else_reads_the_environment() -> None:
    package = Path(otel_loopguard.core.__file__).parents[1]
    readers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "environ" in (text := path.read_text("utf-8")).replace("environment", "")
        or "getenv" in text
    }
    assert readers == {"settings/__init__.py"}
