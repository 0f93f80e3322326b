"""The agent's view of a conversation and its thread: their contents, and what other callers get."""

from __future__ import annotations

from typing import Any

import pytest

from deskwire.engine.events.log import NO_EVENT_ID
from tests.support.api.inbox import NOT_MENTIONED
from tests.support.api.service import Service
from tests.support.api.staff import person

FIELDS = {
    "asOf",
    "visible",
    "tags",
    "snoozedUntil",
    "waitingSince",
    "noAnswerNeededSince",
    "messages",
    "lastMessage",
    "contactSeenIndex",
    "contactSeenAt",
    "contactReachedIndex",
    "contactReachedAt",
    "networkLogsAt",
    "workflow",
    "followers",
    "mine",
}
"""Fields that the agent's view has in addition to the conversation object."""


async def seen(service: Service, conversation: dict[str, Any]) -> dict[str, Any]:
    """Return the agent's view of the conversation."""
    answer = await service.dashboard.get(f"/conversations/{conversation['id']}", params={"view": "agent"})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def thread(service: Service, conversation: dict[str, Any], **params: str) -> dict[str, Any]:
    """Return a page of the conversation's messages."""
    answer = await service.dashboard.get(f"/conversations/{conversation['id']}/messages", params=params)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


async def note(service: Service, conversation: dict[str, Any], text: str) -> dict[str, Any]:
    """Add a note of the demo's owner."""
    body = {"text": text, "internal": True}
    answer = await service.dashboard.post(f"/conversations/{conversation['id']}/messages", json=body)
    assert answer.status_code == 200, answer.text
    said: dict[str, Any] = answer.json()
    return said


async def test_agents_view_adds_fields_to_the_conversation(service: Service) -> None:
    made = await service.create(message={"text": "Where is my order?"}, title="Order")
    view = await seen(service, made)
    assert set(view) - set(made) == FIELDS
    assert {name: view[name] for name in made} == await service.fetch(made)
    assert view["asOf"] == (await service.events())[-1]["id"]
    assert view["lastMessage"] == {
        "id": view["lastMessage"]["id"],
        "author": {"type": "contact", "id": made["contact"]["id"], "name": None},
        "text": "Where is my order?",
        "internal": False,
        "createdAt": made["lastMessageAt"],
    }
    assert view["waitingSince"] == made["lastMessageAt"]
    assert (view["visible"], view["messages"], view["tags"]) == (True, 1, [])
    assert (view["snoozedUntil"], view["contactSeenIndex"], view["contactSeenAt"]) == (None, None, None)
    assert (view["networkLogsAt"], view["workflow"]) == (None, None)
    assert view["mine"] == {"seenIndex": None, "unread": 1, **NOT_MENTIONED}


async def test_the_last_message_may_be_a_note_and_shows_its_beginning_only(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    await note(service, made, "x" * 200)
    view = await seen(service, made)
    assert view["lastMessage"]["internal"]
    assert view["lastMessage"]["text"] == "x" * 160
    assert view["lastMessage"]["author"]["type"] == "agent"
    assert view["messages"] == 1


async def test_a_list_shows_each_conversation_as_it_is_fetched_alone(service: Service) -> None:
    made = [await service.create(user=f"u{number}", message={"text": f"{number}"}) for number in range(3)]
    await note(service, made[1], "known")
    await service.http.put(f"/s2s/conversations/{made[0]['id']}/network-logs", json={"requests": []})
    listed = (await service.dashboard.get("/conversations", params={"view": "agent"})).json()["items"]
    assert listed == [await seen(service, each) for each in reversed(made)]
    assert listed[2]["networkLogsAt"] is not None


async def test_a_list_in_the_agents_view_is_paged_like_any(service: Service) -> None:
    made = [(await service.create(user=f"u{number}"))["id"] for number in range(5)]
    found: list[str] = []
    cursor = ""
    while True:
        params = {"view": "agent", "limit": "2", "cursor": cursor}
        page = (await service.dashboard.get("/conversations", params=params)).json()
        found += [item["id"] for item in page["items"]]
        if page["nextCursor"] is None:
            break
        cursor = page["nextCursor"]
    assert found == made[::-1]


async def test_hidden_conversation_has_the_position_of_its_agent_event(service: Service) -> None:
    made = await service.create(visible=False)
    view = await seen(service, made)
    assert (view["asOf"] > NO_EVENT_ID, view["visible"], await service.events()) == (True, False, [])


async def test_servers_and_the_plain_view_get_no_agent_fields(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    plain = (await service.dashboard.get(f"/conversations/{made['id']}")).json()
    listed = (await service.dashboard.get("/conversations")).json()["items"][0]
    shown = (await service.events())[-1]["data"]["conversation"]
    assert set(plain) == set(listed) == set(made) == set(shown) == set(await service.fetch(made))
    for path in (f"/s2s/conversations/{made['id']}", "/s2s/contacts/u1/conversations"):
        answer = await service.http.get(path, params={"view": "agent"})
        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "unknown_parameter")


async def test_only_the_agents_view_can_be_named(service: Service) -> None:
    made = await service.create()
    for path in ("/conversations", f"/conversations/{made['id']}"):
        answer = await service.dashboard.get(path, params={"view": "customer"})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/view")


@pytest.mark.parametrize("role", ["viewer", "agent", "admin", "owner"])
async def test_every_role_has_the_agents_view_with_its_own_state(service: Service, role: str) -> None:
    async with person(service, role) as someone:
        made = await service.create(message={"text": "Hello"})
        answer = await someone.http.get(
            f"/conversations/{made['id']}",
            params={"view": "agent"},
            headers={"project": service.demo["projectId"]},
        )
    assert (answer.status_code, answer.json()["mine"]) == (
        200,
        {"seenIndex": None, "unread": 1, **NOT_MENTIONED},
    )


async def test_a_thread_is_read_from_its_end_page_by_page(service: Service) -> None:
    made = await service.create(message={"text": "0"})
    for number in range(1, 7):
        if number % 3:
            await service.say(made, str(number))
        else:
            await note(service, made, str(number))
    newest = await thread(service, made, order="desc", limit="3")
    assert [item["text"] for item in newest["items"]] == ["6", "5", "4"]
    texts = [item["text"] for item in newest["items"]]
    cursor = newest["nextCursor"]
    while cursor is not None:
        page = await thread(service, made, order="desc", limit="3", cursor=cursor)
        texts += [item["text"] for item in page["items"]]
        cursor = page["nextCursor"]
    assert texts == [str(number) for number in range(6, -1, -1)]
    oldest = await thread(service, made)
    assert [item["text"] for item in oldest["items"]] == texts[::-1]


async def test_a_thread_read_from_its_end_can_begin_and_end_at_a_message(service: Service) -> None:
    made = await service.create(message={"text": "0"})
    ids = [(await thread(service, made))["items"][0]["id"]]
    ids += [(await service.say(made, str(number)))["id"] for number in range(1, 5)]
    before = await thread(service, made, order="desc", before=ids[3])
    assert [item["id"] for item in before["items"]] == ids[2::-1]
    between = await thread(service, made, order="desc", after=ids[0], before=ids[3])
    assert [item["id"] for item in between["items"]] == ids[2:0:-1]
    behind = await thread(service, made, after=ids[2])
    assert [item["id"] for item in behind["items"]] == ids[3:]


async def test_messages_have_the_sequence_of_their_events_and_notes_have_none(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    await note(service, made, "only us")
    await service.do(made, "close")
    await service.say(made, "Again")
    items = (await thread(service, made))["items"]
    told = {
        event["data"]["message"]["id"]: event["sequence"]
        for event in await service.events()
        if event["type"] == "message.created"
    }
    assert [item["sequence"] for item in items] == [told.get(item["id"]) for item in items]
    assert sorted(told.values()) == [2, 5]


async def test_messages_of_a_hidden_conversation_get_their_sequence_when_it_is_shown(
    service: Service,
) -> None:
    made = await service.create(visible=False, message={"text": "0"})
    await service.say(made, "1")
    await note(service, made, "only us")
    assert [item["sequence"] for item in (await thread(service, made))["items"]] == [None] * 3
    await service.http.patch(f"/s2s/conversations/{made['id']}", json={"visible": True})
    await service.say(made, "2")
    items = (await thread(service, made))["items"]
    assert [item["sequence"] for item in items] == [2, 3, None, 4]
    assert [event["sequence"] for event in await service.events()] == [1, 2, 3, 4]


async def test_messages_have_the_time_when_the_contact_saw_them(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    reply = {"text": "Hi", "author": {"type": "agent"}}
    answer = await service.http.post(f"/s2s/conversations/{made['id']}/messages", json=reply)
    assert answer.status_code == 200, answer.text
    await service.do(made, "read")
    await service.http.post(f"/s2s/conversations/{made['id']}/messages", json=reply)
    view, items = await seen(service, made), (await thread(service, made))["items"]
    assert view["contactSeenIndex"] == 1
    assert [item["seenAt"] for item in items] == [view["contactSeenAt"], view["contactSeenAt"], None]
