"""Conversations through the wire (contract 3, 4.3; decisions 4)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.api.service import Service

CONVERSATION_FIELDS = {
    *(
        "id",
        "projectId",
        "contact",
        "title",
        "status",
        "closed",
        "closedBy",
        "unread",
        "archived",
        "assignee",
    ),
    *("attributes", "rating", "ticketId", "lastMessageAt", "sequence", "createdAt", "updatedAt", "closedAt"),
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


async def test_a_conversation_has_all_its_fields_and_starts_at_one(service: Service) -> None:
    """Contract 2.10, decisions 4."""
    conversation = await service.create(title="Order 7", attributes={"plan": "pro"})
    assert conversation.keys() == CONVERSATION_FIELDS
    assert conversation["id"].startswith("cnv_")
    assert conversation["contact"].keys() == {"id", "userId", "name", "email"}
    assert (conversation["status"], conversation["closed"], conversation["sequence"]) == ("OPEN", False, 1)
    assert TIME.fullmatch(conversation["createdAt"])
    assert await service.fetch(conversation) == conversation


async def test_creating_with_a_message_emits_both_in_one_order(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    events = await service.events()
    assert [(event["type"], event["sequence"]) for event in events] == [
        ("conversation.created", 1),
        ("message.created", 2),
    ]
    assert events[-1]["data"]["conversation"] == conversation
    message = events[-1]["data"]["message"]
    assert message["author"] == {
        "type": "contact",
        "id": conversation["contact"]["id"],
        "name": conversation["contact"]["name"],
    }


async def test_an_envelope_has_its_fields_in_the_order_of_the_contract(service: Service) -> None:
    """Contract 2.10 and 6.3.3."""
    await service.create()
    (event,) = await service.events()
    assert list(event) == ["id", "type", "apiVersion", "createdAt", "projectId", "sequence", "data"]
    assert event["apiVersion"] == "2026-11-01"
    assert event["id"].startswith("evt_")
    assert TIME.fullmatch(event["createdAt"])


async def test_a_reply_of_the_contact_reopens_a_closed_conversation(service: Service) -> None:
    conversation = await service.create()
    closed = await service.do(conversation, "close", closedBy="bot")
    assert (closed["status"], closed["closed"], closed["closedBy"]) == ("CLOSED", True, "bot")
    await service.say(conversation, "One more thing")
    assert (await service.types())[1:] == ["conversation.closed", "conversation.reopened", "message.created"]
    now = await service.fetch(conversation)
    assert (now["status"], now["closedBy"], now["closedAt"], now["sequence"]) == ("OPEN", None, None, 4)


@pytest.mark.parametrize("author", ["agent", "bot", "system"])
async def test_a_message_of_the_other_side_leaves_a_closed_conversation_closed(
    service: Service, author: str
) -> None:
    conversation = await service.create()
    await service.do(conversation, "close")
    await service.say(conversation, "For your records", author={"type": author})
    now = await service.fetch(conversation)
    assert (now["closed"], now["unread"]) == (True, True)


async def test_a_command_that_changes_nothing_succeeds_and_emits_nothing(service: Service) -> None:
    conversation = await service.create(title="Same")
    before = await service.do(conversation, "close")
    assert await service.do(conversation, "close") == before
    assert await service.do(conversation, "read") == before
    path = f"/s2s/conversations/{conversation['id']}"
    assert (await service.http.patch(path, json={"title": "Same"})).json() == before
    assert len(await service.types()) == 2


async def test_a_change_of_fields_names_them_in_one_event(service: Service) -> None:
    conversation = await service.create(attributes={"a": 1, "b": 2})
    path = f"/s2s/conversations/{conversation['id']}"
    body = {
        "title": "T",
        "attributes": {"b": None, "c": [1, {"d": None}]},
        "archived": True,
        "status": "PENDING",
    }
    changed = (await service.http.patch(path, json=body)).json()
    assert changed["attributes"] == {"a": 1, "c": [1, {"d": None}]}
    event = (await service.events())[-1]
    assert event["type"] == "conversation.updated"
    assert event["data"]["changed"] == ["archived", "attributes", "status", "title"]
    assert event["data"]["conversation"] == changed == await service.fetch(conversation)


async def test_unread_is_set_by_an_agent_and_cleared_by_reading(service: Service) -> None:
    conversation = await service.create()
    await service.say(conversation, "Hi", author={"type": "agent", "name": "Grace"})
    assert (await service.fetch(conversation))["unread"]
    assert not (await service.do(conversation, "read"))["unread"]
    event = (await service.events())[-1]
    assert (event["type"], event["data"]["changed"]) == ("conversation.updated", ["unread"])


async def test_a_rating_is_answered_with_its_time_and_announced_once(service: Service) -> None:
    """Contract 4.3: an integer from 0 to 10."""
    conversation = await service.create()
    rated = await service.do(conversation, "rating", rating=9)
    assert rated["rating"] == 9
    assert TIME.fullmatch(rated["ratedAt"])
    assert await service.do(conversation, "rating", rating=9) == rated
    events = await service.events()
    assert len(events) == 2
    assert events[-1]["data"]["changed"] == ["rating"]


@pytest.mark.parametrize("rating", [-1, 11, 3.5, "9", True, None])
async def test_a_rating_outside_the_scale_is_refused(service: Service, rating: Any) -> None:
    """Contract 8."""
    conversation = await service.create()
    path = f"/s2s/conversations/{conversation['id']}/rating"
    answer = await service.http.post(path, json={"rating": rating})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/rating"


async def test_a_hidden_conversation_is_announced_when_it_becomes_visible(service: Service) -> None:
    conversation = await service.create(visible=False, message={"text": "one"})
    await service.say(conversation, "two", author={"type": "bot"})
    assert await service.types() == []
    contact = await service.http.get("/s2s/contacts/u1/conversations")
    assert contact.json()["items"] == []
    path = f"/s2s/conversations/{conversation['id']}"
    shown = (await service.http.patch(path, json={"visible": True})).json()
    events = await service.events()
    assert [event["type"] for event in events] == [
        "conversation.created",
        "message.created",
        "message.created",
    ]
    assert [event["sequence"] for event in events] == [1, 2, 3]
    assert [event["data"]["message"]["text"] for event in events[1:]] == ["one", "two"]
    assert shown["sequence"] == 3
    again = await service.http.patch(path, json={"visible": False})
    assert again.status_code == 422


async def test_revealed_closed_conversation_publishes_its_creation_and_its_close(
    service: Service,
) -> None:
    """Decisions 4: a mirror has it closed with an event, and not in its creation alone."""
    conversation = await service.create(visible=False, message={"text": "one"})
    path = f"/s2s/conversations/{conversation['id']}"
    await service.say(conversation, "two", author={"type": "agent", "name": "Ada"})
    closed = (await service.http.post(f"{path}/close", json={"closedBy": "bot"})).json()
    assert await service.types() == []
    shown = (await service.http.patch(path, json={"visible": True})).json()
    events = await service.events()
    assert [event["type"] for event in events] == [
        "conversation.created",
        "message.created",
        "message.created",
        "conversation.closed",
    ]
    assert [event["sequence"] for event in events] == [1, 2, 3, 4]
    for event in events[:3]:
        found = event["data"]["conversation"]
        assert (found["status"], found["closed"], found["closedBy"], found["closedAt"]) == (
            "OPEN",
            False,
            None,
            None,
        )
    assert events[3]["data"]["closedBy"] == "bot"
    assert events[3]["data"]["conversation"]["closedAt"] == closed["closedAt"]
    assert events[3]["data"]["conversation"] == shown
    assert (shown["status"], shown["closed"], shown["closedBy"], shown["sequence"]) == (
        "CLOSED",
        True,
        "bot",
        4,
    )
    again = (await service.http.post(f"{path}/reopen")).json()
    assert (again["status"], again["sequence"]) == ("OPEN", 5)


async def test_a_closed_conversation_without_messages_is_created_and_closed(service: Service) -> None:
    conversation = await service.create(visible=False)
    path = f"/s2s/conversations/{conversation['id']}"
    await service.http.post(f"{path}/close")
    await service.http.patch(path, json={"visible": True, "title": "Told"})
    events = await service.events()
    assert [(event["type"], event["sequence"]) for event in events] == [
        ("conversation.created", 1),
        ("conversation.closed", 2),
    ]
    assert {event["data"]["conversation"]["title"] for event in events} == {"Told"}


async def test_a_deleted_conversation_leaves_only_its_deletion(service: Service) -> None:
    """Contract 3 and 6.4.8: later fetches answer 404."""
    conversation = await service.create(
        user="secret-user", title="Secret title", message={"text": "Secret text"}
    )
    path = f"/s2s/conversations/{conversation['id']}"
    answer = await service.http.delete(path)
    assert answer.json() == {"id": conversation["id"], "deleted": True}
    (event,) = await service.events()
    assert (event["type"], event["sequence"]) == ("conversation.deleted", 3)
    assert event["data"] == {
        "conversation": {
            "id": conversation["id"],
            "status": "OPEN",
            "closed": False,
            "unread": False,
            "contact": {"userId": "secret-user"},
        },
        "reason": "manual",
    }
    for method, tail in (
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("GET", "/messages"),
        ("POST", "/messages"),
        ("POST", "/close"),
        ("GET", "/events"),
        ("GET", "/workflow"),
    ):
        body = {"text": "x"} if tail == "/messages" and method == "POST" else {"title": "x"}
        sent = body if method in {"PATCH"} or tail == "/messages" else None
        gone = await service.http.request(method, path + tail, json=sent if method != "GET" else None)
        assert (gone.status_code, gone.json()["code"]) == (404, "conversation_not_found"), (method, tail)


async def test_messages_are_paged_in_both_directions(service: Service) -> None:
    """Contract 6.4.6: catch-up reads on after the last message that is known."""
    conversation = await service.create()
    sent = [(await service.say(conversation, f"m{number}"))["id"] for number in range(7)]
    path = f"/s2s/conversations/{conversation['id']}/messages"

    async def page(**params: str) -> tuple[list[str], str | None]:
        answer = (await service.http.get(path, params={"limit": "3", **params})).json()
        return [message["id"] for message in answer["items"]], answer["nextCursor"]

    assert await page() == (sent[:3], sent[2])
    assert await page(after=sent[2]) == (sent[3:6], sent[5])
    assert await page(after=sent[5]) == (sent[6:], None)
    assert await page(cursor=sent[2], after=sent[0]) == (sent[3:6], sent[5])
    back, cursor = await page(before=sent[6])
    assert back == sent[3:6]
    assert await page(before=sent[6], cursor=str(cursor)) == (sent[:3], None)
    assert await page(before=sent[3]) == (sent[:3], None)
    assert await page(after=sent[1], before=sent[3]) == ([sent[2]], None)
    unknown = await service.http.get(path, params={"after": "msg_00000000000000000000000000"})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "message_not_found")


async def test_stored_events_fill_a_gap_with_the_same_bytes(service: Service) -> None:
    conversation = await service.create()
    for number in range(5):
        await service.say(conversation, f"m{number} {'é' * number}")
    feed = (await service.http.get("/s2s/events")).content
    path = f"/s2s/conversations/{conversation['id']}/events"
    page = await service.http.get(path, params={"after": "2", "limit": "2"})
    assert [event["sequence"] for event in page.json()["items"]] == [3, 4]
    assert page.json()["nextCursor"] == "4"
    onwards = await service.http.get(path, params={"after": "2", "cursor": "4"})
    assert [event["sequence"] for event in onwards.json()["items"]] == [5, 6]
    bodies = page.content.removeprefix(b'{"items":[').partition(b'],"nextCursor"')[0]
    assert bodies in feed
    last = await service.http.get(path, params={"after": "6"})
    assert last.json() == {"items": [], "nextCursor": None}


async def test_network_logs_replace_each_other_and_are_no_event(service: Service) -> None:
    """Contract 4.3: 204 without a body, shown to agents only."""
    conversation = await service.create()
    path = f"/s2s/conversations/{conversation['id']}/network-logs"
    dashboard = f"/conversations/{conversation['id']}/network-logs"
    assert (await service.dashboard.get(dashboard)).json() == {"requests": []}
    for url in ("https://a.example", "https://b.example"):
        entry = {"url": url, "type": "xhr", "duration": 12.5, "success": False, "request": {"n": 10**30}}
        answer = await service.http.put(path, json={"requests": [entry]})
        assert (answer.status_code, answer.content) == (204, b"")
    stored = (await service.dashboard.get(dashboard)).json()
    assert [entry["url"] for entry in stored["requests"]] == ["https://b.example"]
    assert stored["requests"][0]["request"] == {"n": 10**30}
    assert await service.types() == ["conversation.created"]


async def test_hundred_network_requests_are_accepted_and_one_more_is_refused(service: Service) -> None:
    """Contract 8."""
    conversation = await service.create()
    path = f"/s2s/conversations/{conversation['id']}/network-logs"
    entries = [{"url": f"https://x.example/{number}"} for number in range(101)]
    assert (await service.http.put(path, json={"requests": entries[:100]})).status_code == 204
    assert (await service.http.put(path, json={"requests": entries})).status_code == 422
    status, body = await service.declare("PUT", path, (2 << 20) + 1)
    assert (status, json.loads(body)["code"]) == (413, "body_too_large")


async def test_no_workflow_step_is_pending(service: Service) -> None:
    conversation = await service.create()
    answer = await service.http.get(f"/s2s/conversations/{conversation['id']}/workflow")
    assert answer.json() == {"step": None}


async def test_an_assignment_names_the_user_and_only_members_can_be_assigned(service: Service) -> None:
    conversation = await service.create()
    user = (
        await service.dashboard.post(f"/conversations/{conversation['id']}/messages", json={"text": "Hi"})
    ).json()
    wanted = {"type": "user", "id": user["author"]["id"]}
    assigned = await service.do(conversation, "assign", assignee=wanted)
    assert assigned["assignee"] == {**wanted, "name": user["author"]["name"]}
    assert (await service.types())[-1] == "conversation.assigned"
    freed = await service.do(conversation, "assign", assignee=None)
    assert freed["assignee"] is None
    path = f"/s2s/conversations/{conversation['id']}/assign"
    for stranger in ({"type": "user", "id": "usr_00000000000000000000000000"}, {"type": "team", "id": "x"}):
        refused = await service.http.post(path, json={"assignee": stranger})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/assignee/id")


async def test_a_note_leaves_no_trace_on_the_customers_side(service: Service) -> None:
    conversation = await service.create()
    path = f"/conversations/{conversation['id']}/messages"
    note = (await service.dashboard.post(path, json={"text": "He is angry", "internal": True})).json()
    assert (note["internal"], note["index"]) == (True, None)
    assert await service.types() == ["conversation.created"]
    assert await service.fetch(conversation) == conversation
    s2s = f"/s2s/conversations/{conversation['id']}/messages"
    assert (await service.http.get(s2s)).json()["items"] == []
    assert (await service.http.get(s2s, params={"after": note["id"]})).status_code == 404
    assert [message["id"] for message in (await service.dashboard.get(path)).json()["items"]] == [note["id"]]


async def test_text_is_returned_exactly_as_sent(service: Service) -> None:
    conversation = await service.create()
    texts = ["\x01a", "שלום עולם", "👩‍👩‍👧‍👦" * 10, "a\u2028\u2029", "x" * 20_000, '"\\{}', " a "]
    for text in texts:
        await service.say(conversation, text)
    path = f"/s2s/conversations/{conversation['id']}/messages"
    assert [message["text"] for message in (await service.http.get(path)).json()["items"]] == texts
    assert [event["data"]["message"]["text"] for event in (await service.events())[1:]] == texts
