"""Settings: what the environment and code may say."""

from __future__ import annotations

import asyncio
from dataclasses import FrozenInstanceError

import pytest

from otel_loopguard.core.detectors import BUILTIN, HardLoop, IterationBudget, RetryStorm
from otel_loopguard.core.model import Pattern
from otel_loopguard.core.traits import Traits
from otel_loopguard.settings import ErrorStatus, Settings, Signal, from_env
from tests.settings_reading import CAPTURE, ENV_NAMES, PREFIX, read, read_badly


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


def test_tools_are_declared_in_text_and_in_code() -> None:
    text = " status:poll; pay : irreversible, max_repeats=1 ;mcp:search:idempotent"
    text += ";status:max_repeats=9"
    expected = {
        "status": Traits(poll=True, max_repeats=9),
        "pay": Traits(irreversible=True, max_repeats=1),
        "mcp:search": Traits(idempotent=True),
    }
    assert read({"OTEL_LOOPGUARD_TOOLS": text}).tools == expected
    code = {
        "status": "poll,max_repeats=9",
        "pay": {"irreversible": True, "max_repeats": 1, "poll": False},
        "mcp:search": "idempotent",
    }
    assert read(tools=code).tools == expected
    assert read({"OTEL_LOOPGUARD_TOOLS": text}, tools={}).tools == {}


def test_what_is_used_instead_of_bad_declarations_is_shown_as_it_is_written() -> None:
    good = "status:poll;pay:irreversible,max_repeats=1"
    settings, warning = read_badly({"OTEL_LOOPGUARD_TOOLS": good}, tools="pay")
    assert warning.endswith(f"; used instead: {good}")
    assert settings.tools is not None
    assert set(settings.tools) == {"status", "pay"}


async def asker(request: object, /) -> bool:
    return request == "about what?"


def test_who_is_asked_is_a_function_or_named_and_loaded_when_asked() -> None:
    assert read(escalate=asker).escalate is asker
    named = read({"OTEL_LOOPGUARD_ESCALATE": "tests.test_settings:asker"}).escalate
    assert named is not None
    assert asyncio.run(named("about what?")) is True  # type: ignore[arg-type, func-returns-value]
    missing = read(escalate="no.such.module:ask").escalate
    assert missing is not None
    with pytest.raises(ModuleNotFoundError):
        asyncio.run(missing("about what?"))  # type: ignore[arg-type]
    for value, shown in ((asker, "the other one"), ("a.b:c", "a.b:c")):
        _, warning = read_badly({"OTEL_LOOPGUARD_ESCALATE": "?"}, escalate=value)
        assert warning.endswith(f"; used instead: {shown}")
