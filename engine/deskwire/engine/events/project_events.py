"""Internal events: what agents are told, and nobody else.

They are for what no other event shows. Each is appended in the transaction of its change, has no number, is delivered to
nobody, and leaves the conversation's row as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.core.clock import Clock, iso
from deskwire.engine.core.store import Brief, Store
from deskwire.engine.events.ports import EventTransaction
from deskwire.engine.events.types import AGENTS, EventDraft, StoredEvent

Setting = Literal[
    "members", "teams", "snippets", "workflows", "surveys", "translations", "webhooks", "project", "keys"
]
"""A kind of thing that a project is set up with."""

ActorType = Literal["user", "key", "machine", "system", "contact", "bot"]
"""A kind of author of a change."""


class Actor(Struct, frozen=True):
    """The author of a change, with their name at that time."""

    type: ActorType
    id: str | None = None
    name: str | None = None


SYSTEM = Actor("system")


def actor_view(actor: Actor) -> dict[str, Any]:
    """Return the actor as events show it."""
    return {"type": actor.type, "id": actor.id, "name": actor.name}


def append_internal_event(
    tx: EventTransaction,
    project: Project,
    draft: EventDraft,
    subject: int | None,
    at: int,
    *,
    ticket: int | None = None,
) -> StoredEvent:
    """Put an internal event into the log.

    Args:
        subject: what it is about and is erased with: the storage key of a conversation, or a contact's by
            `contact_lane`. None is for what holds nothing of a contact.
        at: time in milliseconds.
        ticket: storage key of the ticket that it is about and is erased with, too.
    """
    assert draft.type in AGENTS, "everything else is appended with its deliveries"
    return tx.append_event(project, draft, subject, at, ticket=ticket)


def note_created(message: Mapping[str, Any], conversation: Mapping[str, Any]) -> EventDraft:
    """Return the event of a note; both objects are as agents see them."""
    return EventDraft("note.created", None, {"message": message, "conversation": conversation})


def conversation_changed(
    conversation: Mapping[str, Any],
    changed: Sequence[str],
    actor: Actor,
    *,
    redacted: Sequence[str] = (),
    deleted: Sequence[str] = (),
) -> EventDraft:
    """Return the event of a change that no other event shows, or none with its author.

    Args:
        conversation: the object as agents see it, after the change.
        changed: the names of its fields that changed.
        redacted, deleted: the ids of messages and notes that were.
    """
    data = {"conversation": conversation, "changed": [*changed], "actor": actor_view(actor)}
    if redacted:
        data["redactedMessageIds"] = [*redacted]
    if deleted:
        data["deletedMessageIds"] = [*deleted]
    return EventDraft("conversation.changed", None, data)


def ticket_event(
    what: Literal["created", "changed", "deleted"],
    ticket: Mapping[str, Any],
    changed: Sequence[str],
    actor: Actor,
) -> EventDraft:
    """Return an event of a ticket; of a deleted one the ids alone."""
    data = {"ticket": ticket, "changed": [*changed], "actor": actor_view(actor)}
    return EventDraft(f"ticket.{what}", None, data)


def memory_changed(contact_id: str, *, deleted: bool) -> EventDraft:
    """Return the event of what is remembered of a contact. It names no entry: what is forgotten leaves no byte."""
    return EventDraft("memory.changed", None, {"contactId": contact_id, "deleted": deleted})


def settings_changed(what: Setting, object_id: str | None) -> EventDraft:
    """Return the event of a change to what the project is set up with; without an id it is of several things."""
    return EventDraft("settings.changed", None, {"what": what, "id": object_id})


Removal = Literal["redacted", "deleted"]


def message_removed(
    what: Removal, conversation_id: str, message_id: str, at: int, actor: Actor
) -> EventDraft:
    """Return the event of a message of which something is no more, `at` this time (ms). It says nothing of what it held."""
    data = {
        "conversationId": conversation_id,
        "messageId": message_id,
        "at": iso(at),
        "actor": actor_view(actor),
    }
    return EventDraft("message.redacted" if what == "redacted" else "message.deleted", None, data)


def contact_changed(contact: Mapping[str, Any], changed: Sequence[str], actor: Actor) -> EventDraft:
    """Return the event of a change of a contact that `contact.updated` does not show.

    Args:
        contact: the object as the API shows it, after the change.
        changed: the names of its fields that changed.
    """
    return EventDraft(
        "contact.changed", None, {"contact": contact, "changed": [*changed], "actor": actor_view(actor)}
    )


def contact_merged(
    contact: Mapping[str, Any], merged_id: str, merged_user_id: str, actor: Actor
) -> EventDraft:
    """Return the event of a merge.

    Args:
        contact: the object as the API shows it, which has everything now.
        merged_id, merged_user_id: the ids of the contact that is no more.
    """
    merged = {"id": merged_id, "userId": merged_user_id}
    data = {"contact": contact, "merged": merged, "actor": actor_view(actor)}
    return EventDraft("contact.merged", None, data)


def response_created(survey_id: str, version: int, response: Mapping[str, Any]) -> EventDraft:
    """Return the event of a new response to a version of a survey; `response` is the object as the API shows it."""
    return EventDraft(
        "survey.response.created",
        None,
        {"survey": {"id": survey_id, "version": version}, "response": response},
    )


def response_deleted(survey_id: str, response_id: str) -> EventDraft:
    """Return the event of a response that is no more: its ids, and nothing of what it said."""
    return EventDraft(
        "survey.response.deleted", None, {"survey": {"id": survey_id}, "response": {"id": response_id}}
    )


def conversations_imported(conversations: Sequence[Mapping[str, Any]]) -> EventDraft:
    """Return the event of a part of an import that causes no others.

    Args:
        conversations: of each one that has something new its `id`, its `sequence`, and in `messages` the number of them after
            this part; in `imported` how many of these this part has stored, and in `firstMessageId` the first of those.
    """
    return EventDraft("conversations.imported", None, {"conversations": [*conversations]})


def survey_deleted(survey_id: str) -> EventDraft:
    """Return the event of a survey that is no more, and none of its responses is."""
    return EventDraft("survey.deleted", None, {"survey": {"id": survey_id}})


T = TypeVar("T")
R = TypeVar("R")
W = TypeVar("W", bound=EventTransaction)


class NotifyingStore(Struct, Generic[R, W], frozen=True):
    """A store each of whose writes has an event for the agents of these projects, in the same commit.

    There is one also if nothing turned out to be another: who hears of it looks for itself.

    Args:
        projects: returns the projects that it is about.
        object_id: the id of what is changed; None for what is new, or for several things.
    """

    store: Store[R, W]
    clock: Clock
    what: Setting
    projects: Callable[[W], Sequence[Project]]
    object_id: str | None

    async def write(self, job: Callable[[W], T]) -> T:
        """See `Store.write`."""
        return await self.store.write(self._told(job))

    def submit(self, job: Callable[[W], T], ended: Callable[[T | Exception], None]) -> None:
        """See `Store.submit`."""
        self.store.submit(self._told(job), ended)

    async def read(self, query: Callable[[R], T]) -> T:
        """See `Store.read`."""
        return await self.store.read(query)

    def _told(self, job: Callable[[W], T]) -> Callable[[W], T]:
        at = self.clock()

        def told(tx: W) -> T:
            done = job(tx)
            for project in self.projects(tx):
                append_internal_event(tx, project, settings_changed(self.what, self.object_id), None, at)
            return done

        return Brief(told) if isinstance(job, Brief) else told
