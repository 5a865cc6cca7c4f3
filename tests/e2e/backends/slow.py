"""Something slow between a sender and a backend: it takes each request and answers much later."""

from __future__ import annotations

import threading
from contextlib import closing
from http.client import HTTPConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.serving import Answer, Serving

if TYPE_CHECKING:
    from collections.abc import Mapping


class Slow(Serving):
    """Passes OTLP over HTTP on to a backend, after a wait, inside the `with` block.

    Args:
        backend: where it passes on to, as `http://127.0.0.1:4318`.
        wait_s: how long each request waits.
    """

    def __init__(self, backend: str, wait_s: float) -> None:
        super().__init__()
        self._address = urlsplit(backend).netloc
        self._wait_s = wait_s
        self._leaving = threading.Event()

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer | None:
        if self._leaving.wait(self._wait_s):
            return None
        with closing(HTTPConnection(self._address, timeout=10)) as to:
            to.request("POST", path, body, dict(headers))
            answer = to.getresponse()
            return Answer(answer.status, answer.read(), answer.headers["content-type"])

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        super().__exit__()
