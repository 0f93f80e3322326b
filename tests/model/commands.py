"""Calls of a backend and an agent, each with the consequences that the contract gives it.

A command names objects by their index, so that an example can be written down and replayed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from tests.model.things import JSON, Conversation, Milestones, Moment, exactly, now, shown
from tests.model.world import World


@dataclass(frozen=True)
class Request:
    """One call. An agent sends a token and the project's header, the backend a server key, a machine its `secret`."""

    method: str
    path: str
    body: JSON | None = None
    agent: bool = False
    secret: str | None = None


@dataclass(frozen=True)
class Answer:
    """The response to a call, with the times of the request and of the response."""

    status: int
    body: JSON
    replayed: bool = False
    asked: datetime = field(default_factory=now, compare=False)
    came: datetime = field(default_factory=now, compare=False)


class Command(Protocol):
    """A call and its consequences."""

    def request(self, world: World) -> Request:
        """Return the call to make in this world."""

    def judge(self, world: World, answer: Answer) -> None:
        """Change the world as the contract says. Raises AssertionError for another answer."""


def good(answer: Answer, wanted: JSON) -> None:
    """Assert that the answer is 200 with exactly this body, except for times."""
    assert answer.status == 200, answer
    assert exactly(shown(wanted), shown(answer.body)), (wanted, answer.body)


def refused(answer: Answer, status: int, code: str) -> None:
    """Assert that the answer is this refusal."""
    assert (answer.status, answer.body.get("code")) == (status, code), answer


def stopped(answer: Answer, *reasons: tuple[int, str]) -> bool:
    """Return whether the call must be refused; then the answer has to be one of these refusals."""
    if not reasons:
        return False
    assert (answer.status, answer.body.get("code")) in reasons, answer
    return True


NOWHERE = "cnv_01M3250V00PPPPPPPPPPPPPPPP"


@dataclass(frozen=True)
class OnConversation:
    """A command on the conversation at this index, or on an unknown one if the index is not in use."""

    at: int

    def target(self, world: World) -> Conversation | None:
        """Return the conversation, also a deleted one; None if it never existed."""
        return world.conversations[self.at] if 0 <= self.at < len(world.conversations) else None

    def path(self, world: World, tail: str = "") -> str:
        """Return the conversation's path for the backend."""
        found = self.target(world)
        return f"/s2s/conversations/{NOWHERE if found is None else found.id}{tail}"

    def judge(self, world: World, answer: Answer) -> None:
        """Judge the answer; deleted and unknown conversations are refused in the same way."""
        found = self.target(world)
        if found is None or found.gone:
            refused(answer, 404, "conversation_not_found")
        else:
            self.carry_out(world, found, answer)

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        """Apply the command to a conversation that exists; the default changes nothing."""
        good(answer, world.shown(found))


@dataclass(frozen=True)
class Create:
    """Start a conversation."""

    user: str
    identity: JSON = field(default_factory=dict)
    title: str | None = None
    attributes: JSON = field(default_factory=dict)
    visible: bool = True
    text: str | None = None

    def request(self, world: World) -> Request:
        body: JSON = {"contact": {"userId": self.user, **self.identity}, "visible": self.visible}
        body |= {"attributes": self.attributes}
        body |= {} if self.title is None else {"title": self.title}
        body |= {} if self.text is None else {"message": {"text": self.text}}
        return Request("POST", "/s2s/conversations", body)

    def judge(self, world: World, answer: Answer) -> None:
        assert answer.status == 200, answer
        made = answer.body
        contact = world.identify(self.user, self.identity, made["contact"]["id"])
        fields = {
            "title": self.title,
            "status": "OPEN",
            "closedBy": None,
            "unread": False,
            "archived": False,
            "assignee": None,
            "attributes": merged({}, self.attributes),
            "rating": None,
            "ticketId": None,
        }
        began = Moment(datetime.fromisoformat(made["createdAt"]))
        conversation = Conversation(made["id"], contact, self.visible, fields, Milestones(began, began))
        world.conversations.append(conversation)
        world.emit(conversation, "conversation.created")
        if self.text is not None:
            world.say(conversation, world.of_contact(conversation), self.text, None)
        good(answer, world.shown(conversation))


def merged(attributes: JSON, patch: JSON) -> JSON:
    """Merge a patch into attributes key by key; null removes a key."""
    return {name: value for name, value in {**attributes, **patch}.items() if value is not None}


@dataclass(frozen=True)
class Fetch(OnConversation):
    """Fetch a conversation with its tags."""

    def request(self, world: World) -> Request:
        return Request("GET", self.path(world, "?include=tags"))

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        good(answer, world.shown(found) | {"tags": found.tags})


@dataclass(frozen=True)
class Messages(OnConversation):
    """List the messages that the customer sees."""

    def request(self, world: World) -> Request:
        return Request("GET", self.path(world, "/messages"))

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        for message, told in zip(found.listed, answer.body["items"], strict=True):
            message["id"] = (
                message["id"] or told["id"]
            )  # unknown if posted with the creation of a hidden conversation
        good(answer, {"items": found.listed, "nextCursor": None})


@dataclass(frozen=True)
class Say(OnConversation):
    """Post a message."""

    author: str
    text: str

    def request(self, world: World) -> Request:
        author: JSON = {"type": self.author} | ({"id": world.agent["id"]} if self.author == "agent" else {})
        return Request("POST", self.path(world, "/messages"), {"text": self.text, "author": author})

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        assert answer.status == 200, answer
        author = {"type": self.author, "id": None, "name": None}
        if self.author == "contact":
            author = world.of_contact(found)
        elif self.author == "agent":
            author = {"type": "agent", **world.agent}
        good(answer, world.say(found, author, self.text, answer.body["id"]))


@dataclass(frozen=True)
class Note(OnConversation):
    """Write a note that only agents see. It has no sequence number, and only endpoints that name the type get its event."""

    text: str

    def request(self, world: World) -> Request:
        path = self.path(world, "/messages").removeprefix("/s2s")
        return Request("POST", path, {"text": self.text, "internal": True}, agent=True)

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        assert answer.status == 200, answer
        assert (answer.body["internal"], answer.body["index"]) == (True, None)
        world.note(found)


@dataclass(frozen=True)
class Label(OnConversation):
    """Replace the conversation's tags; no event follows."""

    tags: tuple[str, ...]

    def request(self, world: World) -> Request:
        return Request("PUT", self.path(world, "/tags"), {"tags": list(self.tags)})

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        found.tags = sorted({*self.tags})
        good(answer, {"tags": found.tags})


@dataclass(frozen=True)
class Close(OnConversation):
    """Close the conversation."""

    by: str

    def request(self, world: World) -> Request:
        return Request("POST", self.path(world, "/close"), {"closedBy": self.by})

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        world.close(found, self.by)
        good(answer, world.shown(found))


@dataclass(frozen=True)
class Reopen(OnConversation):
    """Reopen the conversation."""

    def request(self, world: World) -> Request:
        return Request("POST", self.path(world, "/reopen"), {})

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        world.reopen(found)
        good(answer, world.shown(found))


@dataclass(frozen=True)
class Assign(OnConversation):
    """Assign the conversation to the agent, or unassign it."""

    to_agent: bool

    def request(self, world: World) -> Request:
        assignee = {"type": "user", "id": world.agent["id"]} if self.to_agent else None
        return Request("POST", self.path(world, "/assign"), {"assignee": assignee})

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        assignee = {"type": "user", **world.agent} if self.to_agent else None
        if found.fields["assignee"] != assignee:
            found.fields["assignee"] = assignee
            world.emit(found, "conversation.assigned")
        good(answer, world.shown(found))


@dataclass(frozen=True)
class Read(OnConversation):
    """Mark everything as read by the customer."""

    def request(self, world: World) -> Request:
        return Request("POST", self.path(world, "/read"), {})

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        world.change(found, unread=False)
        good(answer, world.shown(found))


@dataclass(frozen=True)
class Rate(OnConversation):
    """Store the customer's rating from 0 to 10."""

    rating: int

    def request(self, world: World) -> Request:
        return Request("POST", self.path(world, "/rating"), {"rating": self.rating})

    def judge(self, world: World, answer: Answer) -> None:
        if not 0 <= self.rating <= 10:
            refused(answer, 422, "invalid_input")
        else:
            super().judge(world, answer)

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        world.change(found, rating=self.rating)
        assert answer.status == 200, answer
        assert answer.body["rating"] == self.rating


@dataclass(frozen=True)
class Patch(OnConversation):
    """Change the conversation's fields; attributes are merged."""

    fields: JSON

    def request(self, world: World) -> Request:
        return Request("PATCH", self.path(world), self.fields)

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        given = dict(self.fields)
        visible = given.pop("visible", None)
        if found.fields["status"] == "CLOSED" and "status" in given:
            refused(answer, 409, "conversation_closed")
            return
        if visible is False and found.visible:
            refused(answer, 422, "invalid_input")
            return
        if "attributes" in given:
            given["attributes"] = merged(found.fields["attributes"], given["attributes"])
        world.change(found, **given)
        if visible and not found.visible:
            world.reveal(found)
        good(answer, world.shown(found))


@dataclass(frozen=True)
class NetworkLogs(OnConversation):
    """Replace the snapshot of a client's requests: 204, no event."""

    count: int

    def request(self, world: World) -> Request:
        entries = [{"url": f"https://shop.test/{number}"} for number in range(self.count)]
        return Request("PUT", self.path(world, "/network-logs"), {"requests": entries})

    def judge(self, world: World, answer: Answer) -> None:
        if self.count > 100:
            refused(answer, 422, "invalid_input")
        else:
            super().judge(world, answer)

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        assert answer.status == 204, answer


@dataclass(frozen=True)
class Delete(OnConversation):
    """Delete the conversation permanently."""

    def request(self, world: World) -> Request:
        return Request("DELETE", self.path(world))

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        world.delete(found, "manual")
        good(answer, {"id": found.id, "deleted": True})


@dataclass(frozen=True)
class Start(OnConversation):
    """Start the workflow."""

    def request(self, world: World) -> Request:
        return Request("POST", self.path(world, "/workflow/start"), {"workflowId": world.workflow})

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        if found.fields["status"] == "CLOSED":
            refused(answer, 409, "conversation_closed")
        elif not found.visible:
            refused(answer, 409, "conversation_hidden")
        elif found.running:
            refused(answer, 409, "workflow_running")
        else:
            world.start(found)
            good(answer, world.shown(found))


@dataclass(frozen=True)
class Reply(OnConversation):
    """Answer the workflow's question."""

    value: str

    def request(self, world: World) -> Request:
        return Request("POST", self.path(world, "/workflow/reply"), {"actionId": 2, "value": self.value})

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        labels = {"yes": "Yes", "no": "No"}
        if not found.running:
            refused(answer, 409, "step_not_pending")
        elif self.value not in labels:
            refused(answer, 422, "invalid_input")
        else:
            world.answer(found, labels[self.value])
            good(answer, world.shown(found))


@dataclass(frozen=True)
class Step(OnConversation):
    """Fetch the question that waits for an answer."""

    def request(self, world: World) -> Request:
        return Request("GET", self.path(world, "/workflow"))

    def carry_out(self, world: World, found: Conversation, answer: Answer) -> None:
        good(answer, {"step": world.step() if found.running else None})
