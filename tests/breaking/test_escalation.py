"""Asking a human: nothing but a yes is a yes, whatever the callback does."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.breaking.escalation import Request, Verdict, escalate, terminal
from otel_loopguard.breaking.webhook import SIGNATURE, TIMESTAMP, webhook
from otel_loopguard.core.model import Pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REQUEST = Request("run-1", "booker", "pay", Pattern.GUARDRAIL_LOOP, "pay was refused 3 times")
SECRET = b"shared"

Answer = tuple[int, dict[str, str], bytes]


def ended(ask: Callable[[Request], object], timeout_s: float = 5.0) -> Verdict:
    async def callback(request: Request, /) -> object:
        result = ask(request)
        return await result if asyncio.iscoroutine(result) else result

    return asyncio.run(escalate(REQUEST, callback, timeout_s=timeout_s))


def test_true_is_a_yes() -> None:
    assert ended(lambda _: True) is Verdict.APPROVED


@given(st.one_of(st.none(), st.just(value=False), st.integers(), st.text(), st.binary()))
def test_all_else_is_a_no(answer: object) -> None:
    assert ended(lambda _: answer) is Verdict.REFUSED


def test_silence_is_a_no() -> None:
    assert ended(lambda _: asyncio.sleep(60, result=True), timeout_s=0.05) is Verdict.TIMEOUT


@pytest.mark.parametrize("fault", [ValueError("secret text"), asyncio.TimeoutError(), OSError()])
def test_a_callback_that_raises_is_a_no_and_its_text_is_not_logged(
    fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def failing() -> bool:
        raise fault

    assert ended(lambda _: failing()) is Verdict.ERROR
    assert len(caplog.records) == 1
    assert "secret" not in caplog.text


def test_a_cancellation_goes_on() -> None:
    async def cancelled() -> None:
        task = asyncio.ensure_future(escalate(REQUEST, never, timeout_s=60))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def never(_: Request, /) -> bool:
        await asyncio.Event().wait()
        return True

    asyncio.run(cancelled())


@pytest.mark.parametrize(
    ("line", "verdict"),
    [("y", Verdict.APPROVED), (" YES ", Verdict.APPROVED), ("", Verdict.REFUSED),
     ("n", Verdict.REFUSED), ("yes please", Verdict.REFUSED)],
)  # fmt: skip
def test_the_terminal_shows_the_evidence_and_takes_only_a_yes(line: str, verdict: Verdict) -> None:
    shown: list[str] = []

    def read(prompt: str) -> str:
        shown.append(prompt)
        return line

    assert asyncio.run(escalate(REQUEST, terminal(read=read))) is verdict
    assert "pay was refused 3 times" in shown[0]
    assert "booker (run-1)" in shown[0]


def test_the_terminal_asks_whether_a_run_may_go_on() -> None:
    shown: list[str] = []
    ask = terminal(read=lambda prompt: shown.append(prompt) or "y")  # type: ignore[func-returns-value]
    assert asyncio.run(escalate(replace(REQUEST, tool=None), ask)) is Verdict.APPROVED
    assert shown == ["pay was refused 3 times\nMay booker (run-1) go on? [y/N] "]


def test_a_terminal_that_is_closed_is_a_no() -> None:
    def read(_: str) -> str:
        raise EOFError

    assert asyncio.run(escalate(REQUEST, terminal(read=read))) is Verdict.ERROR


def test_a_human_who_does_not_answer_keeps_no_program_from_ending() -> None:
    program = (
        "import asyncio, time\n"
        "from otel_loopguard.breaking import Request, escalate, terminal\n"
        "ask = terminal(read=lambda _: time.sleep(600))\n"
        "print(asyncio.run(escalate(Request('r', None, 't', None, 'e'), ask, timeout_s=0.1)).value)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.strip() == "escalation_timeout"


class _Handler(BaseHTTPRequestHandler):
    """Answers from the server's list and keeps what was asked."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append((self.command, self.path, dict(self.headers), body))  # type: ignore[attr-defined]
        answers: list[Answer] = self.server.answers  # type: ignore[attr-defined]
        status, headers, content = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _answer  # noqa: N815 - the base's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Be silent."""


@contextmanager
def server(*answers: Answer) -> Iterator[ThreadingHTTPServer]:
    """A real HTTP server that gives these answers in turn, the last one for ever."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as served:
        served.answers, served.asked = list(answers), []  # type: ignore[attr-defined]
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        try:
            yield served
        finally:
            served.shutdown()
            thread.join()


def asked(served: ThreadingHTTPServer) -> list[tuple[str, str, dict[str, str], bytes]]:
    return served.asked  # type: ignore[attr-defined]


def ask(served: ThreadingHTTPServer, **more: float) -> Verdict:
    url = f"http://127.0.0.1:{served.server_port}/ask"
    hook = webhook(url, SECRET, poll_s=0.01, clock=lambda: 1_700_000_000.0, **more)  # type: ignore[arg-type]
    return asyncio.run(escalate(REQUEST, hook, timeout_s=20))


YES = (200, {}, b'{"approved": true}')
LATER = (202, {"Location": "/answers/7"}, b"")


@pytest.mark.parametrize(
    ("body", "verdict"),
    [(b'{"approved": true}', Verdict.APPROVED), (b'{"approved": false}', Verdict.REFUSED),
     (b'{"approved": "true"}', Verdict.REFUSED), (b"{}", Verdict.REFUSED), (b"?", Verdict.ERROR)],
)  # fmt: skip
def test_the_webhook_takes_only_approved_true(body: bytes, verdict: Verdict) -> None:
    with server((200, {}, body)) as served:
        assert ask(served) is verdict


def test_the_webhook_signs_what_it_sends_and_sends_no_more_than_the_request() -> None:
    with server(YES) as served:
        ask(served)
    [(method, path, headers, body)] = asked(served)
    assert (method, path) == ("POST", "/ask")
    assert json.loads(body) == {
        "run_id": "run-1", "agent": "booker", "tool": "pay", "pattern": "guardrail_loop",
        "evidence": "pay was refused 3 times",
    }  # fmt: skip
    stamp = headers[TIMESTAMP]
    signed = hmac.new(SECRET, stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    assert headers[SIGNATURE] == signed
    assert stamp == "1700000000"


def test_the_webhook_looks_for_a_late_answer() -> None:
    with server(LATER, LATER, YES) as served:
        assert ask(served) is Verdict.APPROVED
    assert [(method, path) for method, path, _, _ in asked(served)] == [
        ("POST", "/ask"), ("GET", "/answers/7"), ("GET", "/answers/7"),
    ]  # fmt: skip


def test_a_late_answer_that_never_comes_is_a_no() -> None:
    with server(LATER) as served:
        assert ask(served, timeout_s=0.05) is Verdict.REFUSED


def test_the_webhook_tries_again_and_gives_up() -> None:
    with server((503, {}, b""), YES) as served:
        assert ask(served) is Verdict.APPROVED
    assert len(asked(served)) == 2
    with server((500, {}, b"")) as served:
        assert ask(served) is Verdict.ERROR
    with server((302, {"Location": "/x"}, b"")) as served:
        assert ask(served) is Verdict.ERROR, "a redirection is not followed"
