"""Snippets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from deskwire.engine.core.values import replace
from deskwire.engine.snippets.snippet import Snippet, SnippetAuthor
from deskwire.storage.tables.base import Changes, Queries

_SNIPPET: Final = (
    "SELECT s.rowid, s.id, s.project, s.shortcut, s.title, s.text, s.language, t.id, s.created_at, s.updated_at, "
    "u.rowid, u.id, nullif(u.name, '') FROM snippets s JOIN users u ON u.rowid = s.author "
    "LEFT JOIN teams t ON t.rowid = s.team AND t.deleted_at IS NULL"
)
_NO_ROW: Final = (1 << 63) - 1


class SnippetReads(Queries):
    """The methods are those of `engine.snippets.snippet.SnippetReader`."""

    def snippet(self, project: int, snippet_id: str) -> Snippet | None:
        return self._snippet("s.id", project, snippet_id)

    def snippet_by_shortcut(self, project: int, shortcut: str) -> Snippet | None:
        return self._snippet("s.shortcut", project, shortcut)

    def snippets(self, project: int, before: int | None, limit: int) -> Sequence[Snippet]:
        rows = self.conn.execute(
            f"{_SNIPPET} WHERE s.project = ? AND s.rowid < ? ORDER BY s.rowid DESC LIMIT ?",
            (project, before or _NO_ROW, limit),
        )
        return [_snippet_of(row) for row in rows]

    def count_snippets(self, project: int) -> int:
        row = self.conn.execute("SELECT count(*) FROM snippets WHERE project = ?", (project,)).fetchone()
        return int(row[0])

    def _snippet(self, column: str, project: int, value: str) -> Snippet | None:
        row = self.conn.execute(
            f"{_SNIPPET} WHERE s.project = ? AND {column} = ?", (project, value)
        ).fetchone()
        return None if row is None else _snippet_of(row)


class SnippetWrites(SnippetReads, Changes):
    """The methods are those of `engine.snippets.snippet.SnippetTransaction`."""

    def insert_snippet(self, snippet: Snippet) -> Snippet:
        rowid = self.inserted(
            "INSERT INTO snippets (id, project, shortcut, title, text, language, team, author, created_at, updated_at) "
            "VALUES (?, ?, ?, ?, ?, ?, (SELECT rowid FROM teams WHERE id = ?), ?, ?, ?)",
            (
                snippet.id,
                snippet.project,
                snippet.shortcut,
                snippet.title,
                snippet.text,
                snippet.language,
                snippet.team_id,
                snippet.author.rowid,
                snippet.created_at,
                snippet.updated_at,
            ),
        )
        return replace(snippet, rowid=rowid)

    def save_snippet(self, snippet: Snippet) -> None:
        self.conn.execute(
            "UPDATE snippets SET shortcut = ?, title = ?, text = ?, language = ?, "
            "team = (SELECT rowid FROM teams WHERE id = ?), updated_at = ? WHERE rowid = ?",
            (
                snippet.shortcut,
                snippet.title,
                snippet.text,
                snippet.language,
                snippet.team_id,
                snippet.updated_at,
                snippet.rowid,
            ),
        )

    def delete_snippet(self, snippet: Snippet) -> None:
        self.conn.execute("DELETE FROM snippets WHERE rowid = ?", (snippet.rowid,))


def _snippet_of(row: Sequence[Any]) -> Snippet:
    *known, created_at, updated_at = row[:10]
    values = [*known, SnippetAuthor(*row[10:]), created_at, updated_at]
    return Snippet(*values)
