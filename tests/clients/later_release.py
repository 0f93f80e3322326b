"""Responses and events as a later release may send them: with unknown fields and unknown values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deskwire.http.description.openapi.open_schemas import EXTENSIBLE

ADDED: Final = {"addedLater": {"text": "new", "numbers": [1, 2.5], "none": None}, "alsoAddedLater": "new"}
"""The fields that each object gets."""
VALUE: Final = "a_value_of_a_later_release"


def with_additions(value: Any, schema: Mapping[str, Any], components: Mapping[str, Any]) -> Any:
    """Return a value with an unknown field in each object, and an unknown value for each extensible string.

    Args:
        schema: the value's schema, as served.
        components: the schemas that it refers to.
    """
    match _chosen(value, schema, components):
        case {"items": items} if isinstance(value, list):
            return [with_additions(each, items, components) for each in value]
        case {"properties": fields} if isinstance(value, dict):
            found = {
                name: with_additions(each, fields.get(name, {}), components) for name, each in value.items()
            }
            return found | ADDED
        case {"additionalProperties": Mapping() as values} if isinstance(value, dict):
            return {name: with_additions(each, values, components) for name, each in value.items()}
        case {"type": "object", "additionalProperties": True} if isinstance(value, dict):
            return value | ADDED
        case found if EXTENSIBLE in found and isinstance(value, str):
            return VALUE
        case _:
            return value


def _chosen(value: Any, schema: Mapping[str, Any], components: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema without a reference, and that of the option that the value has."""
    while "$ref" in schema or "anyOf" in schema:
        if "$ref" in schema:
            schema = components[schema["$ref"].rpartition("/")[2]]
        else:
            options = [_chosen(value, each, components) for each in schema["anyOf"]]
            schema = next(each for each in options if _has_type(value, each))
    return schema


def _has_type(value: Any, schema: Mapping[str, Any]) -> bool:
    match schema.get("type"):
        case None:
            return True
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, int | float) and not isinstance(value, bool)
