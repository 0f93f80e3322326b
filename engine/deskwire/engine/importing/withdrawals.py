"""Withdrawals: imported messages and conversations that the source has deleted or redacted since.

The conversation's actor carries them out like ordinary calls, so that events, the search index and every copy follow.
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
"""Characters that sources put in place of redacted words; their number may differ from that of the words."""

_DIGITS_MAX: Final = 6
"""Digits of the number of a piece."""


class WithdrawalReader(ImportReader, ConversationReader, Protocol):
    """Queries on the current state of imported messages."""


class Withdrawn(Struct, frozen=True):
    """The place of a withdrawn record in this service.

    Args:
        message: None for the whole conversation.
    """

    conversation_id: str
    conversation: int
    message: Message | None = None


def find_withdrawn(
    reader: WithdrawalReader, project: int, conversation: str, message: str | None
) -> Withdrawn | Problem | None:
    """Return the place of a record, None if the record does not exist, or the reason why it can't be found."""
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
    """Return the ids of the further pieces of a split message, or of the pieces after this one."""
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
    """Return the command that redacts the same words as the source, or the whole text if they can't be identified."""
    ranges = redacted_ranges(message.text, record.text)
    return RedactMessage(message.id, True, text=not ranges, ranges=tuple(ranges))


def deletion_of(message: Message) -> DeleteMessage:
    """Return the command that deletes a message or note."""
    return DeleteMessage(message.id, True)


def redacted_ranges(before: str, after: str) -> Sequence[tuple[int, int]]:
    """Return the ranges of a text that its redacted form lacks; none if `after` is not a redacted form of the text.

    If the text between two redactions occurs more than once, it is redacted too, because the original place is ambiguous.
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
    """The query of a deletion within its commit."""

    def unimported_messages(self, conversation: int) -> int:
        """See `ImportReader`."""


class UnlessWrittenHere(Struct, frozen=True):
    """A `CommitHook` that refuses to delete a conversation in which messages were written here."""

    conversation: int

    def before(self, tx: WrittenHereTransaction) -> None:
        """Raise Conflict if the conversation has messages that were written here."""
        if tx.unimported_messages(self.conversation):
            message = "The conversation has messages that were not imported; delete it with its own API call."
            raise Conflict(message)

    def after(self, tx: object, receipt: object) -> None:
        """Do nothing more."""


def about(record: DeletionRecord | MessageRecord) -> str:
    """Return the id by which the result names a record."""
    if isinstance(record, MessageRecord):
        return record.external_id
    return record.conversation if record.message is None else record.message
