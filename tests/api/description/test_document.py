"""The description of the API: valid, complete, and its examples are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
import orjson
import pytest
from click.testing import CliRunner
from openapi_spec_validator import validate
from pydantic import BaseModel

from deskwire.cli import cli
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import AGENTS, CATALOG, EXTENSIONS
from deskwire.http.app import ROUTES
from deskwire.http.description.event_examples import example_envelopes
from deskwire.http.description.extension_examples import extension_envelopes
from deskwire.http.description.openapi import document as made
from deskwire.http.description.openapi.references import reachable
from deskwire.http.description.openapi.samples import BODIES, LINES, sample
from deskwire.http.pages.explorer import routes as description_routes
from deskwire.http.schemas.agent_events import DATA as AGENT_DATA
from deskwire.http.schemas.base import public_name
from deskwire.http.schemas.events import DATA
from deskwire.http.schemas.extensions import DATA as EXTENDED_DATA
from tests.support.api.openapi_check import described, exact


def operations() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Method, path and description of every operation."""
    for path, methods in described()["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def problems_of(
    value: Any, schema: Mapping[str, Any], document: Mapping[str, Any] | None = None
) -> list[str]:
    """Return the problems of a value, by the served document or another one."""
    components = (document or described())["components"]
    validator = jsonschema_rs.Draft202012Validator({**schema, "components": components})
    return [f"{each.instance_path}: {each.message}" for each in validator.iter_errors(value)]


def test_it_is_a_valid_openapi_document() -> None:
    validate(dict(described()))


def test_every_route_is_there_and_nothing_else() -> None:
    assert [name for name, _ in operations()] == sorted(
        (f"{route.method} {route.public_path}" for route in ROUTES),
        key=[name for name, _ in operations()].index,
    )


def test_route_without_described_answers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = replace(description_routes.table[0], answer=None)
    monkeypatch.setattr(made, "ROUTES", (silent,))
    with pytest.raises(LookupError, match=r"openapiDocument: give the model of its response as routes\.add"):
        made.document()


def test_no_two_operations_have_the_same_name() -> None:
    counted = Counter(operation["operationId"] for _, operation in operations())
    twice = [name for name, count in counted.items() if count > 1]
    assert not twice, "give one another `operation_id` where its route is added"


def test_every_operation_is_described_with_its_answer_and_its_refusals() -> None:
    for name, operation in operations():
        assert operation["summary"], name
        assert operation["tags"], name
        statuses = operation["responses"].keys()
        assert statuses & {"200", "204", "302", "303"}, name
        assert "500" in statuses, name
        assert "401" in statuses or {} in operation["security"] or not operation["security"], name


def test_every_body_has_an_example_that_the_service_takes() -> None:
    models: dict[str, type[BaseModel]] = {
        public_name(route.body): route.body for route in ROUTES if route.body
    }
    assert models.keys() == BODIES.keys(), "deskwire.http.description.openapi.samples.BODIES has one of each"
    for name, model in models.items():
        model.model_validate(BODIES[name])
    lines = {public_name(line): line for route in ROUTES for line in route.lines}
    assert lines.keys() == LINES.keys(), "deskwire.http.description.openapi.samples.LINES has one of each"
    for name, model in lines.items():
        model.model_validate(LINES[name])
    for name, operation in operations():
        for content in operation.get("requestBody", {}).get("content", {}).values():
            if "example" in content:
                assert problems_of(content["example"], content["schema"]) == [], name


def test_every_example_of_an_answer_fits_its_schema() -> None:
    for name, operation in operations():
        for response in operation["responses"].values():
            for content in response.get("content", {}).values():
                if "example" in content:
                    assert problems_of(content["example"], content["schema"]) == [], name
    for code, example in described()["components"]["examples"].items():
        document = {"contact_merged": "ContactMergedProblem"}.get(code, "ProblemDocument")
        problem = {"$ref": f"#/components/schemas/{document}"}
        assert problems_of(example["value"], problem) == [], code


def test_every_event_type_describes_its_data() -> None:
    assert DATA.keys() == CATALOG.keys(), "deskwire.http.schemas.events.DATA has one of each"
    assert described()["webhooks"].keys() == {*CATALOG, *EXTENSIONS}
    assert EXTENDED_DATA.keys() == EXTENSIONS.keys(), "deskwire.http.schemas.extensions.DATA has one of each"
    assert AGENT_DATA.keys() == AGENTS.keys(), "deskwire.http.schemas.agent_events.DATA has one of each"


def test_the_sequence_of_every_event_is_an_integer_or_null() -> None:
    for name, schema in described()["components"]["schemas"].items():
        if {"apiVersion", "data"} <= {*schema.get("properties", {})}:
            sequence = schema["properties"]["sequence"]
            assert [each["type"] for each in sequence["anyOf"]] == ["integer", "null"], (
                f"{name}: take `sequence` from schemas.events.envelope"
            )


def test_engine_numbers_the_events_that_the_registry_lists() -> None:
    for kind, envelope in example_envelopes().items():
        numbered = isinstance(orjson.loads(envelope)["sequence"], int)
        assert numbered is CATALOG[kind].numbered, kind


def test_webhooks_have_their_own_tag_and_typed_header_examples() -> None:
    for kind, item in described()["webhooks"].items():
        assert item["post"]["tags"] == ["Webhook events"], kind
        for header in item["post"]["parameters"]:
            assert problems_of(header["example"], header["schema"]) == [], f"{kind}: {header['name']}"
    assert not any("Webhook events" in operation["tags"] for _, operation in operations())


def test_no_example_of_a_parameter_is_refused_by_its_schema() -> None:
    for name, operation in operations():
        for each in operation.get("parameters", ()):
            if "example" in each:
                assert problems_of(each["example"], each["schema"]) == [], f"{name}: {each['name']}"


def test_every_name_of_a_schema_can_be_one_in_the_languages_of_clients() -> None:
    """Go names a constructor `NewThing` after `Thing`; the generator's Java has variables with the others."""
    names = described()["components"]["schemas"].keys()
    assert {f"New{name}" for name in names} & names == set(), "name it otherwise, as two names are one in Go"
    assert {"RequestBody", "ResponseBody", "Response", "Error"} & names == set(), (
        "its Java has a variable of this name"
    )


def test_no_value_can_only_be_null() -> None:
    """Generators have no type for it; give it that of the value that it stands for."""
    schemas = described()["components"]["schemas"]
    alone = [
        f"{name}.{field}"
        for name, schema in schemas.items()
        for field, told in schema.get("properties", {}).items()
        if told.get("type") == "null"
    ]
    assert alone == []


@pytest.mark.parametrize("kind", [*CATALOG, *EXTENSIONS])
def test_the_events_that_the_engine_makes_are_those_that_are_described(kind: str) -> None:
    posted = exact()["webhooks"][kind]["post"]["requestBody"]["content"]["application/json"]
    envelope = {**example_envelopes(), **extension_envelopes()}.get(kind)
    value = posted["example"] if envelope is None else orjson.loads(envelope)
    assert problems_of(value, posted["schema"], exact()) == []
    assert problems_of({**value, "extra": 1}, posted["schema"], exact()) != []


def test_every_link_leads_to_an_operation_and_its_parameters() -> None:
    known = {operation["operationId"]: operation for _, operation in operations()}
    linked = 0
    for name, operation in operations():
        for response in operation["responses"].values():
            for link in response.get("links", {}).values():
                linked += 1
                target = known[link["operationId"]]
                wanted = {each["name"] for each in target["parameters"] if each["in"] == "path"}
                assert link["parameters"].keys() == wanted, name
    assert linked > 50


def test_every_caller_chosen_id_documents_its_encoding_in_a_path() -> None:
    found = {
        each["name"]
        for _, operation in operations()
        for each in operation.get("parameters", ())
        if each["in"] == "path" and "%2F" in each["description"]
    }
    assert found == {"userId", "entryName", "entryId", "consumerId"}
    assert all(
        "bad_path" in operation["responses"]["400"]["$ref"]
        for path, item in described()["paths"].items()
        for operation in item.values()
        if "{" in path
    )


def test_every_schema_of_the_exact_document_is_closed() -> None:
    """Requests with unknown fields are refused, and responses have none: neither can drift unseen."""
    for name, schema in exact()["components"]["schemas"].items():
        # A workflow to validate may have any fields: its check finds every problem.
        if "properties" in schema and name != "ValidateWorkflowRequest":
            assert schema["additionalProperties"] is False, name


def test_requests_are_closed_and_responses_and_events_are_open() -> None:
    """A typo in a request is refused; clients read what later releases add."""
    components = described()["components"]["schemas"]
    bodies = [operation["requestBody"] for _, operation in operations() if "requestBody" in operation]
    requested = reachable(bodies, components).keys()
    free = {"ValidateWorkflowRequest"}  # reports unknown fields as findings
    for name, schema in components.items():
        if "properties" in schema and name not in free:
            assert schema["additionalProperties"] is (name not in requested), name


def test_every_integer_has_64_bits_and_no_default() -> None:
    """Clients in Go and Java read 32 bits without the format, and those in Go send defaults."""

    def check(value: Any) -> None:
        if isinstance(value, list):
            for each in value:
                check(each)
        elif isinstance(value, dict):
            assert value.get("type") != "integer" or value.get("format") == "int64", value
            assert "default" not in value or not isinstance(value.get("type"), str), value
            for key, each in value.items():
                if key not in ("example", "examples"):
                    check(each)

    check(described()["paths"])
    check(described()["components"]["schemas"])


def test_a_request_schema_has_the_name_of_its_own_operation() -> None:
    """The TypeScript client calls the parameters of an operation `<Operation>Request`, and exports both."""
    for where, operation in operations():
        name = operation["operationId"][:1].upper() + operation["operationId"][1:] + "Request"
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        if name in described()["components"]["schemas"]:
            assert content.get("schema") == {"$ref": f"#/components/schemas/{name}"}, where


def test_a_sample_is_made_of_the_examples_of_its_fields() -> None:
    schema = {
        "type": "object",
        "required": ["a", "c"],
        "properties": {
            "a": {"anyOf": [{"$ref": "#/components/schemas/A"}, {"type": "null"}]},
            "b": {"type": "string"},
            "c": {"type": "array", "items": {"enum": ["x", "y"]}},
            "d": {"type": "integer", "examples": [4]},
        },
    }
    assert sample(schema, {"A": {"type": "string", "examples": ["one"]}}) == {"a": "one", "c": ["x"], "d": 4}


def test_the_command_prints_the_document() -> None:
    answer = CliRunner().invoke(cli, ["openapi"])
    assert answer.exit_code == 0, answer.output
    assert orjson.loads(answer.stdout) == described()
