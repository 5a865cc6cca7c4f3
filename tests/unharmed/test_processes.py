"""The example agents, and agents with a bad end, as processes: our presence cannot be seen."""

from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING

import pytest

from examples.offline import AGENTS, EXAMPLES
from tests.receiver import Receiver
from tests.unharmed.running import HERE, Seen, addresses, assert_same, ended, start
from tests.unharmed.scenarios import model

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from examples.scripted_model import ScriptedModel

REFUSED = "http://127.0.0.1:9"
ENDINGS = str(HERE / "apps" / "endings.py")
QUICK = ("decorated", "openai_loop")
"""The others take long to import their framework; test_apps has them in all situations."""


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedModel]:
    with model() as running:
        yield running


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@pytest.fixture(scope="module")
def silent() -> Iterator[str]:
    """An endpoint that takes every connection and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as held:
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


@pytest.fixture(scope="module")
def alone(server: ScriptedModel) -> Callable[[str], Seen]:
    """What can be seen of an example agent without us."""
    known: dict[str, Seen] = {}

    def run(agent: str) -> Seen:
        if agent not in known:
            known[agent] = ended(example(agent, server, without=True))
            assert known[agent].code == 0, known[agent].err
            assert known[agent].out
        return known[agent]

    return run


def example(agent: str, server: ScriptedModel, **options: object) -> subprocess.Popen[str]:
    command = options.pop("command", (str(EXAMPLES / agent / "agent.py"),))
    return start(
        *command,
        **{
            **addresses(server.base_url),
            "MODEL": "loop-8",
            "OTEL_EXPORTER_OTLP_ENDPOINT": REFUSED,
            **options,
        },
    )


@pytest.mark.parametrize("agent", AGENTS)
def test_an_endpoint_that_refuses(
    agent: str, server: ScriptedModel, alone: Callable[[str], Seen]
) -> None:
    beside = ended(example(agent, server))
    assert "hard_loop (critical)" in beside.err
    assert_same(alone(agent), beside)


@pytest.mark.parametrize("agent", QUICK)
def test_faults_from_the_start(
    agent: str, server: ScriptedModel, alone: Callable[[str], Seen]
) -> None:
    beside = ended(example(agent, server, faults="settings,rows"))
    assert "internal fault" in beside.err
    assert "secret" not in beside.err
    assert_same(alone(agent), beside)


@pytest.mark.parametrize("agent", QUICK)
def test_an_endpoint_that_is_silent(
    agent: str, server: ScriptedModel, silent: str, alone: Callable[[str], Seen]
) -> None:
    beside = ended(example(agent, server, OTEL_EXPORTER_OTLP_ENDPOINT=silent))
    assert "hard_loop (critical)" in beside.err
    assert_same(alone(agent), beside)


@pytest.mark.parametrize("agent", QUICK)
def test_a_switched_off_sdk(
    agent: str, server: ScriptedModel, alone: Callable[[str], Seen]
) -> None:
    assert_same(alone(agent), ended(example(agent, server, OTEL_SDK_DISABLED="true")))


@pytest.mark.parametrize("agent", QUICK)
def test_no_sdk(agent: str, server: ScriptedModel, alone: Callable[[str], Seen]) -> None:
    command = (str(HERE / "by_hand.py"), str(EXAMPLES / agent / "agent.py"))
    beside = ended(example(agent, server, command=command, AUTO="off"))
    assert beside.err.count("no OpenTelemetry SDK is set up") == 1
    assert "Traceback" not in beside.err
    assert_same(alone(agent), beside)


def bad_end(ending: str, endpoint: str, **options: object) -> subprocess.Popen[str]:
    return start(ENDINGS, ending, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, **options)


@pytest.mark.parametrize(
    ("ending", "code", "tools", "agents"),
    [
        ("return", 0, {"search": 6}, 1),
        ("exit", 5, {"search": 6, "leave": 1}, 1),
        ("raise", 1, {"search": 6}, 1),
        ("threads", 0, {"search": 70}, 1),
        ("alarm", 0, {"search": 507}, 1),
    ],
)
def test_all_spans_of_an_agent_that_ends_by(
    ending: str, code: int, tools: dict[str, int], agents: int, receiver: Receiver
) -> None:
    beside = ended(bad_end(ending, receiver.url))
    assert_same(ended(bad_end(ending, REFUSED, without=True)), beside)
    assert beside.code == code
    names = receiver.names
    assert names["invoke_agent shop"] == agents
    for tool, count in tools.items():
        assert names[f"execute_tool {tool}"] >= count
    if ending != "alarm":  # how often that goes off is up to the machine
        assert sum(names.values()) == agents + sum(tools.values())
    assert receiver.severities[:2] == ["warning", "critical"]


def test_a_tool_that_forks(receiver: Receiver) -> None:
    beside = ended(bad_end("fork", receiver.url))
    assert_same(ended(bad_end("fork", REFUSED, without=True)), beside)
    ids = [(span.name, span.span_id) for span in receiver.spans]
    ours = {name for name, _ in ids}
    assert {"execute_tool search", "execute_tool fork", "execute_tool fork_and_go"} <= ours
    searches = {span for name, span in ids if name == "execute_tool search"}
    assert len(searches) == 12, "six of the parent, six of the child that ends in peace"


@pytest.mark.parametrize(("ending", "code"), [("os._exit", 7), ("term", -signal.SIGTERM)])
def test_what_ended_before_a_sudden_end_is_there(
    ending: str, code: int, receiver: Receiver
) -> None:
    process = bad_end(ending, receiver.url, OTEL_BSP_SCHEDULE_DELAY="60000")
    assert receiver.wait_until(lambda: "critical" in receiver.severities)
    assert receiver.names["execute_tool search"] >= 5
    assert_same(_end(bad_end(ending, REFUSED, without=True), ending), _end(process, ending))
    assert process.returncode == code


def _end(process: subprocess.Popen[str], ending: str) -> Seen:
    for _ in range(6):
        process.stdout.readline()
    if ending == "term":
        process.send_signal(signal.SIGTERM)
        return ended(process)
    return ended(process, "now\n")


def test_an_interrupt_during_a_flush(silent: str) -> None:
    runs = []
    for without in (True, False):
        process = bad_end("interrupt", silent, without=without)
        for _ in range(6):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        runs.append(ended(process))
    assert_same(*runs)
    assert runs[0].code == -signal.SIGINT
    assert "KeyboardInterrupt" in runs[1].err
    assert "internal fault" not in runs[1].err
