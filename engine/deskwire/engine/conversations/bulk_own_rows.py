"""The rows of its author alone that a bulk job changes: the follow of a conversation, and the read position in it.

The commit of an item compares the row before its command, and stores in the item's trace the row as it was before and as the
job left it. So undo restores exactly that row, also the start of a follow, unless the author has changed it since.
"""

from __future__ import annotations

from typing import Final

from deskwire.engine.conversations.bulk_jobs import ActionType, BulkItem, BulkJob, BulkStepTransaction, Trace
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.listing import NOTHING_SEEN, SeenMessages
from deskwire.engine.core.errors import Conflict

OWN_ACTIONS: Final[frozenset[ActionType]] = frozenset({"unread", "follow", "unfollow"})
"""The actions that change a row of the author."""

OwnRow = tuple[int, ...] | None
"""The start (ms) of a follow; or the index and the number of the contact's messages that were seen, and the time (ms) of that."""


def own_row(tx: BulkStepTransaction, job: BulkJob, conversation: int) -> OwnRow:
    """Return the author's row that the job's action changes; None if there is none."""
    if job.action.type == "unread":
        found = tx.claim_read_position(job.author, conversation)
        return None if found is None else (found.seen.index, found.seen.contact_messages, found.at)
    since = tx.followed_since(job.author, conversation)
    return None if since is None else (since,)


def require_own_change(job: BulkJob, item: BulkItem, row: OwnRow) -> None:
    """Raise Conflict if the author's row needs no change, or if undo finds another one than the job left.

    Whether a conversation is unread depends on its messages; see `change_own_row`.
    """
    if job.status == "undoing":
        if item.trace is None or row != item.trace.own_left:
            raise Conflict("You have changed it since.", code="changed_since")
    elif (job.action.type == "follow" and row) or (job.action.type == "unfollow" and not row):
        raise unchanged()


def change_own_row(
    tx: BulkStepTransaction, job: BulkJob, item: BulkItem, state: Conversation, before: OwnRow, at: int
) -> Trace:
    """Change the author's read position, unless the command has changed the follow; return the trace.

    Args:
        before: the row before the command.
        at: the time (ms) of the change.

    Raises Conflict if the conversation is unread, or has no message that can be unread.
    """
    if job.action.type == "unread":
        if job.status == "undoing":
            assert item.trace is not None, "a changed item has a trace"
            _restore_position(tx, job.author, state.rowid, item.trace.own_before)
        else:
            _mark_unread(tx, job.author, state, at)
    return Trace(own_left=own_row(tx, job, state.rowid), own_before=before)


def _mark_unread(tx: BulkStepTransaction, user: int, state: Conversation, at: int) -> None:
    """Move the read position before the contact's newest message."""
    seen = tx.seen(user, [state.rowid]).get(state.rowid, NOTHING_SEEN)
    newest = tx.newest_of_contact(state.rowid)
    if newest is None:
        raise Conflict("The contact has written no message.", code="no_contact_message")
    if seen.contact_messages < state.contact_messages:
        raise unchanged()
    unseen = tx.unseen_after(state.rowid, newest - 1)
    tx.put_seen(user, state.rowid, SeenMessages(newest - 1, state.contact_messages - unseen), at)


def _restore_position(tx: BulkStepTransaction, user: int, conversation: int, row: OwnRow) -> None:
    if row is None:
        tx.delete_read_position(user, conversation)
    else:
        index, contact_messages, at = row
        tx.put_seen(user, conversation, SeenMessages(index, contact_messages), at)


def unchanged() -> Conflict:
    """Return the refusal of an item that needs no change."""
    return Conflict("There is nothing to change.", code="unchanged")
