"""Text that its source has withdrawn: imported messages and conversations that were deleted or redacted there since.

They are carried out by the conversation's actor, as the ordinary calls are, so that events, the search and every copy follow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from deskwire.engine.conversations.commands import DeleteMessage, RedactMessage
from deskwire.engine.conversations.conversation import Message
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.core.errors import Conflict, Problem
from deskwire.engine.importing.ports import ImportReader
from deskwire.engine.importing.records import DeletionRecord, MessageRecord

_REDACTED: Final = re.compile("[\u2587\u2588]+")
"""Characters by which a source shows that it has redacted words; their number need not be that of the words."""

_DIGITS_MAX: Final = 6
"""Digits of the number of a piece."""


class WithdrawalReader(ImportReader, ConversationReader, Protocol):
    """Queries on imported messages as they are now."""


class Withdrawn(Struct, frozen=True):
    """The place of a withdrawn record in this service.

    Args:
        message: None if the whole conversation is meant.
    """

    conversation_id: str
    conversation: int
    message: Message | None = None


def find_withdrawn(
    reader: WithdrawalReader, project: int, conversation: str, message: str | None
) -> Withdrawn | Problem | None:
    """Return the place of a record, None if there is no such record (any more), or why it can't be found."""
    known = reader.imported_conversations(project, {conversation}).get(conversation)
    if known is None:
        return None
    if message is None:
        return Withdrawn(known.id, known.rowid)
    mark = reader.imported_message(known.rowid, message)
    if mark is None:
        return None
    if mark.id is None:
        reason = "The message was imported by an earlier version, which did not note its place: delete it by its own call."
        return Problem("/message", "unknown_place", reason)
    found = reader.message(known.rowid, mark.id, internal=True)
    return None if found is None else Withdrawn(known.id, known.rowid, found)


def find_pieces(reader: WithdrawalReader, project: int, conversation: str, message: str) -> Sequence[str]:
    """Return the ids of the further pieces of a message that was cut into several, and of those after it if it is one."""
    known = reader.imported_conversations(project, {conversation}).get(conversation)
    if known is None:
        return []
    stem, _, digits = message.rpartition("-")
    is_piece = stem and digits.isascii() and digits.isdigit() and len(digits) < _DIGITS_MAX
    found = list[str]()
    for name, number in ((message, 2), *([(stem, int(digits) + 1)] if is_piece else [])):
        while reader.imported_message(known.rowid, piece := f"{name}-{number}") is not None:
            found.append(piece)
            number += 1
    return found


def redaction_of(message: Message, record: MessageRecord) -> RedactMessage:
    """Return the command that redacts of a message what its source has; all of the text if that can't be told."""
    ranges = redacted_ranges(message.text, record.text)
    return RedactMessage(message.id, True, text=not ranges, ranges=tuple(ranges))


def deletion_of(message: Message) -> DeleteMessage:
    """Return the command that deletes a message or note."""
    return DeleteMessage(message.id, True)


def redacted_ranges(before: str, after: str) -> Sequence[tuple[int, int]]:
    """Return the ranges of a text that its redacted form lacks; none if that is not a form of it.

    A piece between two redactions that stands in several places goes as well: which of them was redacted can't be told.
    """
    first, *middle = _REDACTED.split(after)
    last = middle.pop() if middle else ""
    begin, end = len(first), len(before) - len(last)
    if first == after or begin > end or not (before.startswith(first) and before.endswith(last)):
        return []
    ranges, at = list[tuple[int, int]](), begin
    for piece in middle:
        found = before.find(piece, at, end)
        if found < 0:
            return []
        if piece and before.rfind(piece, at, end) == found:
            ranges.append((begin, found))
            begin = at = found + len(piece)
    return [each for each in (*ranges, (begin, end)) if each[0] < each[1]]


class WrittenHereTransaction(Protocol):
    """The query that a deletion needs within its commit."""

    def unimported_messages(self, conversation: int) -> int:
        """See `ImportReader`."""


class UnlessWrittenHere(Struct, frozen=True):
    """A `CommitHook` that refuses to delete a conversation in which messages were written here."""

    conversation: int

    def before(self, tx: WrittenHereTransaction) -> None:
        """Raise Conflict if the conversation has gone on here."""
        if tx.unimported_messages(self.conversation):
            message = "The conversation has gone on here, with messages that are not imported: delete it by its own call."
            raise Conflict(message)

    def after(self, tx: object, receipt: object) -> None:
        """Do nothing more."""


def about(record: DeletionRecord | MessageRecord) -> str:
    """Return the id that the result names a record by."""
    if isinstance(record, MessageRecord):
        return record.external_id
    return record.conversation if record.message is None else record.message
