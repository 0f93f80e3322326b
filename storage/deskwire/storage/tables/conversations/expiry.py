"""Finds the conversations that have passed their retention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.expiry import Due
from deskwire.storage.tables.accounts.people import PROJECT, as_project
from deskwire.storage.tables.base import Queries

_DUE: Final = (
    "SELECT p.id, c.id, c.messages + c.sequence, {time}, c.rowid FROM conversations c "
    "JOIN projects p ON p.rowid = c.project WHERE {chosen} AND {time} < ? AND ({time}, c.rowid) > (?, ?) "
    "ORDER BY {time}, c.rowid LIMIT ?"
)
BOT_ONLY: Final = _DUE.format(time="coalesce(c.imported_at, c.created_at)", chosen="c.human = 0")
ARCHIVED: Final = _DUE.format(time="c.archived_at", chosen="c.project = ?")
PROJECTS: Final = (
    f"SELECT {PROJECT} FROM projects p WHERE p.archived_retention_days IS NOT NULL AND EXISTS ("
    "SELECT 1 FROM conversations c WHERE c.project = p.rowid "
    "AND c.archived_at < ? - p.archived_retention_days * ?)"
)


class ExpiryReads(Queries):
    """The methods are those of `engine.conversations.expiry.ExpiryReader`."""

    def bot_only_before(self, created_before: int, after: tuple[int, int], limit: int) -> Sequence[Due]:
        return [_due_of(row) for row in self.conn.execute(BOT_ONLY, (created_before, *after, limit))]

    def archived_before(
        self, project: int, archived_before: int, after: tuple[int, int], limit: int
    ) -> Sequence[Due]:
        rows = self.conn.execute(ARCHIVED, (project, archived_before, *after, limit))
        return [_due_of(row) for row in rows]

    def projects_with_expired(self, now: int, day_ms: int) -> Sequence[Project]:
        return [as_project(row) for row in self.conn.execute(PROJECTS, (now, day_ms))]


def _due_of(row: tuple[Any, ...]) -> Due:
    project, conversation, rows, *place = row
    return Due(project, conversation, rows, (place[0], place[1]))
