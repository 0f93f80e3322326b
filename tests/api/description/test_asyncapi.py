"""The description of the events: its messages match those that the service sends, and its examples are valid."""

from __future__ import annotations

from functools import cache
from typing import Any

import httpx
import jsonschema_rs
import orjson
from click.testing import CliRunner

from deskwire.cli import cli
from deskwire.engine.events.types import CATALOG, LISTABLE, STORED
from deskwire.http.description.asyncapi.document import document
from deskwire.http.stream import pusher
from tests.support.api.openapi_check import described
from tests.support.api.service import Service


@cache
def told() -> dict[str, Any]:
    return document()


def problems_of(value: Any, schema: dict[str, Any]) -> list[str]:
    """Return the problems of a value. A discriminator is a hint that validators may ignore."""
    validator = jsonschema_rs.Draft202012Validator({**schema, "components": told()["components"]})
    return [f"{each.instance_path}: {each.message}" for each in validator.iter_errors(value)]


def test_every_type_of_event_is_on_the_channels_that_carry_it() -> None:
    channels = told()["channels"]
    assert channels["webhook"]["messages"].keys() == {f"webhook.{kind}" for kind in described()["webhooks"]}
    consumers = {kind for kind in CATALOG if kind in STORED or CATALOG[kind].opt_in}
    for name in ("projectEvents", "conversationEvents", "contactEvents"):
        assert channels[name]["messages"].keys() == {f"stream.{kind}" for kind in consumers}, name
    assert set(LISTABLE) >= consumers


def test_every_message_has_an_example_that_fits_it() -> None:
    for name, message in told()["components"]["messages"].items():
        assert message["examples"], name
        for example in message["examples"]:
            assert problems_of(example["payload"], message["payload"]) == [], name
            if "headers" in message:
                assert problems_of(example["headers"], message["headers"]) == [], name


def test_every_schema_is_referred_to_by_a_message_or_another_schema() -> None:
    components = told()["components"]
    text = orjson.dumps([components["messages"], components["schemas"]]).decode()
    unused = [name for name in components["schemas"] if f'"#/components/schemas/{name}"' not in text]
    assert unused == []


def test_every_object_with_fields_is_a_named_component() -> None:
    """Generators call any other one AnonymousSchema_17."""

    def inline(value: Any, at: str) -> list[str]:
        if isinstance(value, list):
            return [found for index, each in enumerate(value) for found in inline(each, f"{at}/{index}")]
        if not isinstance(value, dict):
            return []
        inner = [
            found
            for name, each in value.items()
            if name not in ("examples", "example")
            for found in inline(each, f"{at}/{name}")
        ]
        return [at, *inner] if isinstance(value.get("properties"), dict) else inner

    components = told()["components"]
    for name, message in components["messages"].items():
        assert inline(message, name) == []
    for name, schema in components["schemas"].items():
        assert [at for at in inline(schema, name) if at != name] == []


async def test_real_events_fit_the_messages_of_webhooks_and_stream(service: Service) -> None:
    made = await service.create(title="Order")
    await service.say(made, "Hello")
    await service.do(made, "close", closedBy="bot")
    await service.do(made, "reopen")
    await service.http.put("/s2s/contacts/u1", json={"name": "Ada"})
    events = await service.events()
    assert len(events) >= 5
    messages = told()["components"]["messages"]
    for event in events:
        assert problems_of(event, messages[f"webhook.{event['type']}"]["payload"]) == []
        frame = orjson.loads(
            pusher.event(event["type"], "private-project-prj_01KZ000000000000000000SH0P", orjson.dumps(event))
        )
        streamed = messages[f"stream.{event['type']}"]["payload"]
        assert problems_of(frame, streamed) == []
        described_frame = told()["components"]["schemas"][streamed["$ref"].rpartition("/")[2]]
        content = described_frame["properties"]["data"]["x-contentSchema"]
        assert problems_of(orjson.loads(frame["data"]), content) == []


async def test_it_is_served_as_the_command_prints_it(service: Service) -> None:
    async with httpx.AsyncClient(base_url=service.url) as anybody:
        answer = await anybody.get("/v3/asyncapi.json")
        assert answer.json() == told()
        again = await anybody.get("/v3/asyncapi.json", headers={"If-None-Match": answer.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
    printed = CliRunner().invoke(cli, ["reference", "asyncapi"])
    assert orjson.loads(printed.stdout) == told()
