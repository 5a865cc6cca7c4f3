"""langchain-core: tools and chat models, whatever agent or graph calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from otel_loopguard.instrumentation import langchain_models, replacing
from otel_loopguard.instrumentation.hooks import awaits, calls
from otel_loopguard.instrumentation.langchain_callbacks import shown_by_another
from otel_loopguard.instrumentation.langchain_models import ModelRun, Reply
from otel_loopguard.instrumentation.langchain_tools import begin_tool, formatting
from otel_loopguard.instrumentation.models import open_model
from otel_loopguard.instrumentation.table import Row

if TYPE_CHECKING:
    from otel_loopguard.instrumentation.held import Held
    from otel_loopguard.instrumentation.replacing import Given
    from otel_loopguard.instrumentation.wiring import Wiring


def _model(wired: Wiring, model: Any, given: Given) -> ModelRun | Held | None:
    if langchain_models.are_several(given.first("messages")):
        return None  # the provider's SDK shows each
    name, provider = langchain_models.model_and_provider(model, given.kwargs)
    later = shown_by_another()
    call = open_model(wired.pipeline, name, provider, later=later)
    if call is None:
        return None
    call.expected = type(model).__name__ if later else None
    return ModelRun(call).advised(wired, model, given)


_TOOLS: Final = "langchain_core.tools.base"
_MODELS: Final = "langchain_core.language_models.chat_models"

SUPPORTED: Final = "langchain-core >= 0.3, < 2"
ROWS: Final = (
    Row(_TOOLS, "BaseTool.run", calls(begin_tool)),
    Row(_TOOLS, "BaseTool.arun", awaits(begin_tool)),
    Row(_TOOLS, "_format_output", formatting),
    Row(_MODELS, "BaseChatModel.generate", replacing.calls(_model)),
    Row(_MODELS, "BaseChatModel.agenerate", replacing.awaits(_model)),
    Row(_MODELS, "BaseChatModel.stream", replacing.iterates(_model, Reply)),
    Row(_MODELS, "BaseChatModel.astream", replacing.aiterates(_model, Reply)),
)
