"""The export of a contact: everything about it in one document (GDPR, article 15)."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import httpx
import pytest
import trio

from deskwire.engine.core.clock import iso, wall_clock
from deskwire.engine.privacy import contact_export
from tests.support.api.openapi_check import UNCHECKED
from tests.support.api.service import Service
from tests.support.api.surveys import respond, survey
from tests.support.deadlines import HANG_TIMEOUT_S


async def exported(service: Service, user: str = "u1") -> dict[str, Any]:
    """The document that a backend gets."""
    answer = await service.http.get(f"/s2s/contacts/{user}/export")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    document: dict[str, Any] = answer.json()
    return document


async def with_everything(service: Service) -> dict[str, Any]:
    """Give u1 an object of every kind, and return a conversation of theirs."""
    sent = (await service.http.post("/uploads", files={"file": ("a.txt", b"attached bytes")})).json()
    conversation = await service.create(
        contact={"userId": "u1", "name": "Ada", "email": "ada@example.org"},
        title="Order",
        attributes={"plan": "gold"},
        message={"text": "Hello", "attachments": [sent["id"]]},
    )
    path = f"/s2s/conversations/{conversation['id']}"
    assert (await service.http.post(f"{path}/rating", json={"rating": 9})).is_success
    logs = {"requests": [{"url": "https://shop.test/"}]}
    assert (await service.http.put(f"{path}/network-logs", json=logs)).is_success
    note = {"text": "a note", "internal": True}
    assert (
        await service.dashboard.post(f"/conversations/{conversation['id']}/messages", json=note)
    ).is_success
    memory = f"/sessions/{conversation['contact']['id']}/memory"
    assert (await service.dashboard.post(memory, json={"name": "tone", "content": "kind"})).is_success
    ticket = {"title": "Refund", "conversationId": conversation["id"]}
    assert (await service.dashboard.post("/tickets", json=ticket)).is_success
    await respond(service, await survey(service), answers={"score": 9}, contact={"userId": "u1"})
    return conversation


async def test_the_document_has_everything_that_the_backend_may_see(service: Service) -> None:
    conversation = await with_everything(service)
    document = await exported(service)
    assert document["complete"] is True
    assert document["contact"] == (await service.http.get("/s2s/contacts/u1")).json()
    assert [entry["content"] for entry in document["memory"]] == ["kind"]
    assert [response["answers"] for response in document["surveyResponses"]] == [{"score": 9}]
    assert [ticket["title"] for ticket in document["tickets"]] == ["Refund"]
    (shown,) = document["conversations"]
    now = await service.fetch(conversation)
    assert {name: shown[name] for name in now} == now
    assert (shown["rating"], shown["visible"]) == (9, True)
    assert shown["networkLogs"]["requests"][0]["url"] == "https://shop.test/"
    (message,) = shown["messages"]
    async with httpx.AsyncClient(trust_env=False) as browser:
        assert (await browser.get(message["attachments"][0]["url"])).content == b"attached bytes"


async def test_export_for_agents_has_their_private_data_and_the_backends_has_not(service: Service) -> None:
    conversation = await with_everything(service)
    path = f"/conversations/{conversation['id']}"
    noted = {"tags": ["vip"], "snoozedUntil": iso(wall_clock() + 3_600_000)}
    assert (await service.dashboard.patch(path, json=noted)).is_success
    plain = await exported(service)
    assert all(each not in json.dumps(plain) for each in ("a note", "vip", '"activity"'))
    assert "snoozedUntil" not in plain["conversations"][0]
    answer = await service.dashboard.get(f"/contacts/{conversation['contact']['id']}/export")
    (shown,) = answer.json()["conversations"]
    assert [(message["text"], message["internal"]) for message in shown["messages"]] == [
        ("Hello", False),
        ("a note", True),
    ]
    assert (shown["tags"], shown["snoozedUntil"]) == (noted["tags"], noted["snoozedUntil"])
    assert [each["changes"][0]["field"] for each in shown["activity"]] == ["tags", "ticketId"]
    assert answer.json()["tickets"][0]["activity"][0]["action"] == "created"
    refused = await service.http.get(f"/contacts/{conversation['contact']['id']}/export")
    assert refused.status_code == 401


async def test_hidden_conversations_are_in_it_and_other_peoples_are_not(service: Service) -> None:
    await service.create(visible=False, title="hidden")
    await service.create("u2", title="of another")
    document = await exported(service)
    assert [(each["title"], each["visible"]) for each in document["conversations"]] == [("hidden", False)]


async def test_a_contact_with_nothing_has_a_whole_document(service: Service) -> None:
    await service.http.put("/s2s/contacts/u3", json={"name": "Ada"})
    document = await exported(service, "u3")
    del document["exportedAt"], document["contact"]
    assert document == {
        "sessions": [],
        "memory": [],
        "surveyResponses": [],
        "tickets": [],
        "conversations": [],
        "complete": True,
    }


async def test_an_unknown_contact_or_another_projects_is_not_found(service: Service) -> None:
    assert (await service.http.get("/s2s/contacts/nobody/export")).status_code == 404
    await service.create()
    unknown = await service.dashboard.get("/contacts/u1/export")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "contact_not_found")


async def test_many_objects_come_page_by_page_in_their_order(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contact_export, "PAGE_SIZE", 2)
    conversations = [await service.create(title=str(number)) for number in range(3)]
    for number in range(5):
        await service.say(conversations[1], str(number))
    contact = conversations[0]["contact"]["id"]
    for number in range(5):
        entry = {"name": f"name {number}", "content": str(number)}
        assert (await service.dashboard.post(f"/sessions/{contact}/memory", json=entry)).is_success
    document = await exported(service)
    assert [each["title"] for each in document["conversations"]] == ["0", "1", "2"]
    assert [each["text"] for each in document["conversations"][1]["messages"]] == list("01234")
    assert [each["content"] for each in document["memory"]] == list("43210")


async def test_an_erasure_cuts_the_document_off(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact_export, "PAGE_SIZE", 1)
    conversation = await service.create()
    for _ in range(60):
        await service.say(conversation, "x" * 20_000)  # more than the sockets take without a reader
    with trio.fail_after(HANG_TIMEOUT_S):
        path = "/s2s/contacts/u1/export"
        async with service.http.stream("GET", path, extensions=UNCHECKED) as answer:
            parts = answer.aiter_raw()
            received = await anext(parts)
            assert (await service.http.delete("/s2s/contacts/u1")).is_success
            with suppress(httpx.RemoteProtocolError):  # it is cut off
                async for part in parts:
                    received += part
    assert b'"complete"' not in received
