"""Settings: what cannot be read is told once, and never raises."""

from __future__ import annotations

import pytest

from otel_loopguard.core.detectors import HardLoop
from otel_loopguard.core.model import Pattern
from otel_loopguard.settings import Settings, from_env
from tests.settings_reading import ENV_NAMES, PREFIX, logged, read, read_badly

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
    ("TOOLS", "status", "'status'", "unset"),
    ("TOOLS", ":poll", "':poll'", "unset"),
    ("TOOLS", "status:", "'status:'", "unset"),
    ("TOOLS", "status:polls", "'status:polls'", "unset"),
    ("TOOLS", "status:poll=1", "'status:poll=1'", "unset"),
    ("TOOLS", "pay:max_repeats", "'pay:max_repeats'", "unset"),
    ("TOOLS", "pay:max_repeats=0", "'pay:max_repeats=0'", "unset"),
    ("TOOLS", "pay:irreversible,idempotent", "'pay:irreversible,idempotent'", "unset"),
    ("TOOLS", ";", "';'", "unset"),
    ("ESCALATE", "ask", "'ask'", "unset"),
    ("ESCALATE", "my module:ask", "'my module:ask'", "unset"),
    ("ESCALATE_TIMEOUT_S", "0", "'0'", "300"),
    ("HARD_LOOP_WARNING", "0", "'0'", "3"),
    ("RESULT_STAGNATION_SMALL", "-1", "'-1'", "200"),
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
        ("tools", {"status": "polls"}, "'dict'"),
        ("tools", {"status": {"poll": 1}}, "'dict'"),
        ("tools", {3: "poll"}, "'dict'"),
        ("tools", {"status": {}}, "'dict'"),
        ("tools", ["status"], "'status'"),
        ("escalate", 7, "7"),
        ("escalate", dict, "'type'"),
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
