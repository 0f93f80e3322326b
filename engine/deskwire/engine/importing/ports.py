"""What an import needs of a store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from deskwire.engine.accounts.ports import AccountReader
from deskwire.engine.accounts.teams import TeamReader
from deskwire.engine.audit.ports import AuditTransaction
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.contacts import IdentityTransaction
from deskwire.engine.conversations.ports import ConversationTransaction
from deskwire.engine.uploads.ports import UploadTransaction
from deskwire.engine.uploads.upload import Attachment


class Imported(NamedTuple):
    """A conversation that was brought in: its id, its storage key, and what its record was."""

    id: str
    rowid: int
    fingerprint: int


class MessageRow(NamedTuple):
    """A message to be stored, as its row.

    Args:
        number: its index among the messages that the customer sees; None for a note.
    """

    id: str
    conversation: int
    number: int | None
    author_type: str
    author_id: str | None
    author_name: str | None
    text: str
    internal: bool
    created_at: int
    attachments: Sequence[Attachment] | None


class ConversationMark(NamedTuple):
    """By what a conversation that was brought in is known again."""

    project: int
    external_id: str
    conversation: int
    fingerprint: int


class MessageMark(NamedTuple):
    """By what a message that was brought in is known again."""

    conversation: int
    external_id: str
    fingerprint: int


class ImportReader(Protocol):
    """Queries on what was brought in, many rows at a time."""

    def contacts_of(self, project: int, user_ids: Collection[str]) -> dict[str, Contact]:
        """Those contacts that are there, by the backend's ids."""

    def imported_conversations(self, project: int, external_ids: Collection[str]) -> Mapping[str, Imported]:
        """Those conversations that are there, by the ids that they had elsewhere."""

    def imported_messages(self, messages: Collection[tuple[int, str]]) -> Mapping[tuple[int, str], int]:
        """The fingerprints of those messages that are there, each by its conversation's key and its own id elsewhere."""


class ImportTransaction(ImportReader, Protocol):
    """Additions to what was brought in."""

    def insert_imported(
        self,
        messages: Sequence[MessageRow],
        marks: Sequence[MessageMark],
        conversations: Sequence[ConversationMark],
    ) -> None:
        """Store messages, and by what they and new conversations are known again."""


class BatchTransaction(
    ImportTransaction,
    ConversationTransaction,
    IdentityTransaction,
    UploadTransaction,
    TeamReader,
    AuditTransaction,
    AccountReader,
    Protocol,
):
    """Changes that a batch makes, its events and deliveries included."""
