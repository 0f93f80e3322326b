"""The events that agents alone are told of a conversation: what no public event shows, and who changed what.

- A note, and a message of a conversation that the customer can't see, is a `note.created`.
- What the agent's view shows changes by a `conversation.changed` if no public event tells of it, and beside the public
  events if a user, a server key or the service itself did it: those say nothing of who.
- A message that the customer can see causes none, with what follows from it: since when the contact waits, that a snooze
  ends, that the conversation is open again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.activity import Entry
from deskwire.engine.conversations.conversation import Conversation, Message
from deskwire.engine.conversations.decide import Step
from deskwire.engine.conversations.facts import (
    Deleted,
    Fact,
    Filed,
    MessagePosted,
    MessageRewritten,
    Moved,
    NetworkLogsReplaced,
    Revealed,
    WorkflowWaits,
)
from deskwire.engine.core.actor import Actor

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
    "contact_seen_index": "contactSeenIndex",
    "contact_seen_at": "contactSeenAt",
    "network_logs_at": "networkLogsAt",
}
"""The fields that such an event may tell of, with their names on the wire."""

_UNSEEN: Final = (Filed, NetworkLogsReplaced, Revealed, MessageRewritten)
"""The facts of which public events do not tell, or not all that agents see."""


def notes_of(facts: Sequence[Fact], steps: Sequence[Step]) -> Iterator[Message]:
    """Yield the messages that agents alone can see. The facts are those of the steps, with the names of authors."""
    for fact, (_, _, after) in zip(facts, steps, strict=True):
        if isinstance(fact, MessagePosted) and (fact.message.internal or not after.visible):
            yield fact.message


def changes_to_tell(steps: Sequence[Step], entries: Sequence[Entry | None]) -> list[str]:
    """Return the names of what changed for agents, as the agent's view has them; none if public events tell all of it."""
    before, after = steps[0][0], steps[-1][2]
    if before is None:
        return [] if after.visible else ["created"]
    if isinstance(steps[-1][1], Deleted):
        return [] if after.visible else ["deleted"]
    names = [public for name, public in _NAMES.items() if getattr(before, name) != getattr(after, name)]
    if any(isinstance(fact, Moved) for _, fact, _ in steps):
        names.append("contact")
    if _running(before) != _running(after):
        names.append("workflow")
    if any(isinstance(fact, MessageRewritten) for _, fact, _ in steps):
        names.append("messages")
    return names if _is_untold(before, after, steps, entries) else []


def _is_untold(
    before: Conversation, after: Conversation, steps: Sequence[Step], entries: Sequence[Entry | None]
) -> bool:
    """Return whether public events leave something out."""
    if not before.visible and any(not isinstance(fact, MessagePosted) for _, fact, _ in steps):
        return True
    if any(entry is not None and entry.by.type != "bot" for entry in entries):
        return True
    if before.contact_seen_at != after.contact_seen_at:
        return True
    rests = any(isinstance(fact, WorkflowWaits) for _, fact, _ in steps)
    return (rests and _running(before) != _running(after)) or any(
        isinstance(fact, _UNSEEN) for _, fact, _ in steps
    )


def _running(state: Conversation) -> tuple[str, bool] | None:
    """Return what agents see of the workflow that runs."""
    return None if state.run is None else (state.run.workflow_id, state.run.step is not None)


def rewritten_ids(facts: Sequence[Fact]) -> Mapping[str, list[str]]:
    """Return the ids of messages that were redacted and deleted, by the names of the parameters that tell of them."""
    ids: dict[str, list[str]] = {}
    for fact in facts:
        if isinstance(fact, MessageRewritten):
            ids.setdefault("deleted" if fact.message.deleted else "redacted", []).append(fact.message.id)
    return ids


def actor_of_change(
    by: Actor | None, steps: Sequence[Step], entries: Sequence[Entry | None], contact: Contact
) -> Actor:
    """Return who changed it all: whoever gave the command, else the workflow, the contact, or the service itself."""
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


def removed(state: Conversation) -> dict[str, Any]:
    """Return what is told of a deleted conversation that no customer saw: nothing of its contact."""
    return {"id": state.id}


def is_plain(facts: Sequence[Fact], state: Conversation | None) -> bool:
    """Tell whether the facts are one message that the customer sees: there is nothing besides it to tell or to note."""
    if len(facts) != 1 or state is None:
        return False
    fact = facts[0]
    return isinstance(fact, MessagePosted) and not fact.message.internal and state.visible
