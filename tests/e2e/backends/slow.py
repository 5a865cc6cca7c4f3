"""Something slow between a sender and a backend: it takes each request and answers much later."""

from __future__ import annotations

import threading
from contextlib import closing
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from typing_extensions import Self


class Slow:
    """Passes OTLP over HTTP on to a backend, after a wait, inside the `with` block.

    Args:
        backend: where it passes on to, as `http://127.0.0.1:4318`.
        wait_s: how long each request waits.
    """

    def __init__(self, backend: str, wait_s: float) -> None:
        address = urlsplit(backend).netloc
        self._leaving = leaving = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if leaving.wait(wait_s):
                    self.close_connection = True
                    return
                with closing(HTTPConnection(address, timeout=10)) as to:
                    to.request("POST", self.path, body, dict(self.headers))
                    answer = to.getresponse()
                    said = answer.read()
                self.send_response(answer.status)
                self.send_header("content-type", answer.headers["content-type"])
                self.send_header("content-length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def otlp_http(self) -> str:
        """Where it takes OTLP over HTTP."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
