"""Drafts of the events beyond the contract, and the means to append internal events.

Internal events are for agents' streams only, and report changes that no other event shows. Each is appended in the transaction
of its change. It has no sequence number, is not delivered to endpoints, and does not change the conversation's row. Drafts of
extension events are stored and delivered by `webhooks.publish.publish_extension`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.clock import Clock, iso
from deskwire.engine.core.store import InlineJob, Store
from deskwire.engine.events.ports import EventTransaction
from deskwire.engine.events.types import AGENTS, EventDraft, StoredEvent

# A part of a project's setup that `settings.changed` reports.
Setting = Literal[
    "members",
    "roles",
    "teams",
    "snippets",
    "views",
    "bulk_jobs",
    "workflows",
    "surveys",
    "translations",
    "webhooks",
    "project",
    "keys",
    "channels",
]

EventActorType = Literal["user", "key", "machine", "system", "contact", "bot"]  # the kind of an actor


def event_actor_type(actor: Actor) -> EventActorType:
    """Return the actor's type as events and activity logs name it.

    Raises:
        ValueError: for a type that only the audit trail has.
    """
    match actor.type:
        case "server_key":
            # The name in events since their first version; only the audit trail calls it `server_key`.
            return "key"
        case "operator" | "anonymous" | "unknown":
            raise ValueError(f"{actor.type} is not a type of actor in events")
        case other:
            return other


def actor_view(actor: Actor) -> dict[str, Any]:
    """Return the actor as events show it."""
    return {"type": event_actor_type(actor), "id": actor.id, "name": actor.name}


def append_internal_event(
    tx: EventTransaction,
    project: Project,
    draft: EventDraft,
    subject: int | None,
    at: int,
    *,
    ticket: int | None = None,
) -> StoredEvent:
    """Append an internal event to the log, and return it.

    Args:
        subject: storage key of a conversation, or the `contact_lane` of a contact; the event is erased together with it.
            None for an event that contains nothing about a contact.
        at: time in milliseconds.
        ticket: storage key of a ticket; the event is erased together with the ticket, too.
    """
    assert draft.type in AGENTS, "other events are appended together with their deliveries"
    return tx.append_event(project, draft, subject, at, ticket=ticket)


def note_created(
    message: Mapping[str, Any], conversation: Mapping[str, Any], mentioned: Sequence[str] = ()
) -> EventDraft:
    """Return the event of a new note; both objects are in the form for agents.

    Args:
        mentioned: ids of the users whom it mentions, alone or as members of a team.
    """
    data = {"message": message, "conversation": conversation, "mentioned": [*mentioned]}
    return EventDraft("note.created", None, data)


def conversation_changed(
    conversation: Mapping[str, Any],
    changed: Sequence[str],
    actor: Actor,
    *,
    redacted: Sequence[str] = (),
    deleted: Sequence[str] = (),
) -> EventDraft:
    """Return the event of a change that no other event shows, or that no other event shows with its author.

    Args:
        conversation: the object in the form for agents, after the change.
        changed: the names of its changed fields.
        redacted, deleted: ids of redacted and of deleted messages and notes.
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
    """Return an event of a ticket; `ticket` holds only ids if it was deleted."""
    data = {"ticket": ticket, "changed": [*changed], "actor": actor_view(actor)}
    return EventDraft(f"ticket.{what}", None, data)


def memory_changed(contact_id: str, *, deleted: bool) -> EventDraft:
    """Return the event of a change to a contact's memory entries."""
    # It names no entry, because a deleted entry must leave no byte in the log.
    return EventDraft("memory.changed", None, {"contactId": contact_id, "deleted": deleted})


def settings_changed(what: Setting, object_id: str | None) -> EventDraft:
    """Return the event of a change to a project's setup; without an id it is about several objects."""
    return EventDraft("settings.changed", None, {"what": what, "id": object_id})


Removal = Literal["redacted", "deleted"]


def message_removed(
    what: Removal, conversation_id: str, message_id: str, at: int, actor: Actor
) -> EventDraft:
    """Return the event of a redacted or deleted message, without its previous content; `at` is the time in ms."""
    data = {
        "conversationId": conversation_id,
        "messageId": message_id,
        "at": iso(at),
        "actor": actor_view(actor),
    }
    return EventDraft("message.redacted" if what == "redacted" else "message.deleted", None, data)


Mark = Literal["reached", "seen"]


def message_received(
    what: Mark, conversation: Mapping[str, Any], message_id: str | None, index: int, at: int
) -> EventDraft:
    """Return the event of the newest message that a client of the contact has received, or shown.

    Args:
        conversation: the public object.
        index: of the message among the conversation's messages.
        at: time in milliseconds.
    """
    data = {"conversation": conversation, "messageId": message_id, "index": index, "at": iso(at)}
    return EventDraft("message.reached" if what == "reached" else "message.seen", None, data)


def contact_changed(contact: Mapping[str, Any], changed: Sequence[str], actor: Actor) -> EventDraft:
    """Return the event of a change to a contact that `contact.updated` does not show.

    Args:
        contact: the contact as the API shows it, after the change.
        changed: the names of its changed fields.
    """
    return EventDraft(
        "contact.changed", None, {"contact": contact, "changed": [*changed], "actor": actor_view(actor)}
    )


def contact_merged(
    contact: Mapping[str, Any], merged_id: str, merged_user_id: str, actor: Actor
) -> EventDraft:
    """Return the event of a merge of two contacts.

    Args:
        contact: the remaining contact as the API shows it, after the merge.
        merged_id, merged_user_id: the ids of the contact that no longer exists.
    """
    merged = {"id": merged_id, "userId": merged_user_id}
    data = {"contact": contact, "merged": merged, "actor": actor_view(actor)}
    return EventDraft("contact.merged", None, data)


def response_created(survey_id: str, version: int, response: Mapping[str, Any]) -> EventDraft:
    """Return the event of a new survey response; `response` is the object as the API shows it."""
    return EventDraft(
        "survey.response.created",
        None,
        {"survey": {"id": survey_id, "version": version}, "response": response},
    )


def response_deleted(survey_id: str, response_id: str) -> EventDraft:
    """Return the event of a deleted survey response: ids only, without the answers."""
    return EventDraft(
        "survey.response.deleted", None, {"survey": {"id": survey_id}, "response": {"id": response_id}}
    )


def conversations_imported(conversations: Sequence[Mapping[str, Any]]) -> EventDraft:
    """Return the event of one part of an import without events.

    Args:
        conversations: an object for each new or changed conversation: `id`, `sequence`, `messages` (their number after this
            part), `imported` (how many of them this part stored) and `firstMessageId` (the first one stored).
    """
    return EventDraft("conversations.imported", None, {"conversations": [*conversations]})


def survey_deleted(survey_id: str) -> EventDraft:
    """Return the event of a survey that was deleted with all its responses."""
    return EventDraft("survey.deleted", None, {"survey": {"id": survey_id}})


T = TypeVar("T")
R = TypeVar("R")
W = TypeVar("W", bound=EventTransaction)


class NotifyingStore(Struct, Generic[R, W], frozen=True):
    """A store that appends a `settings.changed` event for a project's agents to each write, in the same commit.

    It appends the event even if the write changed nothing, because receivers fetch the settings again anyway.

    Args:
        projects: returns the projects to notify.
        object_id: id of the changed object; None for a new object, or for several.
    """

    store: Store[R, W]
    clock: Clock
    what: Setting
    projects: Callable[[W], Sequence[Project]]
    object_id: str | None

    async def write(self, job: Callable[[W], T]) -> T:
        """See `Store.write`."""
        return await self.store.write(self._notifying(job))

    def submit(self, job: Callable[[W], T], ended: Callable[[T | Exception], None]) -> None:
        """See `Store.submit`."""
        self.store.submit(self._notifying(job), ended)

    async def read(self, query: Callable[[R], T]) -> T:
        """See `Store.read`."""
        return await self.store.read(query)

    def _notifying(self, job: Callable[[W], T]) -> Callable[[W], T]:
        at = self.clock()

        def notifying(tx: W) -> T:
            done = job(tx)
            for project in self.projects(tx):
                append_internal_event(tx, project, settings_changed(self.what, self.object_id), None, at)
            return done

        return InlineJob(notifying) if isinstance(job, InlineJob) else notifying
