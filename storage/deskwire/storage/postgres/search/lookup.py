"""Searches in the index tables of the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from deskwire.storage.search.lookup import FIRST_TEXTS, SearchReads
from deskwire.storage.tables.search import SearchSourceReads

# Only the service folds texts as the index does. Those of ASCII alone are folded by the database, too.
_NOT_ASCII: Final = "octet_length(newest.text) <> char_length(newest.text)"
_HAVING: Final = """strpos(lower(newest.text COLLATE "C"), ?) > 0"""

_NEWEST_TEXTS: Final = (
    "SELECT w.value, n.id, n.text FROM (SELECT unnest(CAST(? AS bigint[])) AS value) w CROSS JOIN LATERAL "
    "(SELECT * FROM (SELECT m.rowid, m.id, m.text FROM messages m WHERE m.conversation = w.value AND m.deleted_at IS NULL "
    "ORDER BY m.rowid DESC LIMIT ?) newest WHERE {having} ORDER BY newest.rowid DESC LIMIT ? OFFSET ?) n "
    "ORDER BY w.value, n.rowid DESC"
)


class PostgresSearchReads(SearchReads, SearchSourceReads):
    """`SearchReads` with PostgreSQL's table names, and without SQLite's planner hints."""

    postings = "search_postings"
    state = "search_state"
    named = (
        "SELECT c.rowid FROM conversations c WHERE c.project = ? AND c.id = ? UNION SELECT c.rowid FROM messages m "
        "JOIN conversations c ON c.rowid = m.conversation WHERE m.id = ? AND c.project = ?"
    )
    listed = (
        "SELECT c.rowid FROM conversations c WHERE c.rowid = ANY(CAST(? AS bigint[])) AND c.project = ? "
        "ORDER BY c.activity DESC, c.rowid DESC LIMIT ?"
    )

    def texts_by_conversation(
        self, rows: Sequence[int], messages: int, words: Sequence[str]
    ) -> Mapping[int, Iterable[tuple[str, str]]]:
        """See `SearchReads`.

        The database finds the texts, so that few cross the network: in one statement, or in two if a conversation needs more.
        """
        first = self._texts(rows, messages, words, FIRST_TEXTS, 0)
        full = [row for row in rows if len(first[row]) == FIRST_TEXTS]

        @cache
        def others() -> Mapping[int, list[tuple[str, str]]]:
            return self._texts(full, messages, words, messages, FIRST_TEXTS)

        def texts_of(row: int) -> Iterator[tuple[str, str]]:
            yield from first[row]
            if row in full:
                yield from others()[row]

        return {row: texts_of(row) for row in rows}

    def _texts(
        self, rows: Sequence[int], messages: int, words: Sequence[str], limit: int, offset: int
    ) -> Mapping[int, list[tuple[str, str]]]:
        folded = [word for word in words if word.isascii()]
        sql = _NEWEST_TEXTS.format(having=" OR ".join([_NOT_ASCII, *(_HAVING for _ in folded)]))
        values = (self.dialect.listed(rows), messages, *folded, limit, offset)
        texts = defaultdict[int, list[tuple[str, str]]](list)
        for row, message_id, text in self.conn.execute(sql, values):
            texts[row].append((message_id, text))
        return texts
