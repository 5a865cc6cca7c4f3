"""A call of a LangChain chat model, plain or streamed, and what its answer says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from otel_loopguard.core.exchange import Ask, ModelResponse
from otel_loopguard.core.model import MISSING
from otel_loopguard.instrumentation import rounds
from otel_loopguard.instrumentation.advising import advised
from otel_loopguard.instrumentation.agents import new_run_id
from otel_loopguard.instrumentation.asking import Asked
from otel_loopguard.instrumentation.held import Held
from otel_loopguard.instrumentation.langchain_values import text_in, thought_in
from otel_loopguard.runtime import guarded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.context import Context

    from otel_loopguard.breaking.brief import Brief
    from otel_loopguard.instrumentation.langchain_drafts import Messages
    from otel_loopguard.instrumentation.models import ModelCall
    from otel_loopguard.instrumentation.replacing import Given
    from otel_loopguard.instrumentation.wiring import Wiring

MAX_TEXT: Final = 1_000_000

_PROVIDERS: Final = {
    "amazon_bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "cohere": "cohere",
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""LangChain's word for a provider and that of the conventions, where they differ."""


def model_and_provider(model: Any, kwargs: Mapping[str, Any]) -> tuple[str | None, str]:
    """The model asked for and its provider, as LangChain tells its own tracer."""
    said: Mapping[str, Any] = model._get_ls_params(**kwargs)  # noqa: SLF001 - no public way
    provider = str(said.get("ls_provider") or "langchain")
    return said.get("ls_model_name"), _PROVIDERS.get(provider, provider)


def are_several(given: Any) -> bool:
    """Whether `generate` is given several prompts, which are several calls."""
    return isinstance(given, list) and len(given) > 1 and isinstance(given[0], list)  # pyright: ignore[reportUnknownArgumentType]


class ModelRun:
    """A model call as its scope in LangChain."""

    __slots__ = ("_call",)

    def __init__(self, call: ModelCall) -> None:
        self._call = call

    @property
    def context(self) -> Context:
        """The context that the provider's SDK is called in."""
        return self._call.context

    def advised(self, wired: Wiring, model: Any, given: Given) -> ModelRun | Held:
        """This, with other arguments where the run is in a loop; or what stands in for the call."""

        def draft(brief: Brief | None, language: str) -> Messages:
            from otel_loopguard.instrumentation.langchain_drafts import (  # noqa: PLC0415 - seldom
                Messages,
            )

            return Messages(model, given, brief, language)

        advice = advised(wired, self._call, draft)
        if isinstance(advice, Asked):
            return advice.then(lambda _: self)
        if isinstance(advice, Held):
            return advice
        if advice is not None:
            given.replace_first(*advice)
        return self

    @guarded("response of a model")
    def finish(self, result: Any = MISSING) -> None:
        """The model has answered: with an `LLMResult`, or with a stream that was read already."""
        response = result if isinstance(result, ModelResponse) else _read(result)
        self._call.finish(response)
        if response is not None and response.asks:
            rounds.note(self._call.run.id, [ask.call_id for ask in response.asks], new_run_id())

    def fail(self, error: BaseException) -> None:
        """The call raised."""
        self._call.fail(error)


def _read(result: Any) -> ModelResponse | None:
    generations = result.generations[0] if result.generations else ()
    if not generations:
        return None
    reply = Reply()
    reply.add(generations[0].message)
    return reply.result


class Reply:
    """Reads a model's reply out of one message or out of the chunks of a stream."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._size = 0
        self._said: dict[str, Any] = {}
        self._asks: dict[str, Ask] = {}
        self._tokens = dict.fromkeys(("input_tokens", "output_tokens"), 0)

    def add(self, message: Any) -> None:
        """A message, or the next chunk of one."""
        text, thought = text_in(message.content), thought_in(message)
        self._size += len(text) + len(thought)
        if self._size <= MAX_TEXT:
            self._texts.append(text)
            self._thoughts.append(thought)
        self._said.update({k: v for k, v in message.response_metadata.items() if v is not None})
        usage: Mapping[str, int] = getattr(message, "usage_metadata", None) or {}
        for name in self._tokens:
            self._tokens[name] += usage.get(name) or 0
        asked = getattr(message, "tool_call_chunks", None) or getattr(message, "tool_calls", ())
        for call in asked:
            if call.get("id"):
                self._asks[call["id"]] = Ask(call["id"], call.get("name") or "")

    @property
    def result(self) -> ModelResponse:
        """What the model said."""
        complete = self._size <= MAX_TEXT
        said = self._said
        return ModelResponse(
            id=said.get("id"),
            model=said.get("model_name") or said.get("model"),
            text="".join(self._texts) or None if complete else None,
            thought="".join(self._thoughts) or None,
            asks=tuple(self._asks.values()),
            finish=said.get("finish_reason") or said.get("stop_reason"),
            complete=complete,
            **self._tokens,
        )
