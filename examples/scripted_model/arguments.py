"""Arguments made from a tool's JSON schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from .script import Json


def example(schema: Json, number: int = 1) -> Any:
    """A value that satisfies the common part of a JSON schema.

    Args:
        schema: The schema; `$ref` within it, `anyOf`, `enum`, `const` and the plain types count.
        number: From 1 on: another number gives another value where the schema allows it. In an
            object only one property changes: `page` or the like, else the first that can.
    """
    return _Maker(schema).make(schema, number)


class _Maker:
    def __init__(self, root: Json) -> None:
        self._root = root
        self._of_type: dict[str, Callable[[Json, int], Any]] = {
            "object": self._object,
            "array": lambda schema, number: [self.make(schema.get("items") or {}, number)],
            "string": lambda _, number: "sample" if number == 1 else f"sample-{number}",
            "integer": lambda schema, number: max(int(schema.get("minimum", 1)), 1) + number - 1,
            "number": lambda _, number: number + 0.5,
            "boolean": lambda _, number: number % 2 == 1,
            "null": lambda *_: None,
        }

    def make(self, schema: Json, number: int) -> Any:
        schema = self._resolve(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][(number - 1) % len(schema["enum"])]
        return self._of_type[_type_of(schema)](schema, number)

    def _resolve(self, schema: Json) -> Json:
        while True:
            options = [s for key in ("anyOf", "oneOf", "allOf") for s in schema.get(key, ())]
            if "$ref" in schema:
                target: Any = self._root
                for part in schema["$ref"].removeprefix("#/").split("/"):
                    target = target[part]
                schema = target
            elif options:
                schema = options[0]
            else:
                return schema

    def _object(self, schema: Json, number: int) -> Json:
        properties = {k: self._resolve(v) for k, v in schema.get("properties", {}).items()}
        wanted = schema.get("required") or list(properties)
        varied = min(wanted, key=lambda name: _rigidity(name, properties[name]), default=None)
        return {k: self.make(properties[k], number if k == varied else 1) for k in wanted}


def _rigidity(name: str, schema: Json) -> int:
    """How unnatural it is that this property changes between calls; 0 is the most natural."""
    if name in {"page", "offset", "cursor"}:
        return 0
    if "const" in schema:
        return 9
    kinds = ("integer", "string", "number", "object", "array", "boolean", "null")
    return 1 + kinds.index(_type_of(schema)) + ("enum" in schema)


def _type_of(schema: Json) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    return kind[0] if isinstance(kind, list) else kind
