"""A ticket and its conversation: linked on both sides, or on none (decisions 7, ADR 16)."""

from __future__ import annotations

from time import time_ns
from typing import Any

import trio

from deskwire.engine.core.clock import iso
from tests.api.tickets.test_tickets import agent_of, changes_in, fetch, log_of, make, patch, pointers
from tests.api.workflows.test_workflows import make as make_workflow
from tests.api.workflows.test_workflows import reply, start
from tests.support.api.service import Service, running


async def test_linking_sets_both_sides_and_publishes_the_conversation_event(service: Service) -> None:
    conversation = await service.create(user="u1")
    ticket = await make(service)
    linked = await patch(service, ticket, conversationId=conversation["id"], priority="HIGH")
    assert (linked["conversationId"], linked["contactId"]) == (
        conversation["id"],
        conversation["contact"]["id"],
    )
    after = await service.fetch(conversation)
    assert (after["ticketId"], after["sequence"]) == (ticket["id"], 2)
    (event,) = await service.events(types="conversation.updated")
    assert event["data"]["changed"] == ["ticketId"]
    assert event["data"]["conversation"]["ticketId"] == ticket["id"]
    (entry, _) = await log_of(service, ticket)
    assert changes_in(entry).keys() == {"conversationId", "contactId", "priority"}


async def test_a_ticket_made_for_a_conversation_is_linked_from_its_first_moment(service: Service) -> None:
    conversation = await service.create(user="u1")
    ticket = await make(service, conversationId=conversation["id"], contactId=conversation["contact"]["id"])
    assert (await service.fetch(conversation))["ticketId"] == ticket["id"]
    assert len(await log_of(service, ticket)) == 1


async def test_repeated_linking_changes_nothing_and_publishes_nothing(service: Service) -> None:
    conversation = await service.create()
    ticket = await make(service, conversationId=conversation["id"])
    assert await patch(service, ticket, conversationId=conversation["id"]) == ticket
    assert (await service.fetch(conversation))["sequence"] == 2


async def test_cutting_the_link_clears_both_sides_and_keeps_the_contact(service: Service) -> None:
    conversation = await service.create(user="u1")
    ticket = await make(service, conversationId=conversation["id"])
    cut = await patch(service, ticket, conversationId=None, title="New")
    assert (cut["conversationId"], cut["contactId"], cut["title"]) == (None, ticket["contactId"], "New")
    assert (await service.fetch(conversation))["ticketId"] is None
    assert (await patch(service, ticket, contactId=None))["contactId"] is None


async def test_a_ticket_moves_from_one_conversation_to_another(service: Service) -> None:
    first, second = await service.create(user="u1"), await service.create(user="u2")
    ticket = await make(service, conversationId=first["id"])
    moved = await patch(service, ticket, conversationId=second["id"])
    assert moved["contactId"] == second["contact"]["id"]
    assert (await service.fetch(first))["ticketId"] is None
    assert (await service.fetch(second))["ticketId"] == ticket["id"]
    assert [changes_in(entry).get("conversationId") for entry in await log_of(service, ticket)] == [
        (None, second["id"]),
        (first["id"], None),
        (None, first["id"]),
    ]


async def test_a_conversation_of_another_ticket_is_refused_and_the_old_link_stays(service: Service) -> None:
    first, second = await service.create(user="u1"), await service.create(user="u2")
    ticket, other = [await make(service, conversationId=each["id"]) for each in (first, second)]
    for call in (
        service.dashboard.patch(f"/tickets/{ticket['id']}", json={"conversationId": second["id"]}),
        service.dashboard.post("/tickets", json={"title": "T", "conversationId": second["id"]}),
    ):
        answer = await call
        assert (answer.status_code, answer.json()["code"]) == (409, "conversation_linked")
    assert await fetch(service, ticket) == ticket
    assert (await service.fetch(first))["ticketId"] == ticket["id"]
    assert (await service.fetch(second))["ticketId"] == other["id"]


async def test_of_two_tickets_that_are_linked_at_once_one_wins(service: Service) -> None:
    conversation = await service.create()
    tickets = [await make(service) for _ in range(8)]
    statuses: list[int] = []

    async def link(ticket: dict[str, Any]) -> None:
        body = {"conversationId": conversation["id"]}
        answer = await service.dashboard.patch(f"/tickets/{ticket['id']}", json=body)
        statuses.append(answer.status_code)

    async with trio.open_nursery() as nursery:
        for ticket in tickets:
            nursery.start_soon(link, ticket)
    assert sorted(statuses) == [200, *[409] * 7]
    winner = (await service.fetch(conversation))["ticketId"]
    linked = [
        each["id"] for each in [await fetch(service, ticket) for ticket in tickets] if each["conversationId"]
    ]
    assert linked == [winner]


async def test_links_that_change_from_all_sides_at_once_agree_in_the_end(service: Service) -> None:
    conversations = [await service.create(user=f"u{number}") for number in range(3)]
    tickets = [await make(service) for _ in range(3)]
    targets = [None, *(each["id"] for each in conversations)]

    async def shuffle(number: int) -> None:
        for step in range(8):
            ticket, target = tickets[(number + step) % 3], targets[(number * 5 + step * 3) % 4]
            answer = await service.dashboard.patch(
                f"/tickets/{ticket['id']}", json={"conversationId": target}
            )
            assert answer.status_code in (200, 409), answer.text

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(shuffle, number)
    by_ticket = {
        each["id"]: each["conversationId"] for each in [await fetch(service, ticket) for ticket in tickets]
    }
    for conversation in conversations:
        ticket_id = (await service.fetch(conversation))["ticketId"]
        assert [key for key, value in by_ticket.items() if value == conversation["id"]] == (
            [ticket_id] if ticket_id else []
        )


async def test_a_linked_tickets_contact_is_that_of_its_conversation(service: Service) -> None:
    conversation, other = await service.create(user="u1"), await service.create(user="u2")
    ticket = await make(service, conversationId=conversation["id"])
    for body in ({"contactId": other["contact"]["id"]}, {"contactId": None}):
        answer = await service.dashboard.patch(f"/tickets/{ticket['id']}", json=body)
        assert (answer.status_code, pointers(answer)) == (422, {"/contactId": "mismatch"})
    both = {"conversationId": other["id"], "contactId": other["contact"]["id"]}
    assert (await patch(service, ticket, **both))["contactId"] == other["contact"]["id"]


async def test_deleting_the_ticket_clears_the_conversations_side(service: Service) -> None:
    conversation = await service.create()
    ticket = await make(service, conversationId=conversation["id"])
    assert (await service.dashboard.delete(f"/tickets/{ticket['id']}")).status_code == 200
    assert (await service.fetch(conversation))["ticketId"] is None
    assert [event["data"]["changed"] for event in await service.events(types="conversation.updated")] == [
        ["ticketId"],
        ["ticketId"],
    ]


async def test_deleting_the_conversation_clears_the_tickets_side(service: Service) -> None:
    conversation = await service.create()
    ticket = await make(service, conversationId=conversation["id"])
    await service.http.delete(f"/s2s/conversations/{conversation['id']}")
    after = await fetch(service, ticket)
    assert (after["conversationId"], after["contactId"]) == (None, conversation["contact"]["id"])
    entry = (await log_of(service, ticket))[0]
    assert entry["actor"] == {"type": "system", "id": None, "name": None}
    assert changes_in(entry) == {"conversationId": (conversation["id"], None)}
    again = await service.create()
    assert (await patch(service, ticket, conversationId=again["id"]))["conversationId"] == again["id"]


async def test_a_hidden_conversation_is_linked_without_an_event(service: Service) -> None:
    conversation = await service.create(visible=False)
    ticket = await make(service, conversationId=conversation["id"])
    assert await service.events() == []
    await service.http.patch(f"/s2s/conversations/{conversation['id']}", json={"visible": True})
    (event,) = await service.events()
    assert event["data"]["conversation"]["ticketId"] == ticket["id"]


async def test_messages_and_notes_are_activity_of_the_linked_ticket_alone(service: Service) -> None:
    conversation = await service.create()
    ticket, other = await make(service, conversationId=conversation["id"]), await make(service)
    message = await service.say(conversation, "Hello?")
    seen = await fetch(service, ticket)
    assert (seen["lastActivityAt"], seen["updatedAt"]) == (message["createdAt"], ticket["updatedAt"])
    note = await service.dashboard.post(
        f"/conversations/{conversation['id']}/messages", json={"text": "Hm", "internal": True}
    )
    assert (await fetch(service, ticket))["lastActivityAt"] == note.json()["createdAt"]
    assert await fetch(service, other) == other


async def snoozed(service: Service, **fields: Any) -> dict[str, Any]:
    """Create a ticket that is snoozed for an hour."""
    until = iso(time_ns() // 1_000_000 + 3_600_000)
    return await make(service, snoozedUntil=until, **fields)


async def test_contacts_message_wakes_the_linked_ticket_and_is_logged(service: Service) -> None:
    conversation = await service.create()
    ticket = await snoozed(service, conversationId=conversation["id"])
    message = await service.say(conversation, "Still nothing!")
    woken = await fetch(service, ticket)
    assert woken["snoozedUntil"] is None
    assert (woken["updatedAt"], woken["lastActivityAt"]) == (message["createdAt"], message["createdAt"])
    (entry, _) = await log_of(service, ticket)
    assert (entry["action"], entry["at"]) == ("changed", message["createdAt"])
    assert entry["actor"] == {"type": "system", "id": None, "name": None}
    assert changes_in(entry) == {"snoozedUntil": (ticket["snoozedUntil"], None)}
    listed = await service.dashboard.get("/tickets", params={"snoozed": "true"})
    assert listed.json()["items"] == []
    await service.say(conversation, "Hello?")
    assert len(await log_of(service, ticket)) == 2, "one that is awake changes no more"


async def test_contacts_message_to_a_closed_conversation_wakes_its_ticket(
    service: Service,
) -> None:
    conversation = await service.create()
    ticket = await snoozed(service, conversationId=conversation["id"])
    await service.do(conversation, "close")
    assert (await fetch(service, ticket))["snoozedUntil"] == ticket["snoozedUntil"]
    await service.say(conversation, "It is not solved.")
    assert (await fetch(service, ticket))["snoozedUntil"] is None


async def test_nothing_that_is_not_of_the_contact_wakes_a_ticket(service: Service) -> None:
    conversation, other = await service.create(), await service.create(user="u2")
    ticket = await snoozed(service, conversationId=conversation["id"])
    agent = {"type": "agent", "id": (await agent_of(service))["id"]}
    for author in (agent, {"type": "bot"}, {"type": "system"}):
        await service.say(conversation, "We look into it.", author=author)
    path = f"/conversations/{conversation['id']}/messages"
    for body in ({"text": "Hm", "internal": True}, {"text": "We look into it."}):
        assert (await service.dashboard.post(path, json=body)).status_code == 200
    await service.do(conversation, "rating", rating=1)
    await service.say(other, "Hello?")
    assert (await fetch(service, ticket))["snoozedUntil"] == ticket["snoozedUntil"]
    assert len(await log_of(service, ticket)) == 1
    await patch(service, ticket, conversationId=None)
    await service.say(conversation, "Hello?")
    assert (await fetch(service, ticket))["snoozedUntil"] == ticket["snoozedUntil"]


async def test_answer_to_a_workflow_wakes_the_ticket_but_its_own_messages_do_not(service: Service) -> None:
    conversation = await service.create()
    ticket = await snoozed(service, conversationId=conversation["id"])
    assert (await start(service, conversation, await make_workflow(service))).status_code == 200
    assert (await fetch(service, ticket))["snoozedUntil"] == ticket["snoozedUntil"]
    assert (await reply(service, conversation, 2, "b0")).status_code == 200
    assert (await fetch(service, ticket))["snoozedUntil"] is None
    assert changes_in((await log_of(service, ticket))[0]) == {"snoozedUntil": (ticket["snoozedUntil"], None)}


async def test_erasing_the_contact_erases_its_tickets(tmp_path: Any) -> None:
    async with running(tmp_path) as service:
        conversation = await service.create(user="u1")
        linked = await make(service, conversationId=conversation["id"])
        loose = await make(service, contactId=conversation["contact"]["id"])
        kept = await make(service)
        assert (await service.http.delete("/s2s/contacts/u1")).status_code == 200
        for ticket in (linked, loose):
            assert (await service.dashboard.get(f"/tickets/{ticket['id']}")).status_code == 404
        listed = (await service.dashboard.get("/tickets")).json()["items"]
        assert listed == [kept]


async def test_links_survive_a_restart(tmp_path: Any) -> None:
    async with running(tmp_path) as service:
        conversation = await service.create()
        ticket = await make(service, conversationId=conversation["id"])
    async with running(tmp_path) as service:
        assert (await service.fetch(conversation))["ticketId"] == ticket["id"]
        assert await fetch(service, ticket) == ticket
