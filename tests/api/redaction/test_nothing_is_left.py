"""Redacted and deleted text leaves no byte in the data directory or on any channel; the rest stays (ADR 21)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import orjson
import pytest
import trio

from tests.api.events.test_channels_agree import consuming, receiving, register
from tests.api.redaction.test_redact import path_of
from tests.support.api.agent_stream import page
from tests.support.api.planted_texts import left, mark, overwritten, vanished
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.receivers import Receiver, Request
from tests.support.sockets.server_process import LOOK_S

PLACES: Final = ("message", "longmessage", "note", "answer", "filename", "filebytes", "newest", "imported")
"""Places of markers in the messages that will be removed, and in the receivers' answers to them."""
STAYS: Final = ("title", "before", "behind")


@asynccontextmanager
async def quoting(service: Service) -> AsyncIterator[tuple[Receiver, str]]:
    """Register a receiver that answers with a marker to the removed messages; yield it with the path of its deliveries."""

    async def quote(stream: trio.abc.Stream, request: Request) -> None:
        planted = any(mark(place).encode() in request.body for place in PLACES)
        said = mark("answer").encode() if planted else b"ok"
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said))

    async with receiving() as receiver:
        receiver.behaviour = quote
        endpoint = await register(service, receiver.url)
        yield receiver, f"/s2s/webhooks/{endpoint['id']}/deliveries"


async def delivered(service: Service, log: str) -> list[dict[str, Any]]:
    """Return the deliveries once none is pending."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            found: list[dict[str, Any]] = (await service.http.get(log, params={"limit": "200"})).json()[
                "items"
            ]
            if all(each["status"] == "delivered" for each in found):
                return found
            await trio.sleep(LOOK_S)  # poll: there is no notification


async def plant(service: Service) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Create a conversation with markers; return it and the messages that will be removed."""
    conversation = await service.create(title=mark("title"), message={"text": mark("before")})
    file = (f"{mark('filename')}.txt", mark("filebytes").encode() * 2_000, "text/plain")
    upload = (await service.http.post("/uploads", files={"file": file})).json()["id"]
    kept = {"Idempotency-Key": "once"}
    url = f"/s2s/conversations/{conversation['id']}/messages"
    body = {"text": mark("message"), "attachments": [upload]}
    messages = [(await service.http.post(url, json=body, headers=kept)).json()]
    await service.dashboard.patch(f"/conversations/{conversation['id']}", json={"tags": ["one"]})
    messages.append(await service.say(conversation, mark("longmessage") * 500))
    note = {"text": mark("note"), "internal": True}
    desk = f"/conversations/{conversation['id']}/messages"
    messages.append((await service.dashboard.post(desk, json=note)).json())
    await service.say(conversation, mark("behind"))
    messages.append(await service.say(conversation, mark("newest")))
    await service.dashboard.patch(f"/conversations/{conversation['id']}", json={"tags": ["two"]})
    return conversation, messages


def imported() -> bytes:
    at = "2024-01-01T00:00:00Z"
    conversation = {"type": "conversation", "externalId": "a", "contact": {"userId": "u9"}, "createdAt": at}
    message = {
        "type": "message",
        "externalId": "b",
        "conversation": "a",
        "author": {"type": "contact"},
        "text": mark("imported"),
        "createdAt": at,
    }
    return orjson.dumps(conversation) + b"\n" + orjson.dumps(message) + b"\n"


async def bring_in(service: Service) -> dict[str, Any]:
    """Import the file; return its message."""
    headers = {"Content-Type": "application/x-ndjson"}
    answer = await service.http.post("/s2s/import", content=imported(), headers=headers)
    assert answer.status_code == 200, answer.text
    (conversation,) = (await service.http.get("/s2s/contacts/u9/conversations")).json()["items"]
    found = (await service.http.get(f"/s2s/conversations/{conversation['id']}/messages")).json()["items"]
    return dict(found[0]) if found else {}


async def remove(service: Service, message: dict[str, Any], *, deleting: bool) -> None:
    path = path_of(message, "")
    if deleting:
        answer = await service.dashboard.delete(path)
    else:
        body = {"text": True, "allAttachments": True}
        answer = await service.dashboard.post(f"{path}/redact", json=body)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("deleting", [False, True], ids=["redacted", "deleted"])
async def test_no_byte_is_left_anywhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], deleting: bool
) -> None:
    async with running(tmp_path) as service, quoting(service) as (receiver, log):
        conversation, messages = await plant(service)
        messages.append(await bring_in(service))
        await delivered(service, log)
        await found(service, mark("message"), 1)
        places = {place for place, _ in left(tmp_path, PLACES)}
        assert places >= {*PLACES} - {"filebytes"}, "what is looked for was there"
        for message in messages:
            await remove(service, message, deleting=deleting)
        await overwritten(service)
        await vanished(tmp_path / "uploads", "filebytes")
        assert left(tmp_path, PLACES) == []
        await clean(service, conversation, log)
        await found(service, mark("message"), 0)
        await found(service, mark("behind"), 1)
        await redelivered(service, receiver, log)
        await bring_in(service)
        assert left(tmp_path, ("imported",)) == []
    assert left(tmp_path, PLACES) == []
    assert {place for place, _ in left(tmp_path, STAYS)} == {*STAYS}
    assert "mk" not in "".join(capfd.readouterr())


async def found(service: Service, word: str, count: int) -> None:
    """Return once a search for a word finds that many conversations."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            answer = (await service.dashboard.get("/search", params={"q": word})).json()
            if len(answer["conversations"]) == count:
                return
            await trio.sleep(LOOK_S)  # poll: there is no notification of the index's progress


async def clean(service: Service, conversation: dict[str, Any], log: str) -> None:
    """Assert that no answer of the API has a marker of the removed messages."""
    path, contact = f"/conversations/{conversation['id']}", conversation["contact"]
    texts = [
        (await client.get(url, params=params)).text
        for client, url, params in (
            (service.http, "/s2s/events", {"limit": "200"}),
            (service.http, f"/s2s{path}/messages", {}),
            (service.http, f"/s2s{path}/events", {}),
            (service.http, log, {"limit": "200"}),
            (service.http, f"/s2s/contacts/{contact['userId']}/export", {}),
            (service.dashboard, path, {"view": "agent"}),
            (service.dashboard, "/conversations", {"view": "agent"}),
            (service.dashboard, f"{path}/messages", {}),
            (service.dashboard, f"{path}/activity", {}),
            (service.dashboard, f"{path}/deliveries", {}),
            (service.dashboard, f"/contacts/{contact['id']}/export", {}),
        )
    ]
    for each in texts:
        assert not [place for place in PLACES if mark(place) in each], each
    assert mark("behind") in texts[1]


async def redelivered(service: Service, receiver: Receiver, log: str) -> None:
    """Assert that repeated deliveries have no marker either."""
    before = len(receiver.requests)
    again = await delivered(service, log)
    for each in again:
        answer = await service.http.post(f"/s2s/deliveries/{each['id']}/redeliver")
        assert answer.status_code == 200, answer.text
    await receiver.wait(before + len(again))
    sent = b"".join(request.body for request in receiver.requests[before:])
    assert not [place for place in PLACES if mark(place).encode() in sent]
    sequences = sorted(each["sequence"] for each in again if each["conversationId"] is not None)
    assert sequences[-1] == max(sequences)


async def test_waiting_delivery_is_sent_without_redacted_text(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, webhook_retry_after_s=(1.0, 1.0, 1.0)) as service, receiving() as receiver:

        async def fail(stream: trio.abc.Stream, _: Request) -> None:
            await stream.send_all(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")

        accept, receiver.behaviour = receiver.behaviour, fail
        await register(service, receiver.url)
        conversation = await service.create()
        await receiver.wait(1)
        message = await service.say(conversation, mark("message"))
        await receiver.wait(2)
        receiver.behaviour = accept
        await remove(service, message, deleting=False)
        await receiver.wait(5)
        bodies = [request.body for request in receiver.requests]
        assert [mark("message").encode() in body for body in bodies] == [False, True, False, False, False]
        texts = [orjson.loads(body)["data"].get("message", {}).get("text") for body in bodies[2:]]
        assert "" in texts


async def test_answer_to_an_attempt_in_flight_is_not_stored(service: Service) -> None:
    async with receiving() as receiver:
        begun, redacted = trio.Event(), trio.Event()

        async def quote(stream: trio.abc.Stream, request: Request) -> None:
            said = b"ok"
            if mark("message").encode() in request.body:
                begun.set()
                await redacted.wait()
                said = request.body[:400]
            await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said))

        receiver.behaviour = quote
        endpoint = await register(service, receiver.url)
        conversation = await service.create(attributes={"k": "v"})
        message = await service.say(conversation, mark("message"))
        await begun.wait()
        await remove(service, message, deleting=False)
        redacted.set()
        log = f"/s2s/webhooks/{endpoint['id']}/deliveries"
        deliveries = await delivered(service, log)
        assert mark("message") not in json.dumps(deliveries)
        assert len(deliveries) == 3
        await overwritten(service)
        assert left(service.directory, ("message",)) == []


async def test_lagging_stream_readers_get_redacted_text(service: Service) -> None:
    conversation = await service.create()
    async with page(service.dashboard) as desk, consuming(service) as consumer:
        await consumer.subscribe()
        message = await service.say(conversation, mark("message"))
        seen = json.loads((await consumer.receive())["data"])
        assert seen["data"]["message"]["text"] == mark("message")
        assert (await desk.event())["data"]["message"]["text"] == mark("message")
        await remove(service, message, deleting=False)
        told = json.loads((await consumer.receive())["data"])
        assert told["data"]["redactedMessageIds"] == [message["id"]]
        types = [(each := await desk.event())["type"] for _ in range(2)]
        assert sorted(types) == ["conversation.changed", "conversation.updated"]
        assert each["data"]["redactedMessageIds"] == [message["id"]]
    events = await service.events()
    assert [each["data"]["message"]["text"] for each in events if each["type"] == "message.created"] == [""]


async def test_the_url_of_a_file_that_was_redacted_finds_nothing(service: Service) -> None:
    conversation = await service.create()
    file = ("id.txt", b"secret", "text/plain")
    upload = (await service.http.post("/uploads", files={"file": file})).json()
    message = await service.say(conversation, "See", attachments=[upload["id"]])
    await remove(service, message, deleting=True)
    async with httpx.AsyncClient() as anybody:
        assert (await anybody.get(message["attachments"][0]["url"])).status_code == 404
    assert (await service.http.get(f"/uploads/{upload['id']}")).status_code == 404
