"""A small HTTP server for tests."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self


class Answer(NamedTuple):
    """What is sent back."""

    status: int = 200
    body: bytes = b""
    content_type: str = "text/plain"


class Serving:
    """Serves on a free port of 127.0.0.1 inside the `with` block; `answer` says what."""

    def __init__(self) -> None:
        ask = self.answer

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                said = ask(self.path, self.headers, body)
                if said is None:
                    self.close_connection = True
                    return
                self.send_response(said.status)
                self.send_header("content-type", said.content_type)
                self.send_header("content-length", str(len(said.body)))
                self.end_headers()
                self.wfile.write(said.body)

            def do_GET(self) -> None:
                self.do_POST()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer | None:
        """The answer to a request; without one the connection is closed. Called by many threads."""
        raise NotImplementedError

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
