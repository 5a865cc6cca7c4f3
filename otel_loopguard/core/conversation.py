"""Which model request continues which conversation."""

from otel_loopguard.core.chain import Answered, Chain, Link, LinkKind, Pending
from otel_loopguard.core.exchange import Answer, Ask, ModelRequest, ModelResponse

__all__ = [
    "Answer",
    "Answered",
    "Ask",
    "Chain",
    "Link",
    "LinkKind",
    "ModelRequest",
    "ModelResponse",
    "Pending",
]
