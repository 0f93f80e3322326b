"""The fields of a pydantic model as rows: name, type with limits, default. Nested names have dots."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel

Schema = Mapping[str, Any]

_UNBOUNDED: Final = 1 << 63  # the bound of stored integers, which is not shown as a limit


def rows(model: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    """Yield the name, type and default of each field. The fields of an object follow the object."""
    schema = model.model_json_schema()
    yield from _rows(schema, schema.get("$defs", {}), "")


def _rows(schema: Schema, known: Schema, prefix: str) -> Iterator[tuple[str, str, str]]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        shape = _resolved(field, known)
        yield f"`{prefix}{name}`", _type(shape, known), _default(name in required, field)
        inner, mark = shape, "."
        if shape.get("type") == "array":
            inner, mark = _resolved(shape["items"], known), "[]."
        if "properties" in inner:
            yield from _rows(inner, known, f"{prefix}{name}{mark}")


def _resolved(field: Schema, known: Schema) -> Schema:
    """Return the schema of a field without references, and without the null of an optional field."""
    options = [option for option in field.get("anyOf", ()) if option.get("type") != "null"]
    if options:
        return {**_resolved(options[0], known), "nullable": len(options) < len(field["anyOf"])}
    reference = field.get("$ref")
    return {**known[reference.rpartition("/")[2]]} if reference else field


def _type(shape: Schema, known: Schema) -> str:
    words = [_name(shape, known), *_limits(shape)]
    return ", ".join(words) + (" or null" if shape.get("nullable") else "")


def _name(shape: Schema, known: Schema) -> str:
    if "enum" in shape:
        return "one of " + ", ".join(f"`{value}`" for value in shape["enum"])
    kind = shape.get("type")
    if kind == "array":
        return f"array of {_name(_resolved(shape['items'], known), known)}"
    return str(kind or "any JSON value")


def _limits(shape: Schema) -> Iterator[str]:
    for least, most, unit in (
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
        ("minProperties", "maxProperties", " keys"),
        ("minimum", "maximum", ""),
    ):
        low, high = shape.get(least), shape.get(most)
        if low is not None and high is not None:
            yield f"{low:,} to {high:,}{unit}"
        elif high is not None:
            yield f"at most {high:,}{unit}"
        elif low is not None:
            yield f"at least {low:,}{unit}"
    if shape.get("exclusiveMaximum", _UNBOUNDED) < _UNBOUNDED:
        yield f"less than {shape['exclusiveMaximum']:,}"


def _default(required: bool, field: Schema) -> str:
    if required:
        return "required"
    default = field.get("default")
    return "" if default is None else f"`{json.dumps(default)}`"
