"""The texts that the index takes in next, and what it makes of them; it may be cut short and repeated anywhere.

New rows are found by their keys, which only grow. A message's may be given again once its conversation is deleted; so with a
deletion is noted which message was the newest that was left, and the index goes back to that one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from deskwire.engine.search.ports import (
    Document,
    Fields,
    IndexTransaction,
    Kind,
    Position,
    SourceReader,
    Text,
)
from deskwire.engine.search.words import words_of

ROWS: Final = 500
"""Messages, changes, conversations and contacts, of each so many, that are taken in by one transaction at most."""

CHARACTERS: Final = 200_000
"""Characters of messages after which a transaction takes no more of them."""

_DIGITS: Final = 3
"""The fewest last digits that a telephone number is found by."""


@dataclass(frozen=True, slots=True)
class Intake:
    """The texts of one transaction: those of new rows and of what was changed; `gone` was deleted.

    Args:
        all: whether the index is complete with it.
    """

    texts: Sequence[Text]
    heads: Sequence[tuple[Kind, Fields]]
    gone: Sequence[Document]
    position: Position
    all: bool


def next_intake(reader: SourceReader, position: Position) -> Intake | None:
    """Return what comes behind a position; None if the index is complete."""
    changes = reader.search_changes(position.change, ROWS)
    left = [change.message for change in changes if change.message is not None]
    texts = _texts(reader, min([position.message, *left]))
    heads: list[tuple[Kind, Fields]] = []
    gone: list[Document] = []
    for kind, row in dict.fromkeys((change.kind, change.row) for change in changes):
        fields = reader.fields_of(kind, row)
        if fields is None:
            gone.append(Document(kind, row))
        else:
            heads.append((kind, fields))
    conversations = reader.fields_after("conversation", position.conversation, ROWS)
    contacts = reader.fields_after("contact", position.contact, ROWS)
    if not (changes or texts or conversations or contacts):
        return None
    heads += [("conversation", each) for each in conversations] + [("contact", each) for each in contacts]
    after = Position(
        *_newest_message(position, left, texts),
        max((each.row for each in conversations), default=position.conversation),
        max((each.row for each in contacts), default=position.contact),
        max((each.number for each in changes), default=position.change),
    )
    return Intake(texts, heads, gone, after, after._replace(message_id=None) == reader.ends())


def take_in(tx: IndexTransaction, intake: Intake) -> None:
    """Put into the index what an intake has."""
    for document in intake.gone:
        tx.remove(document)
    words: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
    for text in intake.texts:
        words[text.conversation, text.project] |= words_of(text.text)
    for (conversation, project), found in words.items():
        tx.add(Document("conversation", conversation), project, found)
    for kind, fields in intake.heads:
        tx.set_head(Document(kind, fields.row), fields.project, head_words(kind, fields.values))
    tx.move_to(intake.position, complete=intake.all)


def head_words(kind: Kind, values: Sequence[str | None]) -> set[str]:
    """Return the words that the fields of a conversation or contact are found by; a telephone number by its last digits, too."""
    words = set().union(*(words_of(value) for value in values if value))
    if kind == "contact" and (phone := values[2]):
        digits = "".join(filter(str.isdecimal, phone))
        words |= {word for at in range(len(digits) - _DIGITS + 1) for word in words_of(digits[at:])}
    return words


def _texts(reader: SourceReader, after: int) -> list[Text]:
    texts: list[Text] = []
    characters = 0
    for text in reader.texts(after):
        texts.append(text)
        characters += len(text.text)
        if len(texts) == ROWS or characters >= CHARACTERS:
            break
    return texts


def _newest_message(position: Position, left: Sequence[int], texts: Sequence[Text]) -> tuple[int, str | None]:
    if texts:
        return texts[-1].row, texts[-1].id
    if left and min(left) < position.message:
        return min(left), None
    return position.message, position.message_id
