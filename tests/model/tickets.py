"""Tickets: create, change, snooze, link to conversations, change in bulk (contract 4.2; decisions 7)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta, timezone

from tests.model.commands import NOWHERE, Answer, Request, good, refused, stopped
from tests.model.things import JSON, Ticket, exactly, iso, shown
from tests.model.world import World

NO_TICKET = "tkt_01M3250V00PPPPPPPPPPPPPPPP"
TEN_YEARS_S = 10 * 366 * 86_400
"""The longest snooze (ADR 16)."""


def good_ticket(answer: Answer, ticket: Ticket) -> None:
    """Assert that the answer is 200 with exactly this ticket."""
    assert answer.status == 200, answer
    ticket.learn(answer.body["snoozedUntil"], answer.came)
    good(answer, ticket.view)


@dataclass(frozen=True)
class MakeTicket:
    """Create a ticket; `about` is the index of the conversation to link."""

    priority: str = "MEDIUM"
    tags: tuple[str, ...] = ()
    about: int | None = None
    ahead_s: int | None = None

    def body(self, world: World) -> JSON:
        """Return the request's body."""
        body: JSON = {"title": "A ticket", "priority": self.priority, "tags": list(self.tags)}
        body |= {} if self.about is None else {"conversationId": linked_to(world, self.about)}
        return body | ({} if self.ahead_s is None else {"snoozedUntil": iso(world.after(self.ahead_s))})

    def request(self, world: World) -> Request:
        return Request("POST", "/tickets", self.body(world), agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        self.made(world, answer, world.user)

    def made(self, world: World, answer: Answer, by: JSON) -> None:
        """Judge the creation by this actor: a ticket, or a refusal if it can't be linked."""
        if self.about is not None and not linkable(world, self.about, None, answer):
            return
        assert answer.status == 200, answer
        ticket = Ticket(
            answer.body["id"],
            {
                "title": "A ticket",
                "description": None,
                "type": None,
                "status": "OPEN",
                "priority": self.priority,
                "processingUser": None,
                "processingTeam": None,
                "conversationId": None,
                "contactId": None,
                "tags": list(self.tags),
            },
            None if self.ahead_s is None else (world.after(self.ahead_s),) * 2,
        )
        world.tickets.append(ticket)
        conversation = None if self.about is None else world.conversation(linked_to(world, self.about))
        if conversation is not None:
            ticket.fields |= {"conversationId": conversation.id, "contactId": conversation.contact.id}
            world.change(conversation, ticketId=ticket.id)
        world.tell_of_ticket("created", ticket, by, [])
        good_ticket(answer, ticket)


def linked_to(world: World, about: int) -> str:
    """Return the id of the conversation at this index, even if it was deleted; an unknown id if there is none."""
    return world.conversations[about].id if 0 <= about < len(world.conversations) else NOWHERE


def linkable(world: World, about: int, ticket: Ticket | None, answer: Answer) -> bool:
    """Return whether the ticket can be linked; if not, the answer must be the refusal with its reason."""
    conversation = world.conversation(linked_to(world, about))
    if conversation is None:
        refused(answer, 422, "invalid_input")
        return False
    if conversation.fields["ticketId"] not in (None, ticket and ticket.id):
        refused(answer, 409, "conversation_linked")
        return False
    return True


@dataclass(frozen=True)
class ChangeTicket:
    """Change a ticket's fields."""

    at: int
    fields: JSON = field(default_factory=dict)
    claim: bool = False

    def target(self, world: World) -> Ticket | None:
        """Return the ticket; None if it does not exist."""
        return world.tickets[self.at] if 0 <= self.at < len(world.tickets) else None

    def path(self, world: World) -> str:
        found = self.target(world)
        return f"/tickets/{NO_TICKET if found is None else found.id}"

    def given(self, world: World) -> JSON:
        """Return the fields, with the claiming agent if there is one."""
        return {**self.fields, **({"processingUser": world.agent["id"]} if self.claim else {})}

    def request(self, world: World) -> Request:
        return Request("PATCH", self.path(world), self.given(world), agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        ticket = self.target(world)
        if not self.given(world):
            refused(answer, 422, "invalid_input")
        elif ticket is None:
            refused(answer, 404, "ticket_not_found")
        else:
            world.change_ticket(ticket, world.user, **self.given(world))
            good_ticket(answer, ticket)


@dataclass(frozen=True)
class LookAtTicket(ChangeTicket):
    """Fetch a ticket."""

    def request(self, world: World) -> Request:
        return Request("GET", self.path(world), agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        ticket = self.target(world)
        if ticket is None:
            refused(answer, 404, "ticket_not_found")
        else:
            good_ticket(answer, ticket)


@dataclass(frozen=True)
class Snooze(ChangeTicket):
    """Snooze a ticket until this many seconds after the example began, or end its snooze."""

    ahead_s: int | None = None

    def request(self, world: World) -> Request:
        until = None
        if self.ahead_s is not None:  # in another time zone than the answers
            until = world.after(self.ahead_s).astimezone(timezone(timedelta(hours=2))).isoformat()
        return Request("PATCH", self.path(world), {"snoozedUntil": until}, agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        ticket = self.target(world)
        reasons = [(404, "ticket_not_found")] if ticket is None else []
        if self.ahead_s is not None and not 0 < self.ahead_s <= TEN_YEARS_S:
            reasons.append((422, "invalid_input"))
        if not stopped(answer, *reasons):
            assert ticket is not None
            until = world.after(self.ahead_s or 0)
            if (snooze := None if self.ahead_s is None else (until, until)) != ticket.snooze:
                world.change_ticket(ticket, world.user, snooze)
            good_ticket(answer, ticket)


@dataclass(frozen=True)
class ListTickets:
    """List all tickets, the snoozed ones, or the others."""

    snoozed: bool | None

    def request(self, world: World) -> Request:
        query = "" if self.snoozed is None else f"?snoozed={str(self.snoozed).lower()}"
        return Request("GET", f"/tickets{query}", agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        assert answer.status == 200, answer
        told = {each["id"]: each for each in answer.body["items"]}
        wanted = [
            each
            for each in world.tickets
            if each is not None and self.snoozed in (None, each.snooze is not None)
        ]
        assert told.keys() == {each.id for each in wanted}, answer
        for ticket in wanted:
            ticket.learn(told[ticket.id]["snoozedUntil"], answer.came)
            assert exactly(shown(ticket.view), shown(told[ticket.id])), (ticket, told)


@dataclass(frozen=True)
class RemoveTicket(ChangeTicket):
    """Delete a ticket; its conversation can be linked to another one again."""

    def request(self, world: World) -> Request:
        return Request("DELETE", self.path(world), agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        ticket = self.target(world)
        if ticket is None:
            refused(answer, 404, "ticket_not_found")
            return
        good(answer, {"id": ticket.id, "deleted": True})
        world.let_go(ticket)
        world.remove_ticket(ticket, world.user)


@dataclass(frozen=True)
class Link(ChangeTicket):
    """Link a ticket to the conversation at this index, or unlink it."""

    about: int | None = None

    def request(self, world: World) -> Request:
        to = None if self.about is None else linked_to(world, self.about)
        return Request("PATCH", self.path(world), {"conversationId": to}, agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        ticket = self.target(world)
        if ticket is None:
            refused(answer, 404, "ticket_not_found")
        elif self.about is None:
            world.link(ticket, None, world.user)
            good_ticket(answer, ticket)
        elif linkable(world, self.about, ticket, answer):
            world.link(ticket, world.conversation(linked_to(world, self.about)), world.user)
            good_ticket(answer, ticket)


@dataclass(frozen=True)
class Bulk:
    """Change the tickets at these indexes and an unknown one, only the first `limit` of them."""

    places: tuple[int, ...]
    limit: int | None
    priority: str | None
    claim: bool
    duration_s: float | None = None

    def ids(self, world: World) -> list[str]:
        """Return the ids without duplicates."""
        known = {place: each.id for place, each in enumerate(world.tickets) if each is not None}
        return list(dict.fromkeys(known.get(place, NO_TICKET) for place in self.places))

    def payload(self, world: World) -> JSON:
        """Return the fields to change."""
        given: JSON = {} if self.priority is None else {"priority": self.priority}
        given |= {} if self.duration_s is None else {"duration": self.duration_s}
        return given | ({"processingUser": world.agent["id"]} if self.claim else {})

    def request(self, world: World) -> Request:
        selection: JSON = {"ids": self.ids(world)} | ({} if self.limit is None else {"limit": self.limit})
        body = {"selection": selection, "payload": self.payload(world)}
        return Request("PUT", "/tickets/bulk", body, agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        payload = self.payload(world)
        duration_s = payload.pop("duration", None)
        if (self.duration_s is None and not payload) or (duration_s is not None and duration_s < 0):
            refused(answer, 422, "invalid_input")
            return
        chosen = self.ids(world)[: self.limit]
        found = [each for each in world.tickets if each is not None and each.id in chosen]
        updated = [each for each in found if self.changes(each, payload)]
        for ticket in updated:
            if duration_s is None:
                world.change_ticket(ticket, world.user, **payload)
            else:
                ahead = timedelta(seconds=duration_s)
                until = (answer.asked + ahead, answer.came + ahead) if duration_s else None
                world.change_ticket(ticket, world.user, until, **payload)
        wanted = {
            "matched": len(found),
            "updated": len(updated),
            "unchanged": len(found) - len(updated),
            "notFound": [each for each in chosen if each not in {ticket.id for ticket in found}],
        }
        good(answer, wanted)

    def changes(self, ticket: Ticket, payload: JSON) -> bool:
        """Return whether the ticket changes; setting a snooze always counts as a change."""
        wakes = self.duration_s == 0 and ticket.snooze is not None
        return bool(self.duration_s) or wakes or any(ticket.fields[name] != payload[name] for name in payload)
