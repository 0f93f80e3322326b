"""The decisions of a split: a new conversation that shows some messages of another one, and no message moves.

The messages keep their conversation, id, index and sequence, and the other conversation shows them as before. They have the id
of the new conversation, which shows them by time among its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, assert_never

from msgspec import Struct

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.commands import EndSplit, SplitOff, SplitOrigin
from deskwire.engine.conversations.conversation import Conversation, ConversationMerged, Message
from deskwire.engine.conversations.facts import AgentFieldsUpdated, Assigned, Created, Fact, Updated
from deskwire.engine.core.errors import Conflict, Invalid, Problem
from deskwire.engine.core.values import replace

SPLITS_MAX: Final = 20
"""Conversations that are split off from one conversation."""

MESSAGES_MAX: Final = 100
"""Messages that one split takes."""


class OwnedMessage(Struct, frozen=True):
    """A message, and the storage key of its conversation."""

    message: Message
    conversation: int


class MessageSplit(Conflict):
    """The refusal of messages that another conversation shows already."""

    code = "message_split"

    def __init__(self, messages: Sequence[str], into: str) -> None:
        named = ", ".join(messages)
        super().__init__(
            f"A conversation was started with {named} before; merge that one into this one first.",
            shown={"splitInto": into},
        )


def require_splittable(state: Conversation) -> None:
    """Raise Conflict if the state does not allow that a conversation is split off."""
    if state.merged_into is not None:
        raise ConversationMerged(state.merged_into)
    if not state.visible:
        message = "A conversation that is hidden from the customer can't be split; make it visible first."
        raise Conflict(message, code="conversation_hidden")
    if len(state.split_into) >= SPLITS_MAX:
        message = f"At most {SPLITS_MAX} conversations can be started from messages of one."
        raise Conflict(message, code="split_limit_reached")


def chosen_messages(
    state: Conversation, asked: Sequence[str], found: Iterable[OwnedMessage]
) -> tuple[Message, ...]:
    """Return the messages to split off, in the order of `found`.

    Messages that a merged conversation shows can be taken again, because that merge has undone their split.

    Raises Invalid for messages that are not the conversation's own and if the customer sees none of them, and MessageSplit.
    """
    own = tuple(each.message for each in found if each.conversation == state.rowid)
    known = {each.id for each in own}
    problems = [
        Problem(f"/messageIds/{place}", "unknown", "The conversation has no such message of its own.")
        for place, each in enumerate(asked)
        if each not in known
    ]
    if problems:
        raise Invalid(*problems)
    if all(each.internal or each.deleted for each in own):
        message = "Choose at least one message that the customer sees."
        raise Invalid(Problem("/messageIds", "no_public_message", message))
    taken = [each for each in own if each.shown_in is not None and each.shown_in not in state.merged]
    if taken:
        into = taken[0].shown_in
        assert into is not None, "it is taken"
        raise MessageSplit([each.id for each in taken if each.shown_in == into], into)
    return own


def split_off(created: Conversation, origin: SplitOrigin, assignee: Assignee | None) -> tuple[Fact, ...]:
    """Return the facts of the new conversation. Pure."""
    state = replace(
        created,
        split_from=origin.conversation,
        team_id=origin.team_id,
        waiting_since=origin.waiting_since,
    )
    return (
        Created(state, origin.messages),
        *(() if assignee is None else (Assigned(assignee),)),
        *((AgentFieldsUpdated({"tags": origin.tags}),) if origin.tags else ()),
    )


def decide_split(state: Conversation, command: SplitOff | EndSplit) -> tuple[Fact, ...]:
    """Return the facts of the conversation that goes on after a split, or after the deletion of its other half. Pure."""
    changes: dict[str, Any] = {}
    match command:
        case SplitOff(into):
            changes["split_into"] = (*state.split_into, into)
            if not state.human:  # otherwise retention would soon delete the messages as those of a bot
                changes["human"] = True
        case EndSplit(other):
            if state.split_from == other:
                changes["split_from"] = None
            if other in state.split_into:
                changes["split_into"] = tuple(each for each in state.split_into if each != other)
        case _:
            assert_never(command)
    waits = {name: getattr(command, name) for name in ("waiting_since", "no_answer_needed_since")}
    waits = {name: since for name, since in waits.items() if since != getattr(state, name)}
    return (
        *((AgentFieldsUpdated(waits),) if waits else ()),
        *((Updated(changes),) if changes else ()),
    )
