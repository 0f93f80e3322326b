"""The part of a deletion's commit that changes other conversations: merged ones, and those of a split.

Afterwards no conversation names the deleted one, and no contact waits because of a message that is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from deskwire.engine.conversations.commands import Command, Delete, EndSplit, Release
from deskwire.engine.conversations.conversation import Conversation, Reason
from deskwire.engine.conversations.ports import ConversationTransaction
from deskwire.engine.core.values import replace

CarryOut = Callable[[Conversation, Command], object]
"""Carries out a command of another conversation in the same commit."""


def end_relations(
    tx: ConversationTransaction, gone: Conversation, reason: Reason, carry_out: CarryOut
) -> None:
    """Delete the conversations that are merged into a deleted one, and remove it from all others."""
    deleted = {gone.id, *gone.merged}
    for source in _stored(tx, gone.project, gone.merged):
        # Without its relations to the others, or these would be changed before they are deleted.
        carry_out(_without(source, deleted), Delete(reason))
    gone = _without(gone, deleted, merged_into=gone.merged_into)
    if gone.merged_into is not None:
        for target in _stored(tx, gone.project, (gone.merged_into,)):
            carry_out(target, _release(tx, target, gone))
    for state in _stored(tx, gone.project, gone.split_into):
        _end_split(tx, state, gone, carry_out)
    if gone.split_from is not None:
        tx.show_only_in_own(gone.id)
        for state in _stored(tx, gone.project, (gone.split_from,)):
            carry_out(state, EndSplit(gone.id, state.waiting_since, state.no_answer_needed_since))


def wait_left(
    tx: ConversationTransaction, state: Conversation, since: int | None, gone: Conversation | None = None
) -> int | None:
    """Return since when (ms) the contact of a conversation waits, if some messages are no longer in its thread.

    Args:
        since: the start of the wait with those messages; None if the contact does not wait.
        gone: a conversation that no longer counts.
    """
    if since is None:
        return None
    merged = tx.conversations_by_id(state.project, state.merged) if state.merged else ()
    members = [each for each in (state, *merged) if gone is None or each.rowid != gone.rowid]
    keys, ids = [each.rowid for each in members], [each.id for each in members]
    return tx.first_of_contact(keys, ids, since, without=0 if gone is None else gone.rowid)


def _stored(tx: ConversationTransaction, project: int, ids: Collection[str]) -> Iterator[Conversation]:
    """Yield the conversations with these ids, each read and locked when it is needed."""
    for each in ids:
        row = tx.conversation(project, each)
        if row is not None:
            yield row[0]


def _without(state: Conversation, deleted: Collection[str], merged_into: str | None = None) -> Conversation:
    """Return the state of a conversation without its relations to others that are deleted with it."""
    return replace(
        state,
        merged_into=merged_into,
        split_from=None if state.split_from in deleted else state.split_from,
        split_into=tuple(each for each in state.split_into if each not in deleted),
    )


def _release(tx: ConversationTransaction, target: Conversation, gone: Conversation) -> Release:
    """Return the command for the conversation that a deleted one is merged into."""
    since = target.no_answer_needed_since if target.waiting_since is None else target.waiting_since
    left = wait_left(tx, target, since, gone)
    return Release(gone.id) if left == since else Release(gone.id, waiting=since, waiting_since=left)


def _end_split(
    tx: ConversationTransaction, state: Conversation, gone: Conversation, carry_out: CarryOut
) -> None:
    """Remove a deleted conversation from one that was split off from it, and its messages from the thread that shows that one."""
    into = () if state.merged_into is None else (state.merged_into,)
    for each in (state, *_stored(tx, gone.project, into)):
        waits = each.waiting_since, each.no_answer_needed_since
        left = wait_left(tx, each, waits[0], gone), wait_left(tx, each, waits[1], gone)
        if each is state or left != waits:
            carry_out(each, EndSplit(gone.id, *left))
