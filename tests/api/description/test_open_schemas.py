"""Responses and events accept the additions of later releases, and requests list exactly their fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import jsonschema_rs
import pytest

from deskwire.http.description.openapi.open_schemas import EXTENSIBLE, Opener, opened
from deskwire.http.description.openapi.references import reachable
from tests.support.api.openapi_check import described

_LIMITS: Final = {"pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"}
_OPERATIONS: Final = [each for path in described()["paths"].values() for each in path.values()]
_SCHEMAS: Final = described()["components"]["schemas"]
_ANSWERED: Final = reachable(
    [
        [each["responses"] for each in _OPERATIONS],
        described()["webhooks"],
        described()["components"]["responses"],
    ],
    _SCHEMAS,
)
_REQUESTED: Final = reachable([each.get("requestBody") for each in _OPERATIONS], _SCHEMAS)
_REFERENCE: Final = "#/components/schemas/"


def schemas_in(value: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each schema in a schema, with its path."""
    if isinstance(value, list):
        for each in value:
            yield from schemas_in(each, path)
    elif isinstance(value, Mapping):
        yield path, value
        for key, each in value.items():
            if key == "properties":
                for name, part in each.items():
                    yield from schemas_in(part, f"{path}/{name}")
            elif key not in ("examples", "example", "default", "const", "enum", EXTENSIBLE):
                yield from schemas_in(each, path)


def test_every_schema_belongs_to_requests_or_to_responses() -> None:
    assert _ANSWERED.keys() & _REQUESTED.keys() == set()
    assert _ANSWERED.keys() | _REQUESTED.keys() == _SCHEMAS.keys()
    assert len(_ANSWERED) > 200
    assert len(_REQUESTED) > 80


def test_every_object_of_a_response_accepts_unknown_fields() -> None:
    closed = [
        path
        for name, schema in _ANSWERED.items()
        for path, part in schemas_in(schema, name)
        if "properties" in part and part.get("additionalProperties") is not True
    ]
    assert closed == []


def test_every_object_of_a_request_lists_its_fields() -> None:
    found = [
        path
        for name, schema in _REQUESTED.items()
        for path, part in schemas_in(schema, name)
        if "properties" in part and part["additionalProperties"] is not False
    ]
    assert found == ["ValidateWorkflowRequest"], "its check names every problem of any object"


def test_no_value_of_a_response_is_limited() -> None:
    found = [
        path
        for name, schema in _ANSWERED.items()
        for path, part in schemas_in(schema, name)
        if part.keys() & {*_LIMITS, "enum", "oneOf", "discriminator"}
    ]
    assert found == []


def test_only_the_type_of_an_event_is_constant() -> None:
    constant = {
        path
        for name, schema in _ANSWERED.items()
        for path, part in schemas_in(schema, name)
        if "const" in part
    }
    events = {
        name
        for name, schema in _ANSWERED.items()
        if {"apiVersion", "data"} <= {*schema.get("properties", {})}
    }
    assert constant == {f"{name}/type" for name in events - {"Event", "AnyEvent"}}


def test_no_field_of_a_request_has_a_default_that_makes_it_required() -> None:
    for name, schema in _REQUESTED.items():
        for path, part in schemas_in(schema, name):
            assert "default" not in part, path
    described_default = _REQUESTED["CreateConversationRequest"]["properties"]["visible"]["description"]
    assert described_default.endswith("Default: `true`.")


def later(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a value as a later release may write it: more fields in each object, unknown values of strings."""
    if "$ref" in schema:
        return later(value, _SCHEMAS[schema["$ref"].rpartition("/")[2]])
    if "anyOf" in schema:
        return value if value is None else later(value, schema["anyOf"][0])
    if isinstance(value, list):
        return [later(each, schema.get("items", {})) for each in value]
    if isinstance(value, dict) and "properties" in schema:
        known = {key: later(each, schema["properties"].get(key, {})) for key, each in value.items()}
        return {"addedLater": {"x": [1]}, **known}
    return "ADDED_LATER" if EXTENSIBLE in schema else value


@pytest.mark.parametrize("operation", _OPERATIONS, ids=lambda each: each["operationId"])
def test_response_of_a_later_release_fits_its_schema(operation: Mapping[str, Any]) -> None:
    for response in operation["responses"].values():
        for content in response.get("content", {}).values():
            if "example" in content:
                schema = {**content["schema"], "components": described()["components"]}
                jsonschema_rs.validate(schema, later(content["example"], content["schema"]))


def test_known_values_are_listed_and_others_accepted() -> None:
    status = _SCHEMAS["Conversation"]["properties"]["status"]
    assert status[EXTENSIBLE] == ["OPEN", "PENDING", "CLOSED"]
    assert jsonschema_rs.is_valid(status, "ON_HOLD")


COMPONENTS: Final[dict[str, Any]] = {
    "Cat": {
        "type": "object",
        "description": "A cat.",
        "properties": {
            "type": {"const": "cat", "type": "string"},
            "name": {"type": "string"},
            "lives": {"type": "integer", "maximum": 9},
        },
        "required": ["type", "name", "lives"],
        "additionalProperties": False,
    },
    "Dog": {
        "type": "object",
        "description": "A dog.",
        "properties": {
            "type": {"const": "dog", "type": "string"},
            "name": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "tricks": {"type": "array", "items": {"enum": ["sit", "roll"], "type": "string"}},
        },
        "required": ["type", "name"],
        "additionalProperties": False,
    },
}


def test_union_of_objects_becomes_one_object_with_the_fields_of_all() -> None:
    opener = Opener(COMPONENTS)
    union = {"oneOf": [{"$ref": f"{_REFERENCE}Cat"}, {"$ref": f"{_REFERENCE}Dog"}], "x-union": "Pet"}
    assert opener.open({"type": "array", "items": union}) == {
        "type": "array",
        "items": {"$ref": f"{_REFERENCE}Pet"},
    }
    pet = opener.made["Pet"]
    assert pet["required"] == ["type", "name"]
    assert pet["properties"]["type"][EXTENSIBLE] == ["cat", "dog"]
    assert pet["properties"]["name"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert pet["properties"]["lives"] == {"type": "integer"}
    assert (
        pet["description"]
        == "A cat. Or: A dog.\n\nSome fields depend on `type`: `cat` has `lives`; `dog` has `tricks`."
    )


def test_schema_of_requests_and_responses_has_a_closed_twin_for_requests() -> None:
    operation = {
        "requestBody": {"content": {"application/json": {"schema": {"$ref": f"{_REFERENCE}Cat"}}}},
        "responses": {"200": {"content": {"application/json": {"schema": {"$ref": f"{_REFERENCE}Cat"}}}}},
    }
    document = {
        "paths": {"/cats": {"put": operation}},
        "webhooks": {},
        "components": {"schemas": COMPONENTS, "responses": {}},
    }
    result = opened(document)
    schemas = result["components"]["schemas"]
    assert schemas.keys() == {"Cat", "CatInput"}
    assert (schemas["Cat"]["additionalProperties"], schemas["CatInput"]["additionalProperties"]) == (
        True,
        False,
    )
    assert "maximum" not in schemas["Cat"]["properties"]["lives"]
    put = result["paths"]["/cats"]["put"]
    assert put["requestBody"]["content"]["application/json"]["schema"] == {"$ref": f"{_REFERENCE}CatInput"}
    assert put["responses"]["200"]["content"]["application/json"]["schema"] == {"$ref": f"{_REFERENCE}Cat"}
