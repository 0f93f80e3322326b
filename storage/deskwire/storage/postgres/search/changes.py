"""Writes of the search index, collected and then written in few statements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from deskwire.engine.search.ports import IndexPosition
from deskwire.storage.connection import Connection
from deskwire.storage.postgres.retention import REQUEST_SCRUB
from deskwire.storage.search.blocks import changed
from deskwire.storage.search.postings import NONE, ConversationWords, Place, PostingChanges, joined, split

POSTINGS_BATCH_SIZE: Final = 2_000  # postings that are read and written with one statement

_PLACES: Final = "unnest(CAST(? AS bigint[]), CAST(? AS bigint[]), CAST(? AS text[]), CAST(? AS bigint[]))"
_KEY: Final = "p.project = u.project AND p.length = u.length AND p.word = u.word AND p.block = u.block"
_READ: Final = (
    f"SELECT p.project, p.length, p.word, p.block, p.conversations FROM {_PLACES} AS u (project, length, word, block) "
    f"JOIN search_postings p ON {_KEY}"
)
_WRITE: Final = (
    "INSERT INTO search_postings (project, length, word, block, conversations) SELECT * FROM unnest(CAST(? AS bigint[]), "
    "CAST(? AS bigint[]), CAST(? AS text[]), CAST(? AS bigint[]), CAST(? AS bytea[])) "
    "ON CONFLICT (project, length, word, block) DO UPDATE SET conversations = excluded.conversations"
)
_DELETE: Final = (
    f"DELETE FROM search_postings p USING {_PLACES} AS u (project, length, word, block) WHERE {_KEY}"
)
_WRITE_WORDS: Final = (
    "INSERT INTO search_words (conversation, project, body, title) SELECT * FROM unnest(CAST(? AS bigint[]), "
    "CAST(? AS bigint[]), CAST(? AS text[]), CAST(? AS text[])) "
    "ON CONFLICT (conversation) DO UPDATE SET body = excluded.body, title = excluded.title"
)


class IndexChanges:
    """A transaction of the index; see `engine.search.ports.IndexTransaction`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._projects: dict[int, int] = {}
        self._bodies: defaultdict[int, set[str]] = defaultdict(set)
        self._titles: dict[int, AbstractSet[str]] = {}
        self._removed: set[int] = set()
        self._replaced: set[int] = set()

    def add(self, conversation: int, project: int, words: AbstractSet[str]) -> None:
        self._projects[conversation] = project
        self._bodies[conversation] |= words

    def set_title(self, conversation: int, project: int, words: AbstractSet[str]) -> None:
        self._projects[conversation] = project
        self._titles[conversation] = words

    def replace(self, conversation: int, project: int, words: AbstractSet[str]) -> None:
        self._projects[conversation] = project
        self._bodies[conversation] = set(words)
        self._replaced.add(conversation)

    def remove(self, conversation: int) -> None:
        self._removed.add(conversation)

    def move_to(self, position: IndexPosition, *, complete: bool) -> None:
        self._connection.execute(
            "UPDATE search_state SET message = ?, message_id = ?, conversation = ?, change = ?, "
            "complete = greatest(complete, ?)",
            (*position, int(complete)),
        )

    def flush(self) -> None:
        """Write the collected changes.

        A removed conversation stays removed, because its key is never given again.
        """
        changes = PostingChanges()
        put: dict[int, tuple[int, ConversationWords]] = {}
        gone: list[int] = []
        stored = self._stored(self._projects.keys() | self._removed)
        for conversation, (project, before) in stored.items():
            if conversation in self._removed:
                gone.append(conversation)
                changes.note(conversation, project, before, NONE)
        for conversation, project in self._projects.items():
            if conversation not in self._removed:
                _, before = stored.get(conversation, (project, NONE))
                kept = frozenset() if conversation in self._replaced else before.body
                body = kept | self._bodies.get(conversation, frozenset())
                after = ConversationWords(body, frozenset(self._titles.get(conversation, before.title)))
                if after != before:
                    put[conversation] = project, after
                    changes.note(conversation, project, before, after)
        self._write_words(put, gone)
        places = changes.places()
        for start in range(0, len(places), POSTINGS_BATCH_SIZE):
            self._write_postings(places[start : start + POSTINGS_BATCH_SIZE], changes)
        if gone or self._replaced:
            # A vacuum may have run between the erasure and this transaction. The request comes last, because
            # erasures wait for its row.
            self._connection.execute(REQUEST_SCRUB)

    def _stored(self, conversations: AbstractSet[int]) -> dict[int, tuple[int, ConversationWords]]:
        rows = self._connection.execute(
            "SELECT conversation, project, body, title FROM search_words "
            "WHERE conversation = ANY(CAST(? AS bigint[])) ORDER BY conversation",
            (tuple(conversations),),
        )
        return {row[0]: (row[1], ConversationWords(split(row[2]), split(row[3]))) for row in rows}

    def _write_words(self, put: dict[int, tuple[int, ConversationWords]], gone: list[int]) -> None:
        if put:
            values = (
                tuple(put),
                tuple(project for project, _ in put.values()),
                tuple(joined(words.body) for _, words in put.values()),
                tuple(joined(words.title) for _, words in put.values()),
            )
            self._connection.execute(_WRITE_WORDS, values)
        gone += [conversation for conversation, (_, words) in put.items() if words == NONE]
        if gone:
            self._connection.execute(
                "DELETE FROM search_words WHERE conversation = ANY(CAST(? AS bigint[]))", (tuple(gone),)
            )

    def _write_postings(self, places: Sequence[Place], changes: PostingChanges) -> None:
        before: dict[Place, bytes] = {
            (row[0], row[1], row[2], row[3]): bytes(row[4])
            for row in self._connection.execute(_READ, _columns(places))
        }
        after = {place: changed(before.get(place, b""), *changes.at(place)) for place in places}
        kept = [place for place, block in after.items() if block and block != before.get(place)]
        empty = [place for place, block in after.items() if not block and place in before]
        if kept:
            self._connection.execute(_WRITE, (*_columns(kept), _blocks(after[place] for place in kept)))
        if empty:
            self._connection.execute(_DELETE, _columns(empty))


def _columns(places: Sequence[Place]) -> tuple[tuple[int | str, ...], ...]:
    return tuple(zip(*places, strict=True))


def _blocks(values: Iterable[bytes]) -> str:
    return '{"' + '","'.join(f"\\\\x{value.hex()}" for value in values) + '"}'
