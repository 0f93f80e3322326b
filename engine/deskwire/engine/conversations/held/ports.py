"""The queries and changes of a store that held messages need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from deskwire.engine.accounts.ports import AccountReader
from deskwire.engine.accounts.teams import TeamReader
from deskwire.engine.conversations.conversation import Message
from deskwire.engine.conversations.drafts.saving import SavingTransaction
from deskwire.engine.conversations.held.held import HeldMessage, Refusal
from deskwire.engine.conversations.ports import ConversationReader


class HeldReader(Protocol):
    """Queries on held messages. Users and projects are given by their storage keys."""

    def held_message(self, project: int, message_id: str) -> HeldMessage | None:
        """Return the held message with this id."""

    def held_messages(self, author: int, project: int, conversation: int | None) -> Sequence[HeldMessage]:
        """Return a user's held messages in a project, or in one of its conversations, the oldest first."""

    def count_held(self, author: int, project: int) -> int:
        """Return how many held messages a user has in a project."""

    def next_held(self) -> int | None:
        """Return when (ms) the next message of any project is to be sent; None if none is held."""

    def due_held(self, until: int, limit: int) -> Sequence[HeldMessage]:
        """Return the messages that are to be sent by `until` (ms), the earliest first; none that was refused."""

    def message_by(self, project: int, author_id: str, message_id: str) -> tuple[str, Message] | None:
        """Return a message or note that this agent wrote in a project, with the id of its conversation, unless it was deleted."""


class HeldTransaction(HeldReader, Protocol):
    """Changes of held messages."""

    def claim_held(self, project: int, message_id: str) -> HeldMessage | None:
        """Return the held message, which no other node changes until this commit."""

    def insert_held(self, held: HeldMessage) -> None:
        """Store a held message; the commit wakes the timer for its time."""

    def refuse_held(self, held: HeldMessage, problem: Refusal) -> None:
        """Note why a message was not sent."""

    def delete_held(self, held: HeldMessage) -> None:
        """Remove a held message; the uploads that it refers to are left to what takes its place."""


class SendingReader(HeldReader, ConversationReader, AccountReader, TeamReader, Protocol):
    """Queries on held messages, and on what they are checked by when they are sent."""


class HoldingTransaction(HeldTransaction, SavingTransaction, ConversationReader, AccountReader, Protocol):
    """Changes of held messages, and of the drafts that they come from and go back to."""
