"""Saved views of the inbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

from deskwire.engine.conversations.saved_view import SavedView, ViewAuthor
from deskwire.engine.core.values import replace
from deskwire.storage.tables.base import IN_ORGANISATION, Changes, Queries

_VIEW: Final = (
    "SELECT v.rowid, v.id, v.project, v.name, v.filter, v.visibility, t.id, v.position, v.created_at, v.updated_at, "
    "u.rowid, u.id, nullif(u.name, '') FROM saved_views v JOIN users u ON u.rowid = v.author "
    "LEFT JOIN teams t ON t.rowid = v.team AND t.deleted_at IS NULL WHERE v.project = ? "
)
_SHARED: Final = "v.visibility <> 'me'"
_SEEN: Final = (
    "(v.visibility = 'project' OR (v.visibility = 'me' AND v.author = ?) OR (v.visibility = 'team' AND t.id IS NOT NULL AND EXISTS "
    "(SELECT 1 FROM team_members m WHERE m.team = v.team AND m.user = ?)))"
)
_ORDER: Final = (
    " ORDER BY CASE v.visibility WHEN 'me' THEN 0 WHEN 'team' THEN 1 ELSE 2 END, v.position, v.rowid"
)


class SavedViewReads(Queries):
    """The methods are those of `engine.conversations.saved_view.SavedViewReader`."""

    def saved_view(self, project: int, user: int, view_id: str) -> SavedView | None:
        return self._view(f"AND {_SEEN} AND v.id = ?", project, user, user, view_id)

    def saved_views(self, project: int, user: int) -> Sequence[SavedView]:
        rows = self.conn.execute(f"{_VIEW}AND {_SEEN}{_ORDER}", (project, user, user))
        return [_view_of(row) for row in rows]

    def shared_view(self, project: int, view_id: str) -> SavedView | None:
        return self._view(f"AND {_SHARED} AND v.id = ?", project, view_id)

    def shared_views(self, project: int) -> Sequence[SavedView]:
        rows = self.conn.execute(f"{_VIEW}AND {_SHARED}{_ORDER}", (project,))
        return [_view_of(row) for row in rows]

    def count_saved_views(self, project: int, user: int | None) -> int:
        whose, values = (_SHARED, ()) if user is None else ("v.visibility = 'me' AND v.author = ?", (user,))
        sql = f"SELECT count(*) FROM saved_views v WHERE v.project = ? AND {whose}"
        return int(self.conn.execute(sql, (project, *values)).fetchone()[0])

    def _view(self, condition: str, *values: object) -> SavedView | None:
        row = self.conn.execute(_VIEW + condition, values).fetchone()
        return None if row is None else _view_of(row)


class SavedViewWrites(Changes):
    """The methods are those of `engine.conversations.saved_view.SavedViewTransaction`."""

    def insert_saved_view(self, view: SavedView) -> SavedView:
        (position,) = self.conn.execute(
            "SELECT coalesce(max(position), 0) + 1 FROM saved_views WHERE project = ? AND visibility = ?",
            (view.project, view.visibility),
        ).fetchone()
        rowid = self.inserted(
            "INSERT INTO saved_views (id, project, name, filter, visibility, team, position, author, created_at, updated_at) "
            "VALUES (?, ?, ?, ?, ?, (SELECT rowid FROM teams WHERE id = ?), ?, ?, ?, ?)",
            (
                view.id,
                view.project,
                *_changing(view),
                position,
                view.author.rowid,
                view.created_at,
                view.updated_at,
            ),
        )
        return replace(view, rowid=rowid, position=position)

    def save_view(self, view: SavedView) -> None:
        self.conn.execute(
            "UPDATE saved_views SET name = ?, filter = ?, visibility = ?, team = (SELECT rowid FROM teams WHERE id = ?), "
            "position = ?, updated_at = ? WHERE rowid = ?",
            (*_changing(view), view.position, view.updated_at, view.rowid),
        )

    def delete_saved_view(self, view: SavedView) -> None:
        self.conn.execute("DELETE FROM saved_views WHERE rowid = ?", (view.rowid,))

    def forget_own_views(self, author: int, organisation: int | None) -> int:
        """Remove the views that a user has alone, in all projects or those of an organisation; return their number."""
        within = "" if organisation is None else IN_ORGANISATION
        sql = f"DELETE FROM saved_views WHERE visibility = 'me' AND author = ?{within} RETURNING rowid"
        values = (author,) if organisation is None else (author, organisation)
        return len(self.conn.execute(sql, values).fetchall())


def _changing(view: SavedView) -> tuple[Any, ...]:
    text = orjson.dumps(view.filter, option=orjson.OPT_SORT_KEYS).decode()
    return view.name, text, view.visibility, view.team_id


def _view_of(row: Sequence[Any]) -> SavedView:
    rowid, view_id, project, name, text, visibility, team, position, created_at, updated_at = row[:10]
    author = ViewAuthor(*row[10:])
    fields = (orjson.loads(text), visibility, team, position, author, created_at, updated_at)
    return SavedView(rowid, view_id, project, name, *fields)
