"""Annotations of Python for the schemas of the description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sdk.generate.description import Schema, schema_name

_PLAIN: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "object": "dict[str, Any]",
    "array": "list[Any]",
}


def annotation(schema: Schema, *, newer: bool, prefix: str = "") -> str:
    """Return the annotation of a schema.

    Args:
        newer: True if values come from a service that may be newer, so that enumerations are open. Unions are not:
            type checkers narrow a union by its discriminator only if all of its members have literals there.
        prefix: of the names of components, such as `types.`.
    """
    parts = dict.fromkeys(_parts(schema, newer, prefix))
    if "Any" in parts:
        return "Any"
    if "str" in parts and not newer:
        parts = {each: None for each in parts if not each.startswith("Literal[")}
    ordered = [each for each in parts if each != "None"] + [each for each in parts if each == "None"]
    return " | ".join(ordered)


def _parts(schema: Schema, newer: bool, prefix: str) -> Iterator[str]:
    """Yield the members of a union; one for a schema that is none."""
    if name := schema_name(schema):
        yield prefix + name
    elif members := schema.get("anyOf") or schema.get("oneOf"):
        for each in members:
            yield from _parts(each, newer, prefix)
    elif "const" in schema or "enum" in schema:
        values = schema["enum"] if "enum" in schema else [schema["const"]]
        yield f"Literal[{', '.join(map(repr, values))}]"
        if newer and any(isinstance(each, str) for each in values):
            yield "str"
    else:
        yield from _of_type(schema, newer, prefix)


def _of_type(schema: Schema, newer: bool, prefix: str) -> Iterator[str]:
    kinds = schema.get("type", [])
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind == "array" and schema.get("items"):
            yield f"list[{annotation(schema['items'], newer=newer, prefix=prefix)}]"
        elif kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
            yield f"dict[str, {annotation(schema['additionalProperties'], newer=newer, prefix=prefix)}]"
        else:
            yield _PLAIN[kind]
        if not newer and schema.get("format") == "date-time":
            yield "datetime"
    if not kinds:
        yield "Any"


def discriminators(schemas: list[Schema]) -> dict[str, str]:
    """Return the field that distinguishes each member of a union from the others, by the member's name."""
    return dict(_discriminated(schemas))


def _discriminated(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        if "discriminator" in value:
            for each in value.get("oneOf", value.get("anyOf", [])):
                if name := schema_name(each):
                    yield name, value["discriminator"]["propertyName"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _discriminated(each)
