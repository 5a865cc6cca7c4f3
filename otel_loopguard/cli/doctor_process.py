"""What is wrong inside the process: the SDK, our instrumentor, the frameworks, the settings."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from otel_loopguard.cli.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otel_loopguard.sdk.facts import Facts, Framework

_NOTHING = "no span, no event and no metric leaves the process"


def judge_sdk(facts: Facts, said: list[str], module: str | None) -> Iterator[Finding]:
    """Whether there is an SDK that takes our processor.

    Args:
        facts: what was found.
        said: what was logged when the process started.
        module: the module that was imported instead of starting `opentelemetry-instrument`.
    """
    provider = facts["provider"]
    if facts["variables"].get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        yield Finding(
            "sdk-disabled",
            "OTEL_SDK_DISABLED=true switches the OpenTelemetry SDK off",
            _NOTHING,
            "unset OTEL_SDK_DISABLED",
        )
    elif provider["kind"] == "none":
        yield _no_sdk(facts, said, module)
    elif provider["kind"] == "other":
        chosen = facts["variables"].get("OTEL_PYTHON_TRACER_PROVIDER")
        yield Finding(
            "other-provider",
            f"the tracer provider is {provider['type']}, which takes no span processors"
            + (f" (OTEL_PYTHON_TRACER_PROVIDER={chosen})" if chosen else "")
            + _names([each["package"] for each in facts["configurators"]], "; configurators: "),
            "what other instrumentations show cannot be watched, and whether a deadlock gets out "
            "is up to that provider",
            "let the OpenTelemetry SDK's own TracerProvider be the global one: "
            'pip install "otel-loopguard[auto]", and OTEL_PYTHON_CONFIGURATOR=configurator',
        )
    if provider["others"]:
        yield Finding(
            "second-provider",
            f"there is also {', '.join(provider['others'])}, which is not the global provider",
            "spans that are made with it are neither watched nor do they carry deadlocks",
            "pass it on: otel_loopguard.instrument(tracer_provider=...)",
            is_problem=provider["kind"] == "none",
        )


def _no_sdk(facts: Facts, said: list[str], module: str | None) -> Finding:
    if module is not None:
        what = f"importing {module} sets no global tracer provider"
        fix = "name the module that calls opentelemetry.trace.set_tracer_provider"
    elif not facts["configurators"]:
        what = "no OpenTelemetry SDK is set up: opentelemetry-distro is not installed"
        fix = 'pip install "otel-loopguard[auto]"'
    else:
        config = facts["variables"].get("OTEL_CONFIG_FILE")
        what = "no OpenTelemetry SDK is set up" + (
            f" (OTEL_CONFIG_FILE={config})" if config else ""
        )
        what += _names(said, "; at the start it said: ")
        fix = "correct what was said at the start of the program"
    return Finding("no-sdk", what, _NOTHING, fix)


def judge_instrumentor(facts: Facts, said: list[str], module: str | None) -> Iterator[Finding]:
    """Whether our instrumentor was started and hangs on the provider."""
    ours = facts["instrumentor"]
    if ours["off"] is not None:
        value = facts["variables"].get(ours["off"])
        yield Finding(
            "switched-off",
            f"{ours['off']}{f'={value}' if value else ' in OTEL_CONFIG_FILE'} "
            "switches otel_loopguard off",
            "nothing is watched, so no deadlock is found",
            f"take loopguard out of {ours['off']}"
            if value
            else "set enabled: true, or leave it out",
        )
    elif module is not None and not ours["loaded"] and not ours["attached"]:
        yield Finding(
            "not-loaded",
            f"importing {module} starts neither the instrumentor nor a LoopGuardSpanProcessor",
            "nothing is watched, so no deadlock is found",
            "call otel_loopguard.instrument() there",
        )
    elif module is None and not ours["loaded"]:
        yield Finding(
            "not-loaded",
            "our instrumentor is not loaded" + _names(said, "; at the start it said: "),
            "an instrumentor that raises stops all those after it",
            "leave the one that raises out by OTEL_PYTHON_DISABLED_INSTRUMENTATIONS",
        )
    elif facts["provider"]["kind"] == "sdk" and not ours["attached"]:
        yield Finding(
            "not-attached",
            "no processor of ours is on the tracer provider",
            "spans of other instrumentations are not watched",
            "correct what was said at the start of the program" + _names(said, ": "),
        )


def judge_frameworks(facts: Facts) -> Iterator[Finding]:
    """Whether the frameworks that are installed can be hooked, and are."""
    watched = facts["instrumentor"]["loaded"] and facts["instrumentor"]["off"] is None
    for framework in facts["frameworks"]:
        installed = f"{framework['package']} {framework['version']}"
        if not framework["fits"]:
            yield _wrong_version(framework, installed)
        elif framework["error"] is not None:
            yield Finding(
                "framework-broken",
                f"{installed} is installed, but {framework['error']}",
                "an agent that uses it would not run here",
                f"pip install --force-reinstall {framework['package']}",
                is_problem=False,
            )
        elif watched and not framework["hooked"]:
            yield Finding(
                "not-hooked",
                f"{installed} is installed, but nothing in it is hooked",
                "its tool and model calls are not watched",
                "report this version, and name otel-loopguard's: "
                + facts["versions"].get("otel-loopguard", "unknown"),
            )
    if not facts["frameworks"]:
        yield Finding(
            "no-framework",
            "no framework that can be hooked is installed here",
            "only decorated functions and the spans of other instrumentations are watched",
            "run this where the agent runs, or use @otel_loopguard.tool and otel_loopguard.run",
            is_problem=False,
        )
    names = Counter(each["name"] for each in facts["instrumentations"])
    for name in [name for name, count in names.items() if count > 1]:
        packages = [each["package"] for each in facts["instrumentations"] if each["name"] == name]
        yield Finding(
            "clash",
            f"{' and '.join(packages)} both call their instrumentor {name}",
            "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS cannot tell them apart, and spans come twice",
            "uninstall one of them",
            is_problem=False,
        )


def _wrong_version(framework: Framework, installed: str) -> Finding:
    return Finding(
        "framework-version",
        f"{installed} is installed; supported: {framework['supported']}",
        f"calls through it may not be watched ({framework['hooked']} of its functions are hooked)",
        f'pip install "{framework["package"]}{framework["supported"].replace(" ", "")}"',
    )


def judge_settings(facts: Facts) -> Iterator[Finding]:
    """Whether our settings are as they were meant, and let a deadlock speak."""
    for warning in facts["settings_warnings"]:
        yield Finding("setting", warning, "it does not do what was meant", "correct it")
    missing = {"span", "metric"} - set(facts["emit"])
    if missing:
        yield Finding(
            "emit",
            f"OTEL_LOOPGUARD_EMIT={','.join(facts['emit'])} is without "
            + " and ".join(sorted(missing)),
            "alerts and searches that rely on it never find anything",
            f"OTEL_LOOPGUARD_EMIT={','.join(sorted({*facts['emit'], *missing}))}",
            is_problem=False,
        )
    if facts["muted"]:
        yield Finding(
            "muted",
            f"never reported: {', '.join(facts['muted'])}",
            "an agent that is stuck in this way pages nobody",
            "take it out of OTEL_LOOPGUARD_MUTED_PATTERNS, unless that is what you want",
            is_problem=False,
        )
    if facts["provider"]["kind"] == "sdk" and facts["provider"]["service"] is None:
        yield Finding(
            "no-service-name",
            "the service has no name",
            "backends file it under unknown_service, and alerts cannot be routed by service",
            "OTEL_SERVICE_NAME=...",
            is_problem=False,
        )


def _names(texts: list[str], before: str) -> str:
    """Some texts after a lead-in; nothing if there are none."""
    return before + "; ".join(texts) if texts else ""
