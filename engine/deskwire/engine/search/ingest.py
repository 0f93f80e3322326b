"""The next batch of texts to index. Indexing is idempotent, so it can be interrupted and repeated at any point.

New rows are found by their keys, which only grow. The key of a deleted message may be reused; therefore a deletion
records the newest message that is left, and the index returns to that position. After a redaction all messages of the
conversation are indexed again, because the removed words can't be known otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import Struct

from deskwire.engine.search.ports import (
    EVERYTHING,
    ConversationTitle,
    IndexPosition,
    IndexTransaction,
    MessageText,
    SourceReader,
)
from deskwire.engine.search.tokens import words_of

BATCH_SIZE: Final = 500
"""Maximum messages, changes and conversations, of each, in one transaction."""

IDLE_BATCH_SIZE: Final = 2_000
"""Batch size while nothing else writes. Larger batches write words that conversations share a third less often."""

CHARACTERS_PER_ROW_MAX: Final = 400
"""Characters in one transaction for each of its rows, on average."""


class IngestBatch(Struct, frozen=True):
    """The texts of one transaction: messages, and new or changed titles.

    Args:
        gone: deleted conversations.
        reworded: all words of conversations that lost some, by conversation and project.
        position: the position of the index after the batch.
        all: whether the index is complete after the batch.
    """

    texts: Sequence[MessageText]
    titles: Sequence[ConversationTitle]
    gone: Sequence[int]
    reworded: Mapping[tuple[int, int], AbstractSet[str]]
    position: IndexPosition
    all: bool


def next_batch_to_ingest(
    reader: SourceReader,
    position: IndexPosition,
    *,
    complete: bool,
    bound: IndexPosition = EVERYTHING,
    rows: int = BATCH_SIZE,
) -> IngestBatch | None:
    """Return the batch after a position; None if the index is complete.

    Args:
        complete: whether the index has been complete before.
        bound: the last rows to index; rows after them may still get predecessors.
        rows: maximum messages, changes and conversations, of each.
    """
    changes = [each for each in reader.search_changes(position.change, rows) if each.number <= bound.change]
    left = [change.message for change in changes if change.message is not None]
    texts, cut = _texts(reader, min([position.message, *left]), bound.message, rows)
    begun = [title for title in reader.titles(position.conversation, rows) if title.row <= bound.conversation]
    if complete and not (changes or texts or begun):
        return None
    known = {change.conversation: reader.title(change.conversation) for change in changes}
    after = IndexPosition(
        *_newest_message(position, left, texts),
        begun[-1].row if begun else position.conversation,
        changes[-1].number if changes else position.change,
    )
    return IngestBatch(
        texts,
        [*(title for title in known.values() if title is not None), *begun],
        [conversation for conversation, title in known.items() if title is None],
        _reworded(reader, [known[change.conversation] for change in changes if change.reworded]),
        after,
        not cut and len(changes) < rows and len(begun) < rows,
    )


def take_in(tx: IndexTransaction, intake: IngestBatch) -> None:
    """Write a batch into the index."""
    for conversation in intake.gone:
        tx.remove(conversation)
    for (conversation, project), left in intake.reworded.items():
        tx.replace(conversation, project, left)
    words: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
    for text in intake.texts:
        words[text.conversation, text.project] |= words_of(text.text)
    for (conversation, project), found in words.items():
        tx.add(conversation, project, found)
    for title in intake.titles:
        tx.set_title(title.row, title.project, words_of(title.title or ""))
    tx.move_to(intake.position, complete=intake.all)


def _texts(reader: SourceReader, after: int, upto: int, rows: int) -> tuple[list[MessageText], bool]:
    """Return the texts after a row that fit into one transaction, and whether there may be more."""
    texts: list[MessageText] = []
    characters = 0
    for text in reader.texts(after, rows):
        if text.row > upto:
            break
        texts.append(text)
        characters += len(text.text)
        if len(texts) == rows or characters >= rows * CHARACTERS_PER_ROW_MAX:
            return texts, True
    return texts, False


def _reworded(
    reader: SourceReader, conversations: Sequence[ConversationTitle | None]
) -> Mapping[tuple[int, int], AbstractSet[str]]:
    """Return all words of the messages of these conversations, except for deleted ones."""
    words: dict[tuple[int, int], AbstractSet[str]] = {}
    for each in conversations:
        if each is not None and (each.row, each.project) not in words:
            texts = reader.texts_of(each.row)
            words[each.row, each.project] = {word for text in texts for word in words_of(text.text)}
    return words


def _newest_message(
    position: IndexPosition, left: Sequence[int], texts: Sequence[MessageText]
) -> tuple[int, str | None]:
    if texts:
        return texts[-1].row, texts[-1].id
    if left and min(left) < position.message:
        return min(left), None
    return position.message, position.message_id
