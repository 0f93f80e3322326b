"""The queries and changes that an import needs of a store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from deskwire.engine.accounts.ports import AccountReader
from deskwire.engine.accounts.teams import TeamReader
from deskwire.engine.audit.trail import AuditTransaction
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.contacts import IdentityTransaction
from deskwire.engine.conversations.ports import ConversationTransaction
from deskwire.engine.uploads.ports import UploadTransaction
from deskwire.engine.uploads.upload import Attachment


class Imported(NamedTuple):
    """A conversation that was imported: its id, its storage key, its record's fingerprint, and its contact's user id."""

    id: str
    rowid: int
    fingerprint: int
    user_id: str


class ImportedMessage(NamedTuple):
    """A message that was imported: its id here, None if it was imported before ids were kept."""

    id: str | None


class MessageRow(NamedTuple):
    """A message to be stored, as its row.

    Args:
        number: its index among the messages that the customer sees; None for a note.
        sequence: that of its event, if it has one.
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


class ConversationMark(NamedTuple):
    """The mark by which an imported conversation is recognised when its record comes again."""

    project: int
    external_id: str
    conversation: int
    fingerprint: int


class MessageMark(NamedTuple):
    """The mark by which an imported message is recognised when its record comes again, with its id here."""

    conversation: int
    external_id: str
    fingerprint: int
    message_id: str


class ImportReader(Protocol):
    """Queries on what was imported, many rows at a time."""

    def contacts_of(self, project: int, user_ids: Collection[str]) -> dict[str, Contact]:
        """Return those of the contacts that exist, by the backend's ids."""

    def merged_contacts(self, project: int, user_ids: Collection[str]) -> dict[str, Contact]:
        """Return the contacts that those of these ids were merged into, by the ids that they had."""

    def imported_conversations(self, project: int, external_ids: Collection[str]) -> Mapping[str, Imported]:
        """Return those of the conversations that were imported, by their external ids."""

    def imported_messages(self, messages: Collection[tuple[int, str]]) -> Mapping[tuple[int, str], int]:
        """Return the fingerprints of those of the messages that were imported.

        Each message is known by its conversation's storage key and its external id.
        """

    def imported_message(self, conversation: int, external_id: str) -> ImportedMessage | None:
        """Return an imported message, by its conversation's storage key and its external id."""

    def unimported_messages(self, conversation: int) -> int:
        """Return how many messages and notes of an imported conversation were written here."""


class ImportTransaction(ImportReader, Protocol):
    """Additions to what was imported."""

    def insert_imported(
        self,
        messages: Sequence[MessageRow],
        marks: Sequence[MessageMark],
        conversations: Sequence[ConversationMark],
    ) -> None:
        """Store messages, and the marks of these and of new conversations."""


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
