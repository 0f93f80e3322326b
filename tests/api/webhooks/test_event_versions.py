"""Endpoints pinned to a version of events, with a planted older version: `apiVersion` of the endpoint decides."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from standardwebhooks import Webhook

from deskwire.engine.events.types import API_VERSION
from deskwire.engine.events.versions import EventVersions, OlderVersion
from tests.api.events.test_channels_agree import consuming, receiving, register
from tests.api.webhooks.test_standard_webhooks import delivered
from tests.support.api.service import Service, running
from tests.support.sockets.receivers import Receiver, Request, answering
from tests.support.stores import chosen

OLD: Final = "2026-05-01"
OLDEST: Final = "2026-02-01"


def without_sequence(_type: str, data: dict[str, Any]) -> dict[str, Any]:
    """Planted: conversations had no `sequence` before."""
    if "conversation" not in data:
        return data
    return {**data, "conversation": {k: v for k, v in data["conversation"].items() if k != "sequence"}}


def as_body(event_type: str, data: dict[str, Any]) -> dict[str, Any]:
    """Planted: the text of a message was called `body`."""
    if event_type != "message.created":
        return data
    message = dict(data["message"])
    return {**data, "message": {**message, "body": message.pop("text")}}


PLANTED: Final = EventVersions(
    API_VERSION, [OlderVersion(OLD, without_sequence), OlderVersion(OLDEST, as_body)]
)


@pytest.fixture
async def pinned(tmp_path: Path) -> AsyncIterator[Service]:
    """A service that knows two older versions."""
    async with running(tmp_path, None, PLANTED) as service:
        yield service


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


def event_of(request: Request) -> Any:
    return json.loads(request.body)


async def stored_bodies(service: Service) -> dict[str, bytes]:
    """Return the envelopes of the feed by event id."""
    feed = (await service.http.get("/s2s/events")).json()["items"]
    return {each["id"]: each for each in feed}


async def test_new_endpoint_has_the_newest_version_and_gets_the_stored_bytes(
    pinned: Service, receiver: Receiver
) -> None:
    endpoint = await register(pinned, receiver.url)
    assert endpoint["apiVersion"] == API_VERSION
    assert (await pinned.http.get(f"/s2s/webhooks/{endpoint['id']}")).json()["apiVersion"] == API_VERSION
    async with consuming(pinned) as consumer:
        await consumer.subscribe()
        await pinned.create(message={"text": "Grüße"})
        frames = [(await consumer.receive())["data"].encode() for _ in range(2)]
    await receiver.wait(2)
    assert [each.body for each in receiver.requests] == frames


async def test_each_endpoint_gets_its_version_and_stream_and_feed_the_newest(
    pinned: Service, receiver: Receiver
) -> None:
    endpoints = {
        version: await register(
            pinned, f"{receiver.url}&{version}", events=["message.created"], apiVersion=version
        )
        for version in PLANTED.names
    }
    async with consuming(pinned) as consumer:
        await consumer.subscribe()
        conversation = await pinned.create(message={"text": "Grüße"})
        frames = [json.loads((await consumer.receive())["data"]) for _ in range(2)]
    await receiver.wait(3)
    by_version = {event_of(each)["apiVersion"]: each for each in receiver.requests}
    assert by_version.keys() == endpoints.keys()
    for version, request in by_version.items():
        event, secret = event_of(request), endpoints[version]["secret"]
        assert request.path.endswith(version)
        assert Webhook(secret).verify(request.body, request.headers) == event
        assert request.headers["webhook-id"] == event["id"] == frames[1]["id"]
        assert ("sequence" in event["data"]["conversation"]) == (version == API_VERSION)
        assert ("body" in event["data"]["message"]) == (version == OLDEST)
    assert {each["apiVersion"] for each in frames} == {API_VERSION}
    assert list((await stored_bodies(pinned)).values()) == frames
    events = await pinned.http.get(f"/s2s/conversations/{conversation['id']}/events")
    assert events.json()["items"] == frames


async def test_redelivery_replay_and_recovery_render_the_version_of_the_time(
    pinned: Service, receiver: Receiver
) -> None:
    """A changed version holds for every later attempt, also at events from before."""
    endpoint = await register(pinned, receiver.url, events=["message.created"], apiVersion=OLDEST)
    path = f"/s2s/webhooks/{endpoint['id']}"
    conversation = await pinned.create(message={"text": "one"})
    first = await delivered(pinned, endpoint)
    changed = (await pinned.http.patch(path, json={"apiVersion": OLD})).json()
    assert (changed["apiVersion"], changed["updatedAt"] >= endpoint["updatedAt"]) == (OLD, True)
    await pinned.http.post(f"/s2s/deliveries/{first}/redeliver")
    await receiver.wait(2)
    await delivered(pinned, endpoint)
    await pinned.http.patch(path, json={"apiVersion": API_VERSION})
    answer = await pinned.http.post(f"{path}/replay", json={"conversationId": conversation["id"]})
    seen = 2 + answer.json()["count"]
    await receiver.wait(seen)
    assert [event_of(each)["apiVersion"] for each in receiver.requests[:3]] == [OLDEST, OLD, API_VERSION]

    await pinned.http.patch(path, json={"apiVersion": OLDEST, "status": "disabled"})
    await pinned.say(conversation, "skipped while disabled")
    await pinned.http.patch(path, json={"status": "enabled"})
    answer = await pinned.http.post(f"{path}/recover", json={"since": "2026-01-01T00:00:00Z"})
    assert answer.json()["count"] >= 1, answer.text
    await receiver.wait(seen + 1)
    assert event_of(receiver.requests[seen])["apiVersion"] == OLDEST


async def test_retries_tests_and_typing_events_have_the_pinned_version(
    pinned: Service, receiver: Receiver
) -> None:
    accept, receiver.behaviour = receiver.behaviour, answering("500 No")
    types = ["message.created", "agent.typing.started"]
    endpoint = await register(pinned, receiver.url, events=types, apiVersion=OLDEST)
    conversation = await pinned.create(message={"text": "one"})
    await receiver.wait(1)
    receiver.behaviour = accept
    await receiver.wait(2)
    assert receiver.requests[0].body == receiver.requests[1].body
    await pinned.http.post(f"/s2s/webhooks/{endpoint['id']}/test")
    await pinned.dashboard.post(f"/conversations/{conversation['id']}/typing", json={"typing": True})
    await receiver.wait(4)
    assert {event_of(each)["apiVersion"] for each in receiver.requests} == {OLDEST}


async def test_redacted_text_is_rendered_from_the_redacted_event(pinned: Service, receiver: Receiver) -> None:
    """Nothing of a rendered event is kept between attempts."""
    accept, receiver.behaviour = receiver.behaviour, answering("500 No")
    await register(pinned, receiver.url, events=["message.created"], apiVersion=OLDEST)
    conversation = await pinned.create(message={"text": "planted secret"})
    await receiver.wait(1)
    (message,) = (await pinned.http.get(f"/s2s/conversations/{conversation['id']}/messages")).json()["items"]
    path = f"/s2s/conversations/{conversation['id']}/messages/{message['id']}/redact"
    answer = await pinned.http.post(path, json={"text": True})
    assert answer.status_code == 200, answer.text
    receiver.behaviour = accept
    await receiver.wait(2)
    assert b"planted secret" in receiver.requests[0].body
    assert b"planted secret" not in receiver.requests[1].body
    assert event_of(receiver.requests[1])["apiVersion"] == OLDEST


@pytest.mark.parametrize("version", ["2026-11-02", "newest", "", API_VERSION + "Z"])
async def test_unknown_version_is_refused_with_the_known_ones(service: Service, version: str) -> None:
    endpoint = await register(service, "http://127.0.0.1:19999/")
    bad = {"url": "http://127.0.0.1:19999/", "apiVersion": version, "events": ["nope"]}
    created = await service.http.post("/s2s/webhooks", json=bad)
    changed = await service.http.patch(f"/s2s/webhooks/{endpoint['id']}", json={"apiVersion": version})
    for answer in (created, changed):
        assert answer.status_code == 422
        problem = next(each for each in answer.json()["errors"] if each["pointer"] == "/apiVersion")
        assert problem["code"] == "unknown_api_version"
        assert API_VERSION in problem["message"]
    assert "/events/0" in {each["pointer"] for each in created.json()["errors"]}


async def test_version_that_is_no_text_is_refused(service: Service) -> None:
    endpoint = await register(service, "http://127.0.0.1:19999/")
    for value in (None, 20261101, ["2026-11-01"]):
        answer = await service.http.patch(f"/s2s/webhooks/{endpoint['id']}", json={"apiVersion": value})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/apiVersion")
    shown = (await service.http.get(f"/s2s/webhooks/{endpoint['id']}")).json()
    assert shown["apiVersion"] == API_VERSION


async def test_pin_survives_a_restart_and_a_program_that_no_longer_knows_it(
    tmp_path: Path, receiver: Receiver
) -> None:
    """After a downgrade the stored envelope is sent, whose `apiVersion` tells the receiver."""
    events = ["conversation.created"]
    async with running(tmp_path, None, PLANTED) as service:
        endpoint = await register(service, receiver.url, events=events, apiVersion=OLD)
    async with running(tmp_path, None, PLANTED) as service:
        await service.create()
        await receiver.wait(1)
    async with running(tmp_path) as service:
        await service.create()
        await receiver.wait(2)
        shown = (await service.http.get(f"/s2s/webhooks/{endpoint['id']}")).json()
    assert [event_of(each)["apiVersion"] for each in receiver.requests] == [OLD, API_VERSION]
    assert shown["apiVersion"] == OLD


@pytest.mark.skipif(chosen() != "sqlite", reason="reads the file")
async def test_rendered_envelopes_are_not_stored(tmp_path: Path, receiver: Receiver) -> None:
    async with running(tmp_path, None, PLANTED) as service:
        endpoint = await register(service, receiver.url, apiVersion=OLD)
        await service.create()
        await delivered(service, endpoint)
    with closing(sqlite3.connect(tmp_path / "deskwire.sqlite3")) as connection:
        bodies = connection.execute("SELECT body FROM events WHERE type = 'conversation.created'").fetchall()
    assert [json.loads(body)["apiVersion"] for (body,) in bodies] == [API_VERSION]
