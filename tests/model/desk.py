"""What agents do beside the conversations: tickets, what is remembered of a contact, endpoints of webhooks."""

from __future__ import annotations

from dataclasses import dataclass, field

from .commands import NOWHERE, Answer, Request, good, refused
from .world import JSON, Ticket, World, exactly, shown

NO_TICKET = "tkt_01M3250V00PPPPPPPPPPPPPPPP"


@dataclass(frozen=True)
class MakeTicket:
    """Make a ticket; `about` is the place of the conversation that it is linked to."""

    priority: str = "MEDIUM"
    tags: tuple[str, ...] = ()
    about: int | None = None

    def request(self, world: World) -> Request:
        body: JSON = {"title": "A ticket", "priority": self.priority, "tags": list(self.tags)}
        body |= {} if self.about is None else {"conversationId": linked_to(world, self.about)}
        return Request("POST", "/tickets", body, agent=True)

    def judge(self, world: World, answer: Answer) -> None:
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
        )
        world.tickets.append(ticket)
        if self.about is not None:
            world.link(ticket, world.conversation(linked_to(world, self.about)))
        good(answer, ticket.view)


def linked_to(world: World, about: int) -> str:
    """The id of the conversation at this place, gone or not; of an unknown one if there is none."""
    return world.conversations[about].id if 0 <= about < len(world.conversations) else NOWHERE


def linkable(world: World, about: int, ticket: Ticket | None, answer: Answer) -> bool:
    """Whether the ticket can be linked; if not, the answer must be the refusal with its reason."""
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
        """The ticket, if it is there."""
        return world.tickets[self.at] if 0 <= self.at < len(world.tickets) else None

    def path(self, world: World) -> str:
        found = self.target(world)
        return f"/tickets/{NO_TICKET if found is None else found.id}"

    def given(self, world: World) -> JSON:
        """The fields, with who claims it."""
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
            ticket.fields |= self.given(world)
            good(answer, ticket.view)


@dataclass(frozen=True)
class RemoveTicket(ChangeTicket):
    """Delete a ticket; its conversation is free again."""

    def request(self, world: World) -> Request:
        return Request("DELETE", self.path(world), agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        ticket = self.target(world)
        if ticket is None:
            refused(answer, 404, "ticket_not_found")
            return
        good(answer, {"id": ticket.id, "deleted": True})
        world.link(ticket, None)
        world.tickets[world.tickets.index(ticket)] = None


@dataclass(frozen=True)
class Link(ChangeTicket):
    """Link a ticket to the conversation at this place, or to none."""

    about: int | None = None

    def request(self, world: World) -> Request:
        to = None if self.about is None else linked_to(world, self.about)
        return Request("PATCH", self.path(world), {"conversationId": to}, agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        ticket = self.target(world)
        if ticket is None:
            refused(answer, 404, "ticket_not_found")
        elif self.about is None:
            world.link(ticket, None)
            good(answer, ticket.view)
        elif linkable(world, self.about, ticket, answer):
            world.link(ticket, world.conversation(linked_to(world, self.about)))
            good(answer, ticket.view)


@dataclass(frozen=True)
class Bulk:
    """Change the tickets at these places, and one that is not there; of all only the first `limit`."""

    places: tuple[int, ...]
    limit: int | None
    priority: str | None
    claim: bool

    def ids(self, world: World) -> list[str]:
        """The ids, each once."""
        known = {place: each.id for place, each in enumerate(world.tickets) if each is not None}
        return list(dict.fromkeys(known.get(place, NO_TICKET) for place in self.places))

    def payload(self, world: World) -> JSON:
        """What to change."""
        given: JSON = {} if self.priority is None else {"priority": self.priority}
        return given | ({"processingUser": world.agent["id"]} if self.claim else {})

    def request(self, world: World) -> Request:
        selection: JSON = {"ids": self.ids(world)} | ({} if self.limit is None else {"limit": self.limit})
        body = {"selection": selection, "payload": self.payload(world)}
        return Request("PUT", "/tickets/bulk", body, agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        payload = self.payload(world)
        if not payload:
            refused(answer, 422, "invalid_input")
            return
        chosen = self.ids(world)[: self.limit]
        found = [each for each in world.tickets if each is not None and each.id in chosen]
        updated = [each for each in found if any(each.fields[name] != payload[name] for name in payload)]
        for ticket in updated:
            ticket.fields |= payload
        wanted = {
            "matched": len(found),
            "updated": len(updated),
            "unchanged": len(found) - len(updated),
            "notFound": [each for each in chosen if each not in {ticket.id for ticket in found}],
        }
        good(answer, wanted)


@dataclass(frozen=True)
class OfContact:
    """A command on what is remembered of a contact."""

    user: str

    def path(self, world: World, name: str = "") -> str:
        contact = world.contacts.get(self.user)
        session = "con_01M3250V00PPPPPPPPPPPPPPPP" if contact is None else contact.id
        return f"/sessions/{session}/memory{name and '/'}{name}"


@dataclass(frozen=True)
class Remember(OfContact):
    """Remember something; what has the same name is replaced."""

    name: str
    content: str

    def request(self, world: World) -> Request:
        return Request("POST", self.path(world), {"name": self.name, "content": self.content}, agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        contact = world.contacts.get(self.user)
        if contact is None:
            refused(answer, 404, "session_not_found")
            return
        assert answer.status == 200, answer
        known = contact.memory.get(self.name, {"id": answer.body["id"]})
        entry = {"id": known["id"], "name": self.name, "content": self.content, "description": None}
        contact.memory[self.name] = entry
        good(answer, {"ok": True, **entry})


@dataclass(frozen=True)
class Recall(OfContact):
    """List what is remembered."""

    def request(self, world: World) -> Request:
        return Request("GET", self.path(world), agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        contact = world.contacts.get(self.user)
        if contact is None:
            refused(answer, 404, "session_not_found")
            return
        assert answer.status == 200, answer
        told = {each["name"]: shown(each) for each in answer.body["items"]}
        assert exactly(told, contact.memory), answer


@dataclass(frozen=True)
class Forget(OfContact):
    """Clear what is remembered."""

    def request(self, world: World) -> Request:
        return Request("DELETE", self.path(world), agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        contact = world.contacts.get(self.user)
        if contact is None:
            refused(answer, 404, "session_not_found")
            return
        good(answer, {"ok": True, "consolidationEnqueued": False, "entries": len(contact.memory)})
        contact.memory.clear()


@dataclass(frozen=True)
class AddEndpoint:
    """Register an endpoint; five is the most."""

    events: tuple[str, ...] = ()

    def request(self, world: World) -> Request:
        return Request(
            "POST", "/s2s/webhooks", {"url": f"{world.receiver}&other=1", "events": list(self.events)}
        )

    def judge(self, world: World, answer: Answer) -> None:
        if len(world.endpoints) == 5:
            refused(answer, 409, "webhook_limit_reached")
            return
        assert answer.status == 200, answer
        assert answer.body["secret"].startswith("whsec_")
        assert answer.body["events"] == list(self.events)
        world.endpoints.append(answer.body["id"])


@dataclass(frozen=True)
class DropEndpoint:
    """Remove an endpoint; the first one is the test's own."""

    at: int

    def chosen(self, world: World) -> str | None:
        others = world.endpoints[1:]
        return others[self.at % len(others)] if others else None

    def request(self, world: World) -> Request:
        return Request("DELETE", f"/s2s/webhooks/{self.chosen(world) or 'whk_unknown'}")

    def judge(self, world: World, answer: Answer) -> None:
        chosen = self.chosen(world)
        if chosen is None:
            refused(answer, 404, "webhook_not_found")
            return
        good(answer, {"id": chosen, "deleted": True})
        world.endpoints.remove(chosen)


@dataclass(frozen=True)
class ListEndpoints:
    """List the endpoints; no secret is shown again."""

    def request(self, world: World) -> Request:
        return Request("GET", "/s2s/webhooks")

    def judge(self, world: World, answer: Answer) -> None:
        assert answer.status == 200, answer
        assert {each["id"] for each in answer.body["items"]} == set(world.endpoints)
        assert all(len(each["secret"]) < 16 for each in answer.body["items"])
