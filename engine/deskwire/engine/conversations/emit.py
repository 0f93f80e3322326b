"""The objects that the API and the events show of a conversation, and the events that a fact causes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

from deskwire.engine.contacts.contact import Contact, contact_view
from deskwire.engine.conversations.conversation import Conversation, Message
from deskwire.engine.conversations.decide import PUBLIC_NAMES
from deskwire.engine.conversations.facts import (
    Assigned,
    Closed,
    Created,
    Deleted,
    Fact,
    Filed,
    MessagePosted,
    MessageRewritten,
    Moved,
    NetworkLogsReplaced,
    Reopened,
    Revealed,
    Updated,
    WorkflowCompleted,
    WorkflowWaits,
)
from deskwire.engine.conversations.redaction import FIRST_WORDS
from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import Draft
from deskwire.engine.uploads.links import AttachmentsView


def conversation_view(state: Conversation, contact: Contact, project_id: str) -> dict[str, Any]:
    """Return the conversation object (decisions 4). It has a `ratingComment` only if the contact left one."""
    assignee = state.assignee
    view = {
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
    return view


def message_view(message: Message, conversation_id: str, show: AttachmentsView) -> dict[str, Any]:
    """Return the message object as a customer's side sees it (decisions 4)."""
    author = message.author
    return {
        "id": message.id,
        "conversationId": conversation_id,
        "index": message.index,
        "author": {"type": author.type, "id": author.id, "name": author.name},
        "text": message.text,
        "attachments": show(message.attachments) if message.attachments else [],
        "createdAt": iso(message.created_at),
        "redactedAt": iso_or_none(message.redacted_at),
    }


def dashboard_message_view(message: Message, conversation_id: str, show: AttachmentsView) -> dict[str, Any]:
    """Return the message object as agents see it: with `internal`, which tells notes from messages."""
    return {**message_view(message, conversation_id, show), "internal": message.internal}


def agent_view(
    state: Conversation, contact: Contact, project_id: str, last: Message | None, workflow: str | None
) -> dict[str, Any]:
    """Return the conversation object with what only agents see, as their events have it.

    Args:
        last: the newest message, which may be a note.
        workflow: the name of the workflow that runs, if one does.
    """
    run = state.run
    return {
        **conversation_view(state, contact, project_id),
        "visible": state.visible,
        "tags": list(state.tags),
        "snoozedUntil": iso_or_none(state.snoozed_until),
        "waitingSince": iso_or_none(state.waiting_since),
        "messages": state.messages,
        "lastMessage": last and first_words(last),
        "contactSeenIndex": state.contact_seen_index,
        "contactSeenAt": iso_or_none(state.contact_seen_at),
        "networkLogsAt": iso_or_none(state.network_logs_at),
        "workflow": run and {"id": run.workflow_id, "name": workflow, "waiting": run.step is not None},
    }


def first_words(message: Message) -> dict[str, Any]:
    """Return the newest message as the agents' view of a conversation shows it."""
    author = message.author
    return {
        "id": message.id,
        "author": {"type": author.type, "id": author.id, "name": author.name},
        "text": message.text[:FIRST_WORDS],
        "internal": message.internal,
        "createdAt": iso(message.created_at),
    }


def announce(
    fact: Fact,
    after: Conversation,
    contact: Contact,
    project_id: str,
    earlier: Sequence[Message],
    show: AttachmentsView,
) -> Iterator[Draft]:
    """Yield the events that `fact` causes, in order.

    Args:
        after: the state after the fact; its sequence is that of the last event yielded.
        earlier: the customer-visible messages written before, needed for `Revealed` only.
        show: gives a message's attachments their URLs.
    """
    if not after.visible or isinstance(fact, NetworkLogsReplaced | Filed):
        return
    data: dict[str, Any] = {"conversation": conversation_view(after, contact, project_id)}
    match fact:
        case MessagePosted(message):
            if not message.internal:
                data = {"message": message_view(message, after.id, show), **data}
                yield Draft("message.created", after.sequence, data)
        case MessageRewritten(_, message):
            if not message.internal:
                yield _rewriting(message, after.sequence, data)
        case Created():
            yield Draft("conversation.created", after.sequence, data)
        case Revealed():
            yield from _reveal(after, contact, project_id, earlier, show)
        case Closed(by):
            yield Draft("conversation.closed", after.sequence, {**data, "closedBy": by})
        case Reopened():
            yield Draft("conversation.reopened", after.sequence, data)
        case Assigned():
            yield Draft("conversation.assigned", after.sequence, data)
        case Updated(changes):
            changed = sorted(public for name in changes if (public := PUBLIC_NAMES[name]))
            yield Draft("conversation.updated", after.sequence, {**data, "changed": changed})
        case Moved():
            yield Draft("conversation.updated", after.sequence, {**data, "changed": ["contact"]})
        case WorkflowWaits(run):
            if run.step is not None:
                yield Draft("workflow.step.presented", after.sequence, {**data, "step": run.step})
        case WorkflowCompleted(workflow_id, ended):
            data = {**data, "workflowId": workflow_id, "reason": ended}
            yield Draft("workflow.completed", after.sequence, data)
        case Deleted(reason):
            yield _deletion(after, contact, reason)
        case _:
            assert_never(fact)


def _reveal(
    after: Conversation, contact: Contact, project_id: str, earlier: Sequence[Message], show: AttachmentsView
) -> Iterator[Draft]:
    """Yield the creation and the messages of a conversation as it was while open, and its closing if it is closed."""
    closed = after.status == "CLOSED"
    state = replace(after, sequence=after.sequence - len(earlier) - closed)
    if closed:
        state = replace(state, status="OPEN", closed_by=None, closed_at=None)
    data = {"conversation": conversation_view(state, contact, project_id)}
    yield Draft("conversation.created", state.sequence, data)
    for message in earlier:
        state = replace(state, sequence=state.sequence + 1)
        data = {"conversation": conversation_view(state, contact, project_id)}
        if message.deleted:  # its place has a number like the others
            yield _rewriting(message, state.sequence, data)
        else:
            data = {"message": message_view(message, after.id, show), **data}
            yield Draft("message.created", state.sequence, data)
    if closed:
        data = {"conversation": conversation_view(after, contact, project_id)}
        yield Draft("conversation.closed", after.sequence, {**data, "closedBy": after.closed_by})


def _rewriting(message: Message, sequence: int, data: Mapping[str, Any]) -> Draft:
    """Return the event of a message that was redacted or deleted."""
    ids = "deletedMessageIds" if message.deleted else "redactedMessageIds"
    return Draft("conversation.updated", sequence, {**data, "changed": ["messages"], ids: [message.id]})


def _deletion(after: Conversation, contact: Contact, reason: str) -> Draft:
    """Return the event of a deletion: only what a mirror needs to prune, no personal data (decisions 4)."""
    conversation = {
        "id": after.id,
        "status": after.status,
        "closed": after.status == "CLOSED",
        "unread": after.unread,
        "contact": {"userId": contact.user_id},
    }
    data = {"conversation": conversation, "reason": reason}
    return Draft("conversation.deleted", after.sequence, data)


def announce_contact(contact: Contact) -> Draft:
    """Return the event of a changed identity; it has no number (contract 2.10)."""
    return Draft("contact.updated", None, {"contact": contact_view(contact)})


def announce_test(endpoint_id: str, url: str) -> Draft:
    """Return the event that a test of an endpoint sends to it: of no conversation, and on no stream (decisions 6)."""
    return Draft("webhook.test", None, {"endpointId": endpoint_id, "url": url})
