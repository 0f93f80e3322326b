"""Searches in the index tables of the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from deskwire.storage.search.lookup import SearchReads
from deskwire.storage.tables.search import SearchSourceReads


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
    newest_texts = (
        "SELECT w.value, n.id, n.text FROM (SELECT unnest(CAST(? AS bigint[])) AS value) w CROSS JOIN LATERAL "
        "(SELECT * FROM messages m WHERE m.conversation = w.value AND m.deleted_at IS NULL ORDER BY m.rowid DESC LIMIT ?) n "
        "ORDER BY w.value, n.rowid DESC"
    )

    def texts_by_conversation(
        self, rows: Sequence[int], messages: int
    ) -> Mapping[int, Iterable[tuple[str, str]]]:
        texts = defaultdict[int, list[tuple[str, str]]](list)
        for row, message_id, text in self.conn.execute(
            self.newest_texts, (self.dialect.listed(rows), messages)
        ):
            texts[row].append((message_id, text))
        return texts
