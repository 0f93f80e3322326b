"""The decisions of a merge of two conversations and of its undo: a pointer, and no message moves.

The source keeps its messages, its sequence and its id. It is closed and refuses changes; a message of the customer or of the
backend to it is stored in the target, which shows the messages of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, assert_never

from deskwire.engine.conversations.commands import (
    Absorb,
    ChangeReadPosition,
    Command,
    Delete,
    DeleteMessage,
    EndSplit,
    Expire,
    LinkTicket,
    MarkRead,
    MarkReceived,
    MergeInto,
    Move,
    RedactMessage,
    Release,
    Unmerge,
    WakeSnoozed,
    WakeWorkflow,
    WorkflowCommand,
)
from deskwire.engine.conversations.conversation import Conversation, ConversationMerged
from deskwire.engine.conversations.facts import (
    AgentFieldsUpdated,
    Closed,
    Fact,
    FollowChanged,
    Reopened,
    Updated,
)
from deskwire.engine.conversations.tags import TAGS_MAX, distinct_tags
from deskwire.engine.core.errors import Conflict

SOURCES_MAX: Final = 20
"""Conversations that one conversation shows the messages of."""

_WHILE_MERGED: Final = (
    MarkRead,
    MarkReceived,
    ChangeReadPosition,
    RedactMessage,
    DeleteMessage,
    Move,
    Expire,
    Delete,
    WakeSnoozed,
    WakeWorkflow,
    LinkTicket,
    MergeInto,
    Unmerge,
    EndSplit,
)
"""The commands that a merged conversation takes: those about its own messages, and those of the service."""


class NotMergedHere(Conflict):
    """A message came through a conversation that is no longer merged into this one; it is sent there again."""

    code = "conversation_changed"

    def __init__(self) -> None:
        super().__init__("The conversations were separated in the meantime; try again.")


def require_not_merged(state: Conversation, command: Command | WorkflowCommand) -> None:
    """Raise ConversationMerged for a change that a merged conversation does not take."""
    links = isinstance(command, LinkTicket) and command.linked
    if state.merged_into is not None and (links or not isinstance(command, _WHILE_MERGED)):
        raise ConversationMerged(state.merged_into)


def require_mergeable(source: Conversation, target: Conversation) -> None:
    """Raise Conflict if the states do not allow a merge. Both are of one contact."""
    if target.merged_into is not None:
        raise ConversationMerged(target.merged_into)
    if source.merged_into is not None:
        raise ConversationMerged(source.merged_into)
    if source.merged:
        message = "Other conversations are merged into this one. Merge in the other direction, or undo those merges."
        raise Conflict(message, code="conversation_has_merged")
    if len(target.merged) >= SOURCES_MAX:
        message = f"At most {SOURCES_MAX} conversations can be merged into one."
        raise Conflict(message, code="merge_limit_reached")
    if not (source.visible and target.visible):
        message = "A conversation that is hidden from the customer can't be merged; make it visible first."
        raise Conflict(message, code="conversation_hidden")
    if source.run is not None:
        message = "A workflow runs in the conversation to merge. Reply or close it, which ends the workflow, then merge it."
        raise Conflict(message, code="workflow_running")
    if None not in (source.ticket_id, target.ticket_id):
        message = "Each of the two conversations is linked to a ticket. Unlink one of them first."
        raise Conflict(message, code="conversation_linked")


def decide_merge(
    state: Conversation, command: MergeInto | Absorb | Unmerge | Release, at: int
) -> tuple[Fact, ...]:
    """Return the facts of one half of a merge, or of its undo. Pure. Both halves are committed together."""
    match command:
        case MergeInto():
            return tuple(_merge(state, command, at))
        case Absorb():
            return tuple(_absorb(state, command, at))
        case Unmerge():
            return tuple(_unmerge(state, command, at))
        case Release():
            return tuple(_release(state, command, at))
        case _:
            assert_never(command)


def _merge(state: Conversation, command: MergeInto, at: int) -> Iterator[Fact]:
    if state.status != "CLOSED":
        yield Closed("agent", at)
    changes: dict[str, Any] = {"merged_into": command.target, "merged_at": at}
    if command.ticket:
        changes["ticket_id"] = None
    yield Updated(changes)


def _absorb(state: Conversation, command: Absorb, at: int) -> Iterator[Fact]:
    source = command.source
    waiting = earlier(state.waiting_since, source.waiting_since)
    if state.status == "CLOSED" and source.status != "CLOSED":
        yield Reopened(waiting)
    elif waiting != state.waiting_since:
        yield AgentFieldsUpdated({"waiting_since": waiting, "no_answer_needed_since": None})
    tags = distinct_tags((*state.tags, *source.tags))[:TAGS_MAX]
    if tags != state.tags:
        yield AgentFieldsUpdated({"tags": tags})
    changes: dict[str, Any] = {"merged": (*state.merged, source.id), "merged_at": at}
    if (
        source.human and not state.human
    ):  # otherwise retention would delete the source as a part of a bot-only one
        changes["human"] = True
    if command.ticket:
        changes["ticket_id"] = source.ticket_id
    yield Updated(changes)
    for user in command.followers:
        yield FollowChanged(user, True)


def _unmerge(state: Conversation, command: Unmerge, at: int) -> Iterator[Fact]:
    changes: dict[str, Any] = {"merged_into": None, "merged_at": at}
    if command.ticket_id is not None:
        changes["ticket_id"] = command.ticket_id
    yield Updated(changes)
    if not command.closed:
        return
    yield Reopened(command.waiting_since)
    if command.status == "PENDING":
        yield Updated({"status": "PENDING"})
    if command.snoozed_until is not None and command.snoozed_until > at:
        yield AgentFieldsUpdated({"snoozed_until": command.snoozed_until})


def _release(state: Conversation, command: Release, at: int) -> Iterator[Fact]:
    if command.tags:
        kept = tuple(tag for tag in state.tags if tag not in command.tags)
        if kept != state.tags:
            yield AgentFieldsUpdated({"tags": kept})
    taken = command.waiting
    if taken is not None and state.waiting_since == taken != command.waiting_since:
        yield AgentFieldsUpdated({"waiting_since": command.waiting_since})
    if taken is not None and state.no_answer_needed_since == taken:
        yield AgentFieldsUpdated({"no_answer_needed_since": None})
    left = tuple(each for each in state.merged if each != command.source)
    changes: dict[str, Any] = {"merged": left, "merged_at": at}
    if command.ticket_id is not None and state.ticket_id == command.ticket_id:
        changes["ticket_id"] = None
    yield Updated(changes)
    if command.close and state.status != "CLOSED":
        yield Closed("agent", at)
    for user in command.followers:
        yield FollowChanged(user, False)


def earlier(one: int | None, other: int | None) -> int | None:
    """Return the earlier of two times, either of which may be missing."""
    return min((each for each in (one, other) if each is not None), default=None)
