"""The record of a merge of two conversations, from which the merge is undone."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from deskwire.engine.conversations.conversation import Status

UNDO_DAYS: Final = 30
"""Days in which a merge can be undone."""
UNDO_MS: Final = UNDO_DAYS * 86_400_000


class BeforeMerge(Struct, frozen=True):
    """The values before a merge, and the additions of the target, from which the merge is undone.

    Args:
        closed: whether the merge closed the source.
        status, snoozed_until, waiting_since: the values of the source before the merge.
        target_waiting_since: since when the contact waited in the target before.
        tags: the tags that the target took over.
        followers: storage keys of the followers that the target took over.
        ticket_id: the ticket that the target took over.
        reopened: whether the merge reopened the target.
    """

    closed: bool
    status: Status
    snoozed_until: int | None = None
    waiting_since: int | None = None
    target_waiting_since: int | None = None
    tags: tuple[str, ...] = ()
    followers: tuple[int, ...] = ()
    ticket_id: str | None = None
    reopened: bool = False


class MergeRecord(Struct, frozen=True):
    """A merge at a time (ms); `conversation` and `target` are storage keys."""

    conversation: int
    target: int
    at: int
    before: BeforeMerge
