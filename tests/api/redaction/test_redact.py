"""Redacting and deleting one message: answers, refusals and events (ADR 21)."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.api.events.test_channels_agree import receiving, register
from tests.support.api.service import Service
from tests.support.api.staff import person

TEXT = "Card 4111 please, not 4222"


@pytest.fixture
async def conversation(service: Service) -> dict[str, Any]:
    return await service.create(message={"text": "Hello"})


def path_of(message: dict[str, Any], surface: str = "/s2s") -> str:
    return f"{surface}/conversations/{message['conversationId']}/messages/{message['id']}"


async def redact(service: Service, message: dict[str, Any], **body: Any) -> dict[str, Any]:
    """Redact as the backend does; return the resulting message."""
    answer = await service.http.post(f"{path_of(message)}/redact", json=body)
    assert answer.status_code == 200, answer.text
    redacted: dict[str, Any] = answer.json()
    return redacted


async def messages(service: Service, conversation: dict[str, Any], **query: str) -> list[dict[str, Any]]:
    answer = await service.http.get(f"/s2s/conversations/{conversation['id']}/messages", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def attached(service: Service, conversation: dict[str, Any], *names: str) -> dict[str, Any]:
    """Post a message with files of these names."""
    uploads = []
    for name in names:
        file = (name, f"bytes of {name}".encode(), "text/plain")
        uploads.append((await service.http.post("/uploads", files={"file": file})).json()["id"])
    return await service.say(conversation, TEXT, attachments=uploads)


def lasting(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message without the URLs of its files, which have a new signature in each answer."""
    files = [{k: v for k, v in each.items() if k != "url"} for each in message["attachments"]]
    return {**message, "attachments": files}


def problems(answer: httpx.Response) -> list[tuple[str, str]]:
    assert answer.status_code == 422, answer.text
    return [(each["pointer"], each["code"]) for each in answer.json()["errors"]]


async def test_message_shows_that_it_was_not_redacted(service: Service, conversation: dict[str, Any]) -> None:
    assert (await service.say(conversation, TEXT))["redactedAt"] is None
    assert [each["redactedAt"] for each in await messages(service, conversation)] == [None, None]


async def test_each_character_of_a_range_becomes_an_asterisk(
    service: Service, conversation: dict[str, Any]
) -> None:
    message = await service.say(conversation, TEXT)
    ranges = [{"start": 5, "end": 9}, {"start": 22, "end": 26}]
    redacted = await redact(service, message, ranges=ranges)
    assert redacted["text"] == "Card **** please, not ****"
    assert redacted == {**message, "text": redacted["text"], "redactedAt": redacted["redactedAt"]}
    assert redacted["redactedAt"] is not None
    assert (await messages(service, conversation))[-1] == redacted


async def test_ranges_count_characters_and_not_bytes(service: Service, conversation: dict[str, Any]) -> None:
    message = await service.say(conversation, "Zoë 👩‍🚀 pays 4111")
    assert (await redact(service, message, ranges=[{"start": 4, "end": 7}]))["text"] == "Zoë *** pays 4111"


async def test_a_text_is_redacted_as_a_whole(service: Service, conversation: dict[str, Any]) -> None:
    message = await service.say(conversation, TEXT)
    assert (await redact(service, message, text=True))["text"] == ""


async def test_repeated_redaction_changes_nothing_and_publishes_no_event(
    service: Service, conversation: dict[str, Any]
) -> None:
    message = await service.say(conversation, TEXT)
    body = {"ranges": [{"start": 5, "end": 9}]}
    first = await redact(service, message, **body)
    events = await service.events()
    assert await redact(service, message, **body) == first
    assert await service.events() == events


async def test_one_attachment_is_removed_and_the_other_stays(
    service: Service, conversation: dict[str, Any]
) -> None:
    message = await attached(service, conversation, "id.txt", "label.txt")
    gone, stays = message["attachments"]
    redacted = await redact(service, message, attachments=[gone["id"]])
    assert [each["id"] for each in redacted["attachments"]] == [stays["id"]]
    async with httpx.AsyncClient() as anybody:
        assert (await anybody.get(gone["url"])).status_code == 404
        assert (await anybody.get(stays["url"])).status_code == 200
    again = await redact(service, message, attachments=[gone["id"]])
    assert lasting(again) == lasting(redacted)
    assert (await redact(service, message, allAttachments=True))["attachments"] == []


async def test_a_file_that_another_message_has_stays(service: Service, conversation: dict[str, Any]) -> None:
    message = await attached(service, conversation, "label.txt")
    (file,) = message["attachments"]
    again = await service.say(conversation, "Again", attachments=[file["id"]])
    elsewhere = await service.say(await service.create("u2"), "Too", attachments=[file["id"]])
    async with httpx.AsyncClient() as anybody:
        await redact(service, message, allAttachments=True)
        assert (await anybody.get(file["url"])).status_code == 200
        await redact(service, again, allAttachments=True)
        assert (await anybody.get(file["url"])).status_code == 200
        await redact(service, elsewhere, allAttachments=True)
        assert (await anybody.get(file["url"])).status_code == 404


async def test_consumers_learn_of_it_by_an_event_with_the_id(
    service: Service, conversation: dict[str, Any]
) -> None:
    message = await service.say(conversation, TEXT)
    await redact(service, message, text=True)
    await service.http.delete(path_of(message))
    *earlier, redaction, deletion = await service.events()
    assert [each["sequence"] for each in (*earlier, redaction, deletion)] == [1, 2, 3, 4, 5]
    assert [redaction["type"], deletion["type"]] == ["conversation.updated"] * 2
    assert redaction["data"]["conversation"]["sequence"] == 4
    assert redaction["data"]["conversation"] == {
        **deletion["data"]["conversation"],
        "sequence": 4,
        "updatedAt": redaction["data"]["conversation"]["updatedAt"],
    }
    told = [{k: v for k, v in each["data"].items() if k != "conversation"} for each in (redaction, deletion)]
    assert told == [
        {"changed": ["messages"], "redactedMessageIds": [message["id"]]},
        {"changed": ["messages"], "deletedMessageIds": [message["id"]]},
    ]


async def test_earlier_events_show_the_redacted_message(
    service: Service, conversation: dict[str, Any]
) -> None:
    message = await attached(service, conversation, "id.txt", "label.txt")
    await redact(
        service, message, ranges=[{"start": 5, "end": 9}], attachments=[message["attachments"][0]["id"]]
    )
    created = [each for each in await service.events() if each["type"] == "message.created"]
    shown = [lasting(each) for each in await messages(service, conversation)]
    assert [lasting(each["data"]["message"]) for each in created] == shown


async def test_deleted_message_is_in_no_list_and_others_keep_their_index(
    service: Service, conversation: dict[str, Any]
) -> None:
    message, after = await service.say(conversation, TEXT), await service.say(conversation, "After")
    answer = await service.http.delete(path_of(message))
    assert answer.json() == {"id": message["id"], "deleted": True}
    assert [each["index"] for each in await messages(service, conversation)] == [0, 2]
    assert await messages(service, conversation, after=message["id"]) == [after]
    assert (await service.say(conversation, "Next"))["index"] == 3
    (created,) = [
        each["data"]["message"]
        for each in await service.events()
        if each["type"] == "message.created" and each["data"]["message"]["id"] == message["id"]
    ]
    assert (created["text"], created["attachments"]) == ("", [])
    assert created["redactedAt"] is not None


async def test_deleted_message_can_be_neither_redacted_nor_deleted(
    service: Service, conversation: dict[str, Any]
) -> None:
    message = await service.say(conversation, TEXT)
    await service.http.delete(path_of(message))
    events = await service.events()
    for answer in (
        await service.http.delete(path_of(message)),
        await service.http.post(f"{path_of(message)}/redact", json={"text": True}),
        await service.http.delete(path_of({**message, "id": "msg_nothing"})),
        await service.http.delete(path_of({**message, "id": message["id"][:-1] + "0"})),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "message_not_found")
    assert await service.events() == events


async def test_a_message_of_another_conversation_or_project_is_not_found(
    service: Service, conversation: dict[str, Any]
) -> None:
    message = await service.say(await service.create("u2"), TEXT)
    elsewhere = {**message, "conversationId": conversation["id"]}
    assert (await service.http.delete(path_of(elsewhere))).json()["code"] == "message_not_found"
    assert (await service.http.post(f"{path_of(elsewhere)}/redact", json={"text": True})).status_code == 404


async def test_a_body_is_refused_with_all_that_is_wrong(
    service: Service, conversation: dict[str, Any]
) -> None:
    message = await attached(service, conversation, "label.txt")
    url = f"{path_of(message)}/redact"
    assert problems(await service.http.post(url, json={})) == [("", "required")]
    body = {
        "ranges": [{"start": 0, "end": 27}, {"start": 3, "end": 3}, {"start": -1, "end": 2}, {"start": 4}],
        "attachments": ["upl_x"],
        "text": "yes",
        "more": 1,
    }
    found = problems(await service.http.post(url, json=body))
    assert {pointer for pointer, _ in found} >= {
        "/ranges/1/end",
        "/ranges/2/start",
        "/ranges/3/end",
        "/text",
        "/more",
    }
    outside = {"ranges": [{"start": 0, "end": 27}, {"start": 30, "end": 40}], "attachments": ["upl_x"]}
    assert problems(await service.http.post(url, json=outside)) == [
        ("/ranges/0/end", "too_large"),
        ("/ranges/1/end", "too_large"),
        ("/attachments/0", "unknown"),
    ]
    assert lasting((await messages(service, conversation))[-1]) == lasting(message)


async def test_notes_are_for_agents_alone(service: Service, conversation: dict[str, Any]) -> None:
    body = {"text": "Internal 4111", "internal": True}
    answer = await service.dashboard.post(f"/conversations/{conversation['id']}/messages", json=body)
    note, events = answer.json(), await service.events()
    refused = await service.http.post(f"{path_of(note)}/redact", json={"text": True})
    assert refused.json()["code"] == "message_not_found"
    redacted = await service.dashboard.post(
        f"{path_of(note, '')}/redact", json={"ranges": [{"start": 9, "end": 13}]}
    )
    assert redacted.json() == {**note, "text": "Internal ****", "redactedAt": redacted.json()["redactedAt"]}
    assert (await service.dashboard.delete(path_of(note, ""))).status_code == 200
    thread = await service.dashboard.get(f"/conversations/{conversation['id']}/messages")
    assert [each["text"] for each in thread.json()["items"]] == ["Hello"]
    assert await service.events() == events


async def test_redaction_needs_the_manage_permission_and_deletion_the_delete_permission(
    service: Service, conversation: dict[str, Any]
) -> None:
    message = await service.say(conversation, TEXT)
    for role, redacts, deletes in (("viewer", 403, 403), ("agent", 200, 403), ("admin", 200, 200)):
        async with person(service, role) as member:
            member.http.headers["project"] = service.demo["projectId"]
            answer = await member.http.post(f"{path_of(message, '')}/redact", json={"text": True})
            assert answer.status_code == redacts, role
            assert (await member.http.delete(path_of(message, ""))).status_code == deletes, role


async def test_agent_sees_the_redaction_and_its_actor(service: Service, conversation: dict[str, Any]) -> None:
    message = await service.say(conversation, TEXT)
    await redact(service, message, ranges=[{"start": 5, "end": 9}])
    path = f"/conversations/{conversation['id']}"
    shown = (await service.dashboard.get(path, params={"view": "agent"})).json()
    assert shown["lastMessage"]["text"] == "Card **** please, not 4222"
    assert (await service.dashboard.delete(path_of(message, ""))).status_code == 200
    shown = (await service.dashboard.get(path, params={"view": "agent"})).json()
    assert (shown["lastMessage"]["text"], shown["messages"]) == ("Hello", 2)
    activity = (await service.dashboard.get(f"{path}/activity")).json()["items"]
    assert [(each["action"], each["actor"]["type"], each["changes"]) for each in activity[:2]] == [
        ("message_deleted", "user", [{"field": "message", "from": message["id"], "to": None}]),
        ("message_redacted", "key", [{"field": "message", "from": message["id"], "to": message["id"]}]),
    ]
    assert all(each["eventId"] for each in activity[:2])


async def test_hidden_conversation_is_revealed_without_deleted_messages(service: Service) -> None:
    conversation = await service.create(visible=False)
    first, gone, last = [await service.say(conversation, text) for text in ("One", TEXT, "Three")]
    assert (await redact(service, first, ranges=[{"start": 0, "end": 1}]))["text"] == "*ne"
    assert (await service.http.delete(path_of(gone))).status_code == 200
    assert await service.events() == []
    await service.http.patch(f"/s2s/conversations/{conversation['id']}", json={"visible": True})
    events = await service.events()
    assert [each["sequence"] for each in events] == [1, 2, 3, 4]
    shown = [each["data"].get("message", each["data"]) for each in events[1:]]
    assert shown[0]["text"] == "*ne"
    assert shown[1]["deletedMessageIds"] == [gone["id"]]
    assert shown[2]["id"] == last["id"]


async def test_kept_answer_is_not_returned_after_a_redaction(
    service: Service, conversation: dict[str, Any]
) -> None:
    url, key = f"/s2s/conversations/{conversation['id']}/messages", {"Idempotency-Key": "once"}
    other = {"Idempotency-Key": "another"}
    message = (await service.http.post(url, json={"text": TEXT}, headers=key)).json()
    bystander = (await service.http.post(url, json={"text": "Other"}, headers=other)).json()
    redaction = {"ranges": [{"start": 5, "end": 9}]}
    first = await service.http.post(f"{path_of(message)}/redact", json=redaction, headers=key)
    again = await service.http.post(f"{path_of(message)}/redact", json=redaction, headers=key)
    assert again.json() == first.json()
    refused = await service.http.post(url, json={"text": TEXT}, headers=key)
    assert (refused.status_code, TEXT in refused.text) == (410, False)
    assert (await service.http.post(url, json={"text": "Other"}, headers=other)).json() == bystander
    await service.http.delete(path_of(message))
    refused = await service.http.post(f"{path_of(message)}/redact", json=redaction, headers=key)
    assert refused.status_code == 410
    assert [each["text"] for each in await messages(service, conversation)] == ["Hello", "Other"]


async def test_audit_trail_has_the_actor_and_no_text(service: Service, conversation: dict[str, Any]) -> None:
    message = await service.say(conversation, TEXT)
    await redact(service, message, text=True)
    await redact(service, message, text=True)
    await service.dashboard.delete(path_of(message, ""))
    organisation = (await service.dashboard.get("/organisations")).json()["items"][0]["id"]
    trail = await service.dashboard.get(
        f"/organisations/{organisation}/audit", params={"object": message["id"]}
    )
    found = [(each["action"], each["actor"]["type"], each["details"]) for each in trail.json()["items"]]
    details = {"conversation": conversation["id"]}
    assert found == [("message.deleted", "user", details), ("message.redacted", "server_key", details)]


async def test_endpoint_that_lists_the_types_receives_the_actor(
    service: Service, conversation: dict[str, Any]
) -> None:
    async with receiving() as receiver:
        await register(service, receiver.url, events=["message.redacted", "message.deleted"])
        message = await service.say(conversation, TEXT)
        body = {"text": "Internal", "internal": True}
        desk = f"/conversations/{conversation['id']}/messages"
        note = (await service.dashboard.post(desk, json=body)).json()
        assert (await service.dashboard.delete(path_of(note, ""))).status_code == 200
        await redact(service, message, text=True)
        assert (await service.dashboard.delete(path_of(message, ""))).status_code == 200
        await receiver.wait(2)
        events = [json.loads(request.body) for request in receiver.requests]
    ids = {"conversationId": conversation["id"], "messageId": message["id"]}
    assert [(each["type"], each["sequence"]) for each in events] == [
        ("message.redacted", None),
        ("message.deleted", None),
    ]
    assert [each["data"]["actor"]["type"] for each in events] == ["key", "user"]
    assert all(each["data"].items() >= ids.items() for each in events)
    assert TEXT not in repr(events)


async def test_a_backend_reads_replaces_and_counts_tags(
    service: Service, conversation: dict[str, Any]
) -> None:
    path, events = f"/s2s/conversations/{conversation['id']}", await service.events()
    assert (await service.http.get(f"{path}/tags")).json() == {"tags": []}
    answer = await service.http.put(f"{path}/tags", json={"tags": ["VIP", " returns ", "vip"]})
    assert answer.json() == {"tags": ["returns", "vip"]}
    assert (await service.http.get(f"{path}/tags")).json() == answer.json()
    shown = (await service.dashboard.get(f"/conversations/{conversation['id']}?view=agent")).json()
    assert shown["tags"] == ["returns", "vip"]
    counted = [{"name": name, "conversations": 1} for name in ("returns", "vip")]
    assert (await service.http.get("/s2s/tags")).json() == {"items": counted, "nextCursor": None}
    assert "vip" not in (await service.http.get(path)).text
    assert await service.events() == events
    refused = await service.http.put(f"{path}/tags", json={"tags": ["a,b", *map(str, range(20))]})
    assert refused.status_code == 422
    assert (await service.http.put(f"{path}x/tags", json={"tags": []})).status_code == 404
