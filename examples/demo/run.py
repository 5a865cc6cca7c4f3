"""Run an example agent offline and show what the guard saw.

    python examples/demo/run.py [AGENT] [--model SCENARIO] [--action nudge|break|shadow]

The agent is one of the folders beside this one. It runs as `opentelemetry-instrument python
agent.py`, against a scripted model; its trace goes to build/demo/traces.jsonl, as OTLP in JSON, and
with JAEGER=1 to the Jaeger that `make jaeger` started. With an action an agent of examples/breaking
runs twice, first observed only, and the two traces are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from examples.demo.compare import comparison  # noqa: E402
from examples.offline import AGENTS, BREAKING, command, environment, script  # noqa: E402
from examples.scripted_model import ScriptedModel  # noqa: E402

OTLP = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
JAEGER_UI = os.environ.get("JAEGER_UI", "http://127.0.0.1:16686")
TRACES = ROOT / "build" / "demo" / "traces.jsonl"
MARKER = "was not made"
"""In each note to the model."""
MODELS = {None: "loop-8", "nudge": "nudge-12", "break": "loop-12", "shadow": "loop-12"}
"""What the model does: with `nudge` it reads the note, with `break` it ignores all notes."""


def run(
    agent: str, scenario: str, *, jaeger: bool, action: str = "observe", to: Path = TRACES
) -> int:
    """Run the agent; its batches of spans go to the file, all else that it prints is shown."""
    where = {"OTEL_TRACES_EXPORTER": "otlp_json_file,otlp" if jaeger else "otlp_json_file"}
    where["OTEL_LOOPGUARD_ACTION"] = action
    if jaeger:
        where["OTEL_EXPORTER_OTLP_ENDPOINT"] = OTLP
    to.parent.mkdir(parents=True, exist_ok=True)
    with (
        ScriptedModel(latency_s=0.05, marker=MARKER) as model,
        to.open("w", encoding="utf-8") as traces,
    ):
        process = subprocess.Popen(
            command(agent),
            env=environment(model, scenario, **where),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith('{"resourceSpans"'):
                traces.write(line)
            else:
                print(f"  the agent says: {line}", end="")
        return process.wait()


def is_up(address: str) -> bool:
    """Whether something answers there."""
    try:
        urllib.request.urlopen(address, timeout=2).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def deadlocks() -> list[tuple[str, str]]:
    """Trace and pattern of each deadlock event in the file."""
    found = []
    for line in TRACES.read_text(encoding="utf-8").splitlines():
        for resource in json.loads(line)["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    for event in span.get("events", []):
                        if event["name"] == "loopguard.deadlock":
                            said = {a["key"]: a["value"] for a in event["attributes"]}
                            pattern = said["loopguard.pattern"]["stringValue"]
                            found.append((span["traceId"], pattern))
    return found


def run_twice(agent: str, scenario: str, action: str, *, jaeger: bool) -> int:
    """Run the agent observed only, then with its loop broken, and print the two side by side."""
    files = {name: TRACES.with_name(f"{name}.jsonl") for name in ("observe", action)}
    for name, file in files.items():
        print(f"OTEL_LOOPGUARD_ACTION={name}", flush=True)
        code = run(agent, scenario, jaeger=jaeger, action=name, to=file)
        if code:
            return code
    comparison(files)
    kept = " and ".join(str(file.relative_to(ROOT)) for file in files.values())
    print(f"The traces are in {kept}.")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("agent", nargs="?", choices=(*AGENTS, *BREAKING))
    parser.add_argument("--model", help="what the scripted model does")
    parser.add_argument("--action", choices=("nudge", "break", "shadow"), help="break the loop")
    options = parser.parse_args()
    agent = options.agent or ("breaking/openai_loop" if options.action else "openai_loop")
    scenario = options.model or MODELS[options.action]
    jaeger = os.environ.get("JAEGER", "") not in ("", "0")
    if jaeger and not is_up(JAEGER_UI):
        print(f"There is no Jaeger at {JAEGER_UI}: start one with `make jaeger`.", file=sys.stderr)
        return 1
    print(f"opentelemetry-instrument python {script(agent).relative_to(ROOT)}", flush=True)
    if options.action is not None:
        return run_twice(agent, scenario, options.action, jaeger=jaeger)
    code = run(agent, scenario, jaeger=jaeger)
    if code:
        return code
    subprocess.run([sys.executable, "-m", "otel_loopguard.cli", "tree", TRACES], check=False)
    found = deadlocks()
    print(f"The trace is in {TRACES.relative_to(ROOT)}.")
    if jaeger:
        for trace_id, pattern in dict(found).items():
            print(f"Open it: {JAEGER_UI}/trace/{trace_id}?uiFind={pattern}")
            print(f"Or read it, where Jaeger has no page: {JAEGER_UI}/api/traces/{trace_id}")
    else:
        print("To see it in Jaeger: `make jaeger` in another terminal, then `make demo JAEGER=1`.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
