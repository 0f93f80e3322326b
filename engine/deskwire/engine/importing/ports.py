"""The requirements of imports on the store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from deskwire.engine.accounts.ports import AccountReader
from deskwire.engine.accounts.teams import TeamReader
from deskwire.engine.audit.trail import AuditTransaction
from deskwire.engine.channels.ports import ChannelReader
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.contacts import IdentityTransaction
from deskwire.engine.conversations.conversation import TextFormat
from deskwire.engine.conversations.ports import ConversationTransaction
from deskwire.engine.uploads.ports import UploadTransaction
from deskwire.engine.uploads.upload import Attachment


class Imported(NamedTuple):
    """An imported conversation: its id, storage key, record's fingerprint and contact's user id."""

    id: str
    rowid: int
    fingerprint: int
    user_id: str


class ImportedMessageId(NamedTuple):
    """An imported message: its id here, None if it was imported before ids were stored."""

    id: str | None


class MessageRow(NamedTuple):
    """A message to be stored, as its row.

    Args:
        number: its index among the messages that the customer sees; None for a note.
        sequence: of its event, if it has one.
        client_id: the id that the customer's client gave it, if it did.
        format: see `Message`.
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
    sequence: int | None
    client_id: str | None = None
    format: TextFormat | None = None


class ConversationMark(NamedTuple):
    """The row that identifies an imported conversation when its record is imported again."""

    project: int
    external_id: str
    conversation: int
    fingerprint: int


class MessageMark(NamedTuple):
    """The row that identifies an imported message when its record is imported again, with its id here."""

    conversation: int
    external_id: str
    fingerprint: int
    message_id: str


class ImportReader(Protocol):
    """Queries on imported rows, many at a time."""

    def contacts_of(self, project: int, user_ids: Collection[str]) -> dict[str, Contact]:
        """Return the contacts that exist, by the backend's ids."""

    def merged_contacts(self, project: int, user_ids: Collection[str]) -> dict[str, Contact]:
        """Return the targets of merged contacts, by the user ids of the merged ones."""

    def imported_conversations(self, project: int, external_ids: Collection[str]) -> Mapping[str, Imported]:
        """Return the conversations that were imported, by their external ids."""

    def imported_messages(self, messages: Collection[tuple[int, str]]) -> Mapping[tuple[int, str], int]:
        """Return the fingerprints of the messages that were imported.

        The key of a message is the storage key of its conversation and its external id.
        """

    def imported_message(self, conversation: int, external_id: str) -> ImportedMessageId | None:
        """Return an imported message, by its conversation's storage key and its external id."""

    def unimported_messages(self, conversation: int) -> int:
        """Return the number of messages and notes that an imported conversation got here."""


class ImportTransaction(ImportReader, Protocol):
    """Insertion of imported rows."""

    def insert_imported(
        self,
        messages: Sequence[MessageRow],
        marks: Sequence[MessageMark],
        conversations: Sequence[ConversationMark],
    ) -> None:
        """Store messages, and the rows that identify them and new conversations."""


class ImportBatchTransaction(
    ImportTransaction,
    ConversationTransaction,
    IdentityTransaction,
    UploadTransaction,
    TeamReader,
    AuditTransaction,
    AccountReader,
    ChannelReader,
    Protocol,
):
    """Changes of a batch, including its events and deliveries."""
