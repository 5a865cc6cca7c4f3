"""langchain-core: tools and chat models, whatever agent or graph calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from otel_loopguard.instrumentation import langchain_models
from otel_loopguard.instrumentation.hooks import aiterates, awaits, calls, iterates
from otel_loopguard.instrumentation.langchain_callbacks import shown_by_another
from otel_loopguard.instrumentation.langchain_models import ModelRun, Reply
from otel_loopguard.instrumentation.langchain_tools import begin_tool, formatting
from otel_loopguard.instrumentation.models import open_model
from otel_loopguard.instrumentation.table import Row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_loopguard.instrumentation.wiring import Wiring


def _model(
    wired: Wiring, model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> ModelRun | None:
    if langchain_models.are_several(args[0] if args else kwargs.get("messages")):
        return None  # the provider's SDK shows each
    name, provider = langchain_models.model_and_provider(model, kwargs)
    later = shown_by_another()
    call = open_model(wired.pipeline, name, provider, later=later)
    if call is None:
        return None
    call.expected = type(model).__name__ if later else None
    return ModelRun(call)


_TOOLS: Final = "langchain_core.tools.base"
_MODELS: Final = "langchain_core.language_models.chat_models"

SUPPORTED: Final = "langchain-core >= 0.3, < 2"
ROWS: Final = (
    Row(_TOOLS, "BaseTool.run", calls(begin_tool)),
    Row(_TOOLS, "BaseTool.arun", awaits(begin_tool)),
    Row(_TOOLS, "_format_output", formatting),
    Row(_MODELS, "BaseChatModel.generate", calls(_model)),
    Row(_MODELS, "BaseChatModel.agenerate", awaits(_model)),
    Row(_MODELS, "BaseChatModel.stream", iterates(_model, Reply)),
    Row(_MODELS, "BaseChatModel.astream", aiterates(_model, Reply)),
)
