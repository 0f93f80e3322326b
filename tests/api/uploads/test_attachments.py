"""Uploads as attachments of messages: shown, announced, refused, and erased with them (decisions 4; ADR 17)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.api.uploads.test_uploads import gone, on_disk, send
from tests.support.api.planted_texts import holding
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S

SECRET = b"<<file-marker>>" * 1_000
NAME = "name-marker.txt"


async def fetched(url: str) -> bytes:
    """Return the response that anybody gets by a URL."""
    async with httpx.AsyncClient() as anybody:
        answer = await anybody.get(url)
    assert answer.status_code == 200, answer.text
    return answer.content


def shown(upload: dict[str, Any]) -> dict[str, Any]:
    """Return an upload as a message shows it, without its URL."""
    return {name: upload[name] for name in ("id", "name", "type", "size")}


def unsigned(attachment: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attachment.items() if name != "url"}


def left_in(directory: Path, *markers: bytes) -> list[str]:
    """Files of the data directory that still have one of the markers."""
    return [name for _, name in holding(directory, *(marker.lower() for marker in markers))]


async def test_a_message_shows_its_attachments_everywhere_with_urls_that_work(service: Service) -> None:
    first, second = await send(service), await send(service, b"hello", "notes.txt")
    conversation = await service.create()
    path = f"/s2s/conversations/{conversation['id']}/messages"
    answer = await service.http.post(path, json={"attachments": [first["id"], second["id"]]})
    assert answer.status_code == 200, answer.text
    posted = answer.json()
    assert posted["text"] == ""
    assert [unsigned(each) for each in posted["attachments"]] == [shown(first), shown(second)]
    listed = (await service.http.get(path)).json()["items"][0]
    (event,) = await service.events(types="message.created")
    told = event["data"]["message"]
    seen = (await service.dashboard.get(f"/conversations/{conversation['id']}/messages")).json()["items"][0]
    for message in (posted, listed, told, seen):
        assert await fetched(message["attachments"][1]["url"]) == b"hello"


async def test_every_channel_carries_the_same_signed_url(service: Service) -> None:
    upload = await send(service)
    conversation = await service.create(message={"text": "Look", "attachments": [upload["id"]]})
    again = (await service.http.get(f"/s2s/conversations/{conversation['id']}/events")).json()["items"][-1]
    assert again == (await service.events(types="message.created"))[0]


async def test_attachments_of_a_hidden_conversation_are_announced_when_it_is_shown(service: Service) -> None:
    upload = await send(service)
    conversation = await service.create(visible=False, message={"attachments": [upload["id"]]})
    assert await service.events() == []
    await service.http.patch(f"/s2s/conversations/{conversation['id']}", json={"visible": True})
    (event,) = await service.events(types="message.created")
    (attachment,) = event["data"]["message"]["attachments"]
    assert unsigned(attachment) == shown(upload)


async def test_an_agent_attaches_files_to_messages_and_notes(service: Service) -> None:
    upload, conversation = await send(service), await service.create()
    for internal in (False, True):
        body = {"text": "Here", "attachments": [upload["id"]], "internal": internal}
        answer = await service.dashboard.post(f"/conversations/{conversation['id']}/messages", json=body)
        assert [unsigned(each) for each in answer.json()["attachments"]] == [shown(upload)]


async def test_everything_wrong_with_a_message_is_named(service: Service) -> None:
    conversation, upload = await service.create(), (await send(service))["id"]
    for client, path in (
        (service.http, f"/s2s/conversations/{conversation['id']}/messages"),
        (service.dashboard, f"/conversations/{conversation['id']}/messages"),
    ):
        unknown = "upl_00000000000000000000000000"
        answer = await client.post(path, json={"attachments": ["x", upload, unknown, upload]})
        found = [(each["pointer"], each["code"]) for each in answer.json()["errors"]]
        assert (answer.status_code, found) == (
            422,
            [("/attachments/0", "unknown"), ("/attachments/2", "unknown"), ("/attachments/3", "repeated")],
        )
        for body in ({}, {"text": ""}, {"text": "", "attachments": []}):
            answer = await client.post(path, json=body)
            (problem,) = answer.json()["errors"]
            assert (problem["pointer"], problem["code"]) == ("/text", "too_short")
        answer = await client.post(path, json={"attachments": [upload] * 11})
        assert answer.json()["errors"][0]["code"] == "too_many"


@pytest.mark.parametrize("how", ["conversation", "contact"])
async def test_no_byte_of_an_attachment_outlives_its_conversation_or_contact(
    service: Service, how: str
) -> None:
    upload = await send(service, SECRET, NAME)
    conversation = await service.create(message={"text": "Look", "attachments": [upload["id"]]})
    assert len(left_in(service.directory, SECRET[:15], NAME.encode())) > 1
    path = f"/s2s/conversations/{conversation['id']}" if how == "conversation" else "/s2s/contacts/u1"
    assert (await service.http.delete(path)).status_code == 200
    await gone(service, *on_disk(service))
    with trio.fail_after(HANG_TIMEOUT_S):
        while left_in(service.directory, SECRET[:15], NAME.encode()):  # noqa: ASYNC110  # the writer's own work
            await trio.sleep(0.02)  # poll: there is no notification
    async with httpx.AsyncClient() as anybody:
        answer = await anybody.get(upload["url"])
    assert (answer.status_code, answer.json()["code"]) == (404, "upload_not_found")


async def test_a_file_stays_while_another_message_or_upload_needs_it(service: Service) -> None:
    shared, alike = await send(service, b"shared"), await send(service, b"shared", "alike.txt")
    first = await service.create("u1", message={"attachments": [shared["id"]]})
    second = await service.create("u2", message={"attachments": [shared["id"]]})
    third = await service.create("u3", message={"attachments": [alike["id"]]})
    await service.http.delete(f"/s2s/conversations/{first['id']}")
    assert await fetched(shared["url"]) == b"shared"
    await service.http.delete(f"/s2s/conversations/{second['id']}")
    assert await fetched(alike["url"]) == b"shared"
    await service.http.delete(f"/s2s/conversations/{third['id']}")
    await gone(service, *on_disk(service))


async def test_removed_content_can_be_uploaded_again(service: Service) -> None:
    for _ in range(5):
        upload = await send(service, b"again")
        conversation = await service.create(message={"attachments": [upload["id"]]})
        await service.http.delete(f"/s2s/conversations/{conversation['id']}")
    assert await fetched((await send(service, b"again"))["url"]) == b"again"


@pytest.mark.sqlite  # counts the files of the directory: with PostgreSQL they are rows
async def test_interrupted_erasure_ends_at_the_next_start(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        upload = await send(service, SECRET)
        conversation = await service.create(message={"attachments": [upload["id"]]})
        (kept,) = on_disk(service)
        content = kept.read_bytes()
        await service.http.delete(f"/s2s/conversations/{conversation['id']}")
        await gone(service, kept)
    kept.parent.mkdir(parents=True)
    kept.write_bytes(content)  # as if the process had ended before
    async with running(tmp_path) as service:
        await gone(service, kept)
