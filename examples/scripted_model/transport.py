"""HTTP/1.1 with keep-alive and server-sent events, for a service that answers JSON with JSON."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, TypeAlias, cast

from .script import Json
from .wire import Event, fresh_id

Answer: TypeAlias = "tuple[int, Json | list[Event]]"
"""An HTTP status with a JSON body or with server-sent events."""

Service: TypeAlias = Callable[[str, str, Mapping[str, str], Json], Answer]
"""Answers a request: method, path without a query, headers in lower case, JSON body."""


class HttpServer(ThreadingHTTPServer):
    """A server on 127.0.0.1 with a thread for each connection, all of which it can end.

    Args:
        port: Where to listen; 0 takes a free port.
        service: What answers the requests.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, service: Service) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.service = service
        self._connections: dict[socket.socket, Thread] = {}
        self._lock = Lock()
        self._acceptor = Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    def start(self) -> None:
        """Begin to serve, in a thread."""
        self._acceptor.start()

    def stop(self) -> None:
        """Close all connections and wait for all threads."""
        if self._acceptor.is_alive():
            self.shutdown()
            self._acceptor.join()
        self.server_close()
        with self._lock:
            connections = list(self._connections.items())
        for connection, thread in connections:
            with suppress(OSError):  # its client or its thread may have closed it by now
                connection.shutdown(socket.SHUT_RDWR)
            thread.join()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start the thread of a new connection."""
        thread = Thread(target=self._serve, args=(request, client_address), daemon=True)
        with self._lock:
            self._connections[request] = thread
        thread.start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print what went wrong, unless it is that the client went away."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def _serve(self, request: socket.socket, client_address: object) -> None:
        self.process_request_thread(request, client_address)
        with self._lock:
            del self._connections[request]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = None
        if isinstance(body, dict):
            self._answer(body)
        else:
            self._send_json(400, {"error": {"message": "The body is not a JSON object."}})

    def do_GET(self) -> None:
        self._answer({})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: a line for each request would drown the agent's own output."""

    def _answer(self, body: Json) -> None:
        path = self.path.partition("?")[0]
        headers = {name.lower(): value for name, value in self.headers.items()}
        server = cast("HttpServer", self.server)
        status, answer = server.service(self.command, path, headers, body)
        if isinstance(answer, dict):
            self._send_json(status, answer)
        else:
            self._send_events(status, answer)

    def _send_json(self, status: int, body: Json) -> None:
        data = json.dumps(body).encode()
        self._send_head(status, "application/json", {"content-length": str(len(data))})
        self.wfile.write(data)

    def _send_events(self, status: int, events: list[Event]) -> None:
        self._send_head(status, "text/event-stream", {"transfer-encoding": "chunked"})
        for name, data in events:
            text = data if isinstance(data, str) else json.dumps(data)
            line = f"event: {name}\n" if name else ""
            self._send_chunk(f"{line}data: {text}\n\n".encode())
        self._send_chunk(b"")

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _send_head(self, status: int, content_type: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        fixed = {
            "content-type": content_type,
            "x-request-id": fresh_id("req"),
            "retry-after-ms": "1",
        }
        for name, value in {**fixed, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
