"""The objects that the API and the events show of a conversation, and the events that a fact causes.

Agents get the public events, and these events that no consumer gets:

- `note.created` for a note with the users whom it mentions, and for a message of a conversation that is hidden from the customer.
- `message.reached` and `message.seen` for the marks of the contact's clients.
- `conversation.changed` for changes of the agent's view that no public event shows, and in addition to public events if a
  user, a server key or the service itself made the change, because public events do not name the actor.

A public message causes no `conversation.changed` for its own effects: since when the contact waits, the end of a snooze, and
the reopening of the conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, assert_never

from deskwire.engine.contacts.contact import Contact, contact_view
from deskwire.engine.conversations.activity import ActivityEntry
from deskwire.engine.conversations.conversation import Conversation, Message
from deskwire.engine.conversations.decide import PUBLIC_NAMES, Transition
from deskwire.engine.conversations.facts import (
    AgentFieldsUpdated,
    Assigned,
    Closed,
    Created,
    Deleted,
    Fact,
    FollowChanged,
    MessagePosted,
    MessageRewritten,
    MessagesReceived,
    Moved,
    NetworkLogsReplaced,
    Reopened,
    Revealed,
    Updated,
    WorkflowCompleted,
    WorkflowWaits,
)
from deskwire.engine.conversations.mentions import mention_view
from deskwire.engine.conversations.redaction import PREVIEW_LENGTH_MAX
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.values import replace
from deskwire.engine.events.project_events import Mark
from deskwire.engine.events.types import EventDraft
from deskwire.engine.uploads.links import AttachmentsView


def conversation_view(state: Conversation, contact: Contact, project_id: str) -> dict[str, Any]:
    """Return the conversation object (decisions 4), without the fields from `ratingComment` on that have no value."""
    assignee = state.assignee
    view: dict[str, Any] = {
        "id": state.id,
        "projectId": project_id,
        "contact": {
            "id": contact.id,
            "userId": contact.user_id,
            "name": contact.name,
            "email": contact.email,
        },
        "title": state.title,
        "status": state.status,
        "closed": state.status == "CLOSED",
        "closedBy": state.closed_by,
        "unread": state.unread,
        "archived": state.archived,
        "assignee": assignee and {"type": assignee.type, "id": assignee.id, "name": assignee.name},
        "attributes": state.attributes,
        "rating": state.rating,
        "ticketId": state.ticket_id,
        "lastMessageAt": iso_or_none(state.last_message_at),
        "sequence": state.sequence,
        "createdAt": iso(state.created_at),
        "updatedAt": iso(state.updated_at),
        "closedAt": iso_or_none(state.closed_at),
    }
    if state.rating_comment is not None:
        view["ratingComment"] = state.rating_comment
    if state.channel is not None:
        view["channelId"] = state.channel
    if state.client_id is not None:
        view["clientId"] = state.client_id
    if state.merged_into is not None:
        view["mergedInto"] = state.merged_into
    if state.merged:
        view["merged"] = list(state.merged)
    if state.split_from is not None:
        view["splitFrom"] = state.split_from
    if state.split_into:
        view["splitInto"] = list(state.split_into)
    return view


def message_view(message: Message, conversation_id: str, show: AttachmentsView) -> dict[str, Any]:
    """Return the message object of the public API (decisions 4), without `clientId`, `format` and `splitInto` if there is none."""
    author = message.author
    view = {
        "id": message.id,
        "conversationId": conversation_id,
        "index": message.index,
        "author": {"type": author.type, "id": author.id, "name": author.name},
        "text": message.text,
        "attachments": show(message.attachments) if message.attachments else [],
        "createdAt": iso(message.created_at),
        "redactedAt": iso_or_none(message.redacted_at),
    }
    if message.client_id is not None:
        view["clientId"] = message.client_id
    if message.format is not None:
        view["format"] = message.format
    if message.shown_in is not None:
        view["splitInto"] = message.shown_in
    return view


def dashboard_message_view(message: Message, conversation_id: str, show: AttachmentsView) -> dict[str, Any]:
    """Return the message object for agents: `internal` marks notes, `mentions` has the users and teams that a note mentions."""
    return {
        **message_view(message, conversation_id, show),
        "internal": message.internal,
        "mentions": [mention_view(each) for each in message.mentions],
    }


def agent_view(
    state: Conversation,
    contact: Contact,
    project_id: str,
    last: Message | None,
    workflow: str | None,
    followers: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the conversation object for agents, in the form of their events.

    Args:
        last: the newest message or note.
        workflow: the name of the running workflow, if any.
        followers: ids of the users who follow it.
    """
    run = state.run
    return {
        **conversation_view(state, contact, project_id),
        "visible": state.visible,
        "tags": list(state.tags),
        "snoozedUntil": iso_or_none(state.snoozed_until),
        "waitingSince": iso_or_none(state.waiting_since),
        "noAnswerNeededSince": iso_or_none(state.no_answer_needed_since),
        "messages": state.messages,
        "lastMessage": last and message_preview(last),
        "contactSeenIndex": state.contact_seen_index,
        "contactSeenAt": iso_or_none(state.contact_seen_at),
        "contactReachedIndex": state.contact_reached_index,
        "contactReachedAt": iso_or_none(state.contact_reached_at),
        "networkLogsAt": iso_or_none(state.network_logs_at),
        "workflow": run and {"id": run.workflow_id, "name": workflow, "waiting": run.step is not None},
        "followers": [*followers],
    }


def message_preview(message: Message) -> dict[str, Any]:
    """Return the preview of the newest message in the agent's view."""
    author = message.author
    return {
        "id": message.id,
        "author": {"type": author.type, "id": author.id, "name": author.name},
        "text": message.text[:PREVIEW_LENGTH_MAX],
        "internal": message.internal,
        "createdAt": iso(message.created_at),
    }


_UNSEEN_BY_CUSTOMERS: Final = (NetworkLogsReplaced, AgentFieldsUpdated, MessagesReceived, FollowChanged)
"""The facts without public events, of which customers see nothing."""


def public_events(
    fact: Fact,
    after: Conversation,
    contact: Contact,
    project_id: str,
    earlier: Sequence[Message],
    show: AttachmentsView,
) -> Iterator[EventDraft]:
    """Yield the public events of a fact, in order.

    Args:
        after: the state after the fact; its sequence is that of the last event.
        earlier: the customer-visible messages before the fact; only `Revealed` needs them.
        show: makes the URLs of attachments.
    """
    if not after.visible or isinstance(fact, _UNSEEN_BY_CUSTOMERS):
        return
    data: dict[str, Any] = {"conversation": conversation_view(after, contact, project_id)}
    match fact:
        case MessagePosted(message):
            if not message.internal:
                data = {"message": message_view(message, after.id, show), **data}
                yield EventDraft("message.created", after.sequence, data)
        case MessageRewritten(_, message):
            if not message.internal:
                yield _rewriting(message, after.sequence, data)
        case Created(_, split_off):
            if split_off:
                data["splitOffMessageIds"] = [*split_off]
            yield EventDraft("conversation.created", after.sequence, data)
        case Revealed():
            yield from _reveal(after, contact, project_id, earlier, show)
        case Closed(by):
            yield EventDraft("conversation.closed", after.sequence, {**data, "closedBy": by})
        case Reopened():
            yield EventDraft("conversation.reopened", after.sequence, data)
        case Assigned():
            yield EventDraft("conversation.assigned", after.sequence, data)
        case Updated(changes):
            changed = sorted(public for name in changes if (public := PUBLIC_NAMES[name]))
            yield EventDraft("conversation.updated", after.sequence, {**data, "changed": changed})
        case Moved():
            yield EventDraft("conversation.updated", after.sequence, {**data, "changed": ["contact"]})
        case WorkflowWaits(run):
            if run.step is not None:
                yield EventDraft("workflow.step.presented", after.sequence, {**data, "step": run.step})
        case WorkflowCompleted(workflow_id, ended):
            data = {**data, "workflowId": workflow_id, "reason": ended}
            yield EventDraft("workflow.completed", after.sequence, data)
        case Deleted(reason):
            yield _deletion(after, contact, reason)
        case _:
            assert_never(fact)


def _reveal(
    after: Conversation, contact: Contact, project_id: str, earlier: Sequence[Message], show: AttachmentsView
) -> Iterator[EventDraft]:
    """Yield the events of a revealed conversation: its creation, its messages, and its closing if it is closed."""
    closed = after.status == "CLOSED"
    state = replace(after, sequence=after.sequence - len(earlier) - closed)
    if closed:
        state = replace(state, status="OPEN", closed_by=None, closed_at=None)
    data = {"conversation": conversation_view(state, contact, project_id)}
    yield EventDraft("conversation.created", state.sequence, data)
    for message in earlier:
        state = replace(state, sequence=state.sequence + 1)
        data = {"conversation": conversation_view(state, contact, project_id)}
        if message.deleted:  # deleted messages have a sequence number as well
            yield _rewriting(message, state.sequence, data)
        else:
            data = {"message": message_view(message, after.id, show), **data}
            yield EventDraft("message.created", state.sequence, data)
    if closed:
        data = {"conversation": conversation_view(after, contact, project_id)}
        yield EventDraft("conversation.closed", after.sequence, {**data, "closedBy": after.closed_by})


def _rewriting(message: Message, sequence: int, data: Mapping[str, Any]) -> EventDraft:
    """Return the event of a message that was redacted or deleted."""
    ids = "deletedMessageIds" if message.deleted else "redactedMessageIds"
    return EventDraft("conversation.updated", sequence, {**data, "changed": ["messages"], ids: [message.id]})


def _deletion(after: Conversation, contact: Contact, reason: str) -> EventDraft:
    """Return the event of a deletion: the fields that a mirror needs, without personal data (decisions 4)."""
    conversation = {
        "id": after.id,
        "status": after.status,
        "closed": after.status == "CLOSED",
        "unread": after.unread,
        "contact": {"userId": contact.user_id},
    }
    data = {"conversation": conversation, "reason": reason}
    return EventDraft("conversation.deleted", after.sequence, data)


def contact_updated(contact: Contact) -> EventDraft:
    """Return the event of a changed contact identity, which has no sequence (contract 2.10)."""
    return EventDraft("contact.updated", None, {"contact": contact_view(contact)})


def webhook_test(endpoint_id: str, url: str) -> EventDraft:
    """Return the event that tests an endpoint; no stream has it (decisions 6)."""
    return EventDraft("webhook.test", None, {"endpointId": endpoint_id, "url": url})


_NAMES: Final[Mapping[str, str]] = {
    "title": "title",
    "status": "status",
    "closed_by": "closedBy",
    "closed_at": "closedAt",
    "unread": "unread",
    "archived": "archived",
    "assignee": "assignee",
    "attributes": "attributes",
    "rating": "rating",
    "rating_comment": "ratingComment",
    "ticket_id": "ticketId",
    "visible": "visible",
    "tags": "tags",
    "snoozed_until": "snoozedUntil",
    "waiting_since": "waitingSince",
    "no_answer_needed_since": "noAnswerNeededSince",
    "contact_seen_index": "contactSeenIndex",
    "contact_seen_at": "contactSeenAt",
    "contact_reached_index": "contactReachedIndex",
    "contact_reached_at": "contactReachedAt",
    "network_logs_at": "networkLogsAt",
    "merged_into": "mergedInto",
    "merged": "merged",
    "split_from": "splitFrom",
    "split_into": "splitInto",
}
"""The fields that `conversation.changed` may name, with their names in the API."""

_PARTLY_PUBLIC: Final = (AgentFieldsUpdated, FollowChanged, NetworkLogsReplaced, Revealed, MessageRewritten)
"""The facts that public events show incompletely or not at all."""


def notes_posted(facts: Sequence[Fact], steps: Sequence[Transition]) -> Iterator[Message]:
    """Yield the messages that only agents see. `facts` are those of the steps, with the names of authors."""
    for fact, (_, _, after) in zip(facts, steps, strict=True):
        if isinstance(fact, MessagePosted) and (fact.message.internal or not after.visible):
            yield fact.message


def changed_for_agents(
    steps: Sequence[Transition], entries: Sequence[ActivityEntry | None], *, followed: bool = False
) -> list[str]:
    """Return the changed fields of the agent's view; none if public events show all changes.

    Args:
        followed: whether a `FollowChanged` has changed the followers.
    """
    before, after = steps[0][0], steps[-1][2]
    if before is None:
        # The public events of a conversation that was split off do not name the agent, because they have no message.
        return [] if after.visible and after.split_from is None else ["created"]
    if isinstance(steps[-1][1], Deleted):
        return [] if after.visible else ["deleted"]
    names = [public for name, public in _NAMES.items() if getattr(before, name) != getattr(after, name)]
    if any(isinstance(fact, Moved) for _, fact, _ in steps):
        names.append("contact")
    if _running(before) != _running(after):
        names.append("workflow")
    if any(isinstance(fact, MessageRewritten) for _, fact, _ in steps):
        names.append("messages")
    if followed:
        names.append("followers")
    return names if _public_events_are_incomplete(before, after, steps, entries) else []


def _public_events_are_incomplete(
    before: Conversation,
    after: Conversation,
    steps: Sequence[Transition],
    entries: Sequence[ActivityEntry | None],
) -> bool:
    """Return whether public events leave out a change or its actor."""
    if not before.visible and any(not isinstance(fact, MessagePosted) for _, fact, _ in steps):
        return True
    # Agents are notified of assignments, so these have an actor even if that is a workflow.
    for entry, (_, fact, _) in zip(entries, steps, strict=False):
        if entry is not None and (entry.by.type != "bot" or isinstance(fact, Assigned)):
            return True
    # `message.seen` and `message.reached` show the marks of clients.
    received = any(isinstance(fact, MessagesReceived) for _, fact, _ in steps)
    if before.contact_seen_at != after.contact_seen_at and not received:
        return True
    waits = any(isinstance(fact, WorkflowWaits) for _, fact, _ in steps)
    return (waits and _running(before) != _running(after)) or any(
        isinstance(fact, _PARTLY_PUBLIC) for _, fact, _ in steps
    )


def _running(state: Conversation) -> tuple[str, bool] | None:
    """Return the part of the running workflow that agents see."""
    return None if state.run is None else (state.run.workflow_id, state.run.step is not None)


def rewritten_ids(facts: Sequence[Fact]) -> Mapping[str, list[str]]:
    """Return the ids of redacted and deleted messages, as keyword arguments of `conversation_changed`."""
    ids: dict[str, list[str]] = {}
    for fact in facts:
        if isinstance(fact, MessageRewritten):
            ids.setdefault("deleted" if fact.message.deleted else "redacted", []).append(fact.message.id)
    return ids


def changed_by(
    by: Actor | None, steps: Sequence[Transition], entries: Sequence[ActivityEntry | None], contact: Contact
) -> Actor:
    """Return the actor of a change: of the command, else the workflow, the contact, or the service itself."""
    if by is not None:
        return by
    for entry in entries:
        if entry is not None:
            return entry.by
    for _, fact, after in steps:
        if isinstance(fact, MessagePosted) and fact.message.author.type == "contact":
            return Actor("contact", contact.id, contact.name)
        if isinstance(fact, WorkflowWaits) and after.run is not None:
            return Actor("bot", after.run.workflow_id)
    return Actor("system")


def marks_of(fact: MessagesReceived) -> Iterator[tuple[Mark, int]]:
    """Yield the marks that have grown, each with the index of its message."""
    if fact.reached is not None:
        yield "reached", fact.reached
    if fact.seen is not None:
        yield "seen", fact.seen


def deleted_view(state: Conversation) -> dict[str, Any]:
    """Return the object of a deleted hidden conversation, without its contact."""
    return {"id": state.id}
