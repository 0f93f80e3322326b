"""Updates of a ticket by its linked conversation, in the same commit."""

from __future__ import annotations

from typing import assert_never

from deskwire.engine.conversations.commit_plan import Receipt
from deskwire.engine.conversations.facts import (
    AgentFieldsUpdated,
    Assigned,
    Closed,
    Created,
    Deleted,
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
from deskwire.engine.tickets.change import follow_contact, note_message, unlink_deleted
from deskwire.engine.tickets.ports import TicketTransaction


class TicketFollower:
    """Updates the linked ticket in every commit of a conversation (a `CommitFollower`)."""

    def after(self, tx: TicketTransaction, receipt: Receipt) -> None:
        """Apply messages, a new contact and a deletion of the conversation to the ticket."""
        after = receipt.after
        if after.ticket_id is None:
            return
        for fact in receipt.facts:
            match fact:
                case MessagePosted(message):
                    note_message(tx, after.ticket_id, message.author, message.created_at)
                case Deleted():
                    unlink_deleted(tx, after, after.updated_at)
                case Moved():
                    follow_contact(tx, after, receipt.contact, after.updated_at)
                case Created() | Revealed() | Closed() | Reopened() | Assigned() | Updated():
                    pass
                case (
                    AgentFieldsUpdated()
                    | NetworkLogsReplaced()
                    | WorkflowWaits()
                    | WorkflowCompleted()
                    | MessageRewritten()
                    | MessagesReceived()
                    | FollowChanged()
                ):
                    pass
                case _:
                    assert_never(fact)
