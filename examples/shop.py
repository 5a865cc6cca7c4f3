"""The tools of the example agents: a small shop's back office, without any network."""

from __future__ import annotations

import itertools

ORDERS = {
    f"order-{n}": f"order {n}: 3 chairs, paid, leaves the warehouse in {n} days" for n in range(99)
}
HELP = (
    "No order matches. Orders are found by their number. Ask the customer for the number that is "
    "printed on the confirmation, and look the order up with it."
)

_notes: list[str] = []
_looks = itertools.count(1)
_tries = itertools.count(1)


def search_orders(query: str) -> str:
    """Search the orders by a word."""
    return next((text for text in ORDERS.values() if query in text), HELP)


def list_orders(page: int) -> str:
    """List the orders, three a page."""
    return "\n".join(list(ORDERS.values())[3 * page : 3 * page + 3])


def export_status(export: str) -> str:
    """Say how far an export is."""
    look = next(_looks)
    return f"{export} is done" if look % 5 == 0 else f"{export} is pending"


def convert_price(amount: str) -> str:
    """Convert a price to euros; the service is not always there."""
    if next(_tries) % 3:
        return "error: the exchange service is not available"
    return f"{amount} is 12.50 euros"


def read_notes(customer: str) -> str:
    """Read the notes on a customer."""
    return f"{len(_notes)} notes on {customer}: " + "; ".join(_notes)


def write_note(text: str) -> str:
    """Write a note on a customer."""
    _notes.append(text)
    return "saved"


TOOLS = [search_orders, list_orders, export_status, convert_price, read_notes, write_note]
BY_NAME = {tool.__name__: tool for tool in TOOLS}


def schema(tool: object) -> dict[str, object]:
    """A tool's parameters as JSON schema: each takes one."""
    (name, kind), *_ = tool.__annotations__.items()
    of = {"str": "string", "int": "integer"}[kind if isinstance(kind, str) else kind.__name__]
    return {"type": "object", "properties": {name: {"type": of}}, "required": [name]}
