"""The scripted model: picks the scenario, speaks the wire format, keeps a log of the requests."""

from __future__ import annotations

import logging
from collections import deque
from threading import Event as Flag
from typing import TYPE_CHECKING

from .anthropic_wire import MessagesWire
from .canary import planted
from .openai_wire import ChatWire, openai_error
from .responses_wire import ResponsesWire
from .scenarios import scenario_named
from .script import Usage
from .transport import Answer, HttpServer
from .wire import Wire, WireError, with_call_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from typing_extensions import Self

    from .script import Json, Reply, Scenario, Turn

_logger = logging.getLogger(__name__)
_SECRET_HEADERS = frozenset({"authorization", "x-api-key", "cookie"})


class ScriptedModel:
    """A model service on 127.0.0.1 that says what a script says.

    It speaks OpenAI's chat completions and responses and Anthropic's messages, plain and
    streaming, and `base_url` fits both SDKs. The model name chooses the scenario: one of
    `scenarios`, else the grammar of `scenarios.py`; any other name is an unknown model (404).

    Args:
        scenarios: Scenarios by model name.
        port: Where to listen; 0 takes a free port.
        latency_s: Seconds that each reply takes.
        failures: HTTP statuses of the first requests, in order, in place of a reply.
        canary: A word to put into all that the model says: texts, thinking, string arguments and
            names of tools that were not offered.
        marker: What ends the scenario `nudge` when a tool result contains it.
        log_size: How many requests `requests` keeps, each with its whole history.
    """

    def __init__(
        self,
        *,
        scenarios: Mapping[str, Scenario] | None = None,
        port: int = 0,
        latency_s: float = 0.0,
        failures: Sequence[int] = (),
        canary: str = "",
        marker: str = "loopguard",
        log_size: int = 1000,
    ) -> None:
        self._requests: deque[Json] = deque(maxlen=log_size)
        self._scenarios = dict(scenarios or {})
        self._latency_s = latency_s
        self._failures = deque(failures)
        self._canary = canary
        self._marker = marker
        responses = ResponsesWire()
        self._wires: dict[str, Wire] = {
            "/chat/completions": ChatWire(),
            "/responses": responses,
            "/messages": MessagesWire(),
        }
        self._lookups: dict[str, Callable[[Json], Json]] = {
            "GET /models": self._models,
            "POST /conversations": responses.create_conversation,
            "POST /messages/count_tokens": lambda _: {"input_tokens": Usage().input},
        }
        self._closing = Flag()
        self._http = HttpServer(port, self._serve)

    @property
    def base_url(self) -> str:
        """The address for an SDK's `base_url`, as `http://127.0.0.1:PORT`."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def requests(self) -> list[Json]:
        """The latest model calls, oldest first, as `{"path", "headers", "body"}`.

        Header names are in lower case; headers with credentials are left out.
        """
        return list(self._requests)

    def start(self) -> None:
        """Begin to serve, in a thread."""
        self._http.start()

    def close(self) -> None:
        """Close all connections and wait for all threads of the server."""
        self._closing.set()
        self._http.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self, method: str, path: str, headers: Mapping[str, str], body: Json) -> Answer:
        endpoint = path.removeprefix("/v1")
        lookup = self._lookups.get(f"{method} {endpoint}")
        if lookup is not None:
            return 200, lookup(body)
        wire = self._wires.get(endpoint) if method == "POST" else None
        if wire is None:
            return 404, openai_error(404, "unknown_url", f"No such endpoint: {method} {path}")
        visible = {name: value for name, value in headers.items() if name not in _SECRET_HEADERS}
        self._requests.append({"path": path, "headers": visible, "body": body})
        self._closing.wait(self._latency_s)
        try:
            return self._reply(wire, body)
        except WireError as problem:
            return problem.status, wire.error(problem.status, problem.code, str(problem))
        except Exception as problem:
            _logger.exception("the request or its scenario is wrong")
            return 400, wire.error(400, "scripted_model", repr(problem))

    def _reply(self, wire: Wire, body: Json) -> Answer:
        try:
            failure = self._failures.popleft()
        except IndexError:
            turn = wire.read(body)
            reply = with_call_ids(self._decide(turn), wire.call_prefix)
            if body.get("stream"):
                return 200, list(wire.stream(turn, reply))
            return 200, wire.plain(turn, reply)
        raise WireError(failure, "scripted_failure", "The script says that this request fails.")

    def _decide(self, turn: Turn) -> Reply:
        scenario = self._scenarios.get(turn.model) or scenario_named(
            turn.model, marker=self._marker
        )
        if scenario is None:
            raise WireError(404, "model_not_found", f"No scenario is called {turn.model!r}.")
        reply = scenario(turn)
        return planted(reply, turn, self._canary) if self._canary else reply

    def _models(self, _: Json) -> Json:
        """The scenarios given in code, in a form that both providers' SDKs read."""
        models: list[Json] = [
            {
                "id": name,
                "object": "model",
                "created": 0,
                "owned_by": "scripted",
                "type": "model",
                "display_name": name,
                "created_at": "1970-01-01T00:00:00Z",
            }
            for name in self._scenarios
        ]
        return {"object": "list", "data": models, "has_more": False}
