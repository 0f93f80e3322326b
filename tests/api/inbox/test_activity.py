"""The activity of a conversation: each change with its actor, and the events for agents only."""

from __future__ import annotations

from tests.support.api.inbox import activity, later, patch, reply, told
from tests.support.api.service import Service
from tests.support.stores import beside


async def test_activity_shows_actor_field_and_both_values_of_a_change(service: Service) -> None:
    conversation = await service.create(title="Hello")
    await patch(service, conversation, title="Bye", tags=["vip"], archived=True)
    await service.do(conversation, "close")
    await service.say(conversation, "Still there?")  # reopens it, as the message itself says
    entries = (await activity(service, conversation))["items"]
    assert [(each["actor"]["type"], each["action"]) for each in entries] == [
        ("key", "closed"),
        ("user", "changed"),
        ("user", "changed"),
    ]
    changes = [
        {change["field"]: (change["from"], change["to"]) for change in each["changes"]} for each in entries
    ]
    assert changes[0] == {"status": ("OPEN", "CLOSED")}
    assert changes[1] == {"tags": ([], ["vip"])}
    assert changes[2] == {"title": ("Hello", "Bye"), "archived": (False, True)}
    events = {event["id"]: event["type"] for event in await service.events()}
    assert events[entries[0]["eventId"]] == "conversation.closed"
    assert events[entries[2]["eventId"]] == "conversation.updated"
    assert entries[1]["eventId"] not in events


async def test_activity_is_paged_newest_first_and_deleted_with_its_conversation(service: Service) -> None:
    conversation = await service.create()
    for number in range(5):
        await patch(service, conversation, title=f"T{number}")
    titles: list[str] = []
    params: dict[str, str] = {"limit": "2"}
    while True:
        page = await activity(service, conversation, **params)
        titles += [each["changes"][0]["to"] for each in page["items"]]
        if page["nextCursor"] is None:
            break
        params["cursor"] = page["nextCursor"]
    assert titles == ["T4", "T3", "T2", "T1", "T0"]
    bad = await service.dashboard.get(f"/conversations/{conversation['id']}/activity", params={"cursor": "x"})
    assert bad.status_code == 400
    await service.http.delete(f"/s2s/conversations/{conversation['id']}")
    with beside(service.directory) as connection:
        assert connection.execute("SELECT count(*) FROM conversation_activity").fetchone() == (0,)


async def test_a_linked_ticket_is_an_entry_of_the_activity(service: Service) -> None:
    conversation = await service.create()
    body = {"title": "Lost", "conversationId": conversation["id"]}
    ticket = (await service.dashboard.post("/tickets", json=body)).json()
    (entry,) = (await activity(service, conversation))["items"]
    assert entry["actor"]["type"] == "user"
    assert entry["changes"] == [{"field": "ticketId", "from": None, "to": ticket["id"]}]


async def test_agents_receive_events_of_notes_hidden_conversations_and_closers(service: Service) -> None:
    hidden = await service.create(visible=False, message={"text": "psst"})
    await service.do(hidden, "rating", rating=4)
    shown = await service.create(user="u2", message={"text": "Hello"})
    await reply(service, shown, text="a note", internal=True)
    await service.do(shown, "close")
    await service.http.put(f"/s2s/conversations/{shown['id']}/network-logs", json={"requests": []})
    await service.http.delete(f"/s2s/conversations/{hidden['id']}")
    heard = [
        (event["type"], event["data"].get("changed"), event["data"]["conversation"]["id"])
        for event in told(service)
    ]
    assert heard == [
        ("note.created", None, shown["id"]),
        ("conversation.changed", ["status", "closedBy", "closedAt", "waitingSince"], shown["id"]),
        ("conversation.changed", ["networkLogsAt"], shown["id"]),
        ("conversation.changed", ["deleted"], hidden["id"]),
    ]  # the hidden one's earlier events were deleted with it
    assert told(service)[1]["data"]["actor"]["type"] == "key"
    assert told(service)[0]["data"]["message"]["text"] == "a note"
    assert told(service)[-1]["data"]["conversation"] == {"id": hidden["id"]}


async def test_events_of_a_hidden_conversation_go_to_agents_only(service: Service) -> None:
    hidden = await service.create(visible=False, message={"text": "psst"})
    await service.say(hidden, "and more")
    await patch(service, hidden, title="Secret")
    assert await service.types() == []
    assert [(event["type"], event["data"].get("changed")) for event in told(service)] == [
        ("conversation.changed", ["created"]),
        ("note.created", None),
        ("note.created", None),
        ("conversation.changed", ["title"]),
    ]
    await patch(service, hidden, visible=True)
    assert told(service)[-1]["data"]["changed"] == ["visible"]
    assert await service.types() == ["conversation.created", "message.created", "message.created"]


async def test_a_message_that_the_customer_sees_causes_no_event_besides_its_own(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    await patch(service, conversation, snoozedUntil=later(3_600))
    known = len(told(service))
    await service.say(conversation, "Anybody?")
    await reply(service, conversation)
    await service.do(conversation, "close")
    assert len(told(service)) == known + 1  # of who closed it
    await service.say(conversation, "No, wait")
    assert len(told(service)) == known + 1


async def test_read_event_has_the_contacts_read_position(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    await reply(service, conversation)
    await service.do(conversation, "read")
    (changed,) = told(service)
    assert changed["data"]["changed"] == ["unread", "contactSeenIndex", "contactSeenAt"]
    assert changed["data"]["conversation"]["contactSeenIndex"] == 1
