"""Carries over to tickets what happens in their conversations, in the same commit."""

from __future__ import annotations

from typing import assert_never

from deskwire.engine.conversations.facts import (
    Assigned,
    Closed,
    Created,
    Deleted,
    MessagePosted,
    NetworkLogsReplaced,
    Reopened,
    Revealed,
    Updated,
    WorkflowCompleted,
    WorkflowWaits,
)
from deskwire.engine.conversations.plan import Receipt
from deskwire.engine.tickets.change import note_message, unlink_deleted
from deskwire.engine.tickets.ports import TicketTransaction


class TicketsFollow:
    """The `Wrapper` of every conversation's commits that keeps their tickets up to date."""

    def before(self, _tx: object) -> None:
        """Do nothing yet."""

    def after(self, tx: TicketTransaction, receipt: Receipt) -> None:
        """Note what was said, and cut the link to what was deleted."""
        after = receipt.after
        if after.ticket_id is None:
            return
        for fact in receipt.facts:
            match fact:
                case MessagePosted(message):
                    note_message(tx, after.ticket_id, message.author, message.created_at)
                case Deleted():
                    unlink_deleted(tx, after, after.updated_at)
                case Created() | Revealed() | Closed() | Reopened() | Assigned() | Updated():
                    pass
                case NetworkLogsReplaced() | WorkflowWaits() | WorkflowCompleted():
                    pass
                case _:
                    assert_never(fact)
