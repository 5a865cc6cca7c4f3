"""A model service whose connection breaks in the middle of each response."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

from examples.scripted_model import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def torn_model() -> Iterator[str]:
    """The address of a scripted model of which only the first half of each response arrives."""
    with ScriptedModel() as whole:

        class Half(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                json = {"Content-Type": "application/json"}
                with urlopen(Request(whole.base_url + self.path, body, json)) as response:  # noqa: S310
                    answer, kind = response.read(), response.headers["Content-Type"]
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer[: len(answer) // 2])
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Half)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
