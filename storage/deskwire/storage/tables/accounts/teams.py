"""Teams and their members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from deskwire.engine.accounts.teams import Team, TeamMember
from deskwire.engine.core.folding import duplicate_range, fold_name
from deskwire.engine.core.values import replace
from deskwire.storage.tables.base import Changes, Queries

_TEAM: Final = "SELECT rowid, id, project, name, created_at, updated_at FROM teams WHERE deleted_at IS NULL"
_NAMED: Final = f"{_TEAM} AND project = ? AND (folded = ? OR (folded > ? AND folded < ?)) ORDER BY folded"
_NO_ROW: Final = (1 << 63) - 1


class TeamReads(Queries):
    """Queries on teams. Implements `teams.TeamReader`."""

    def team(self, project: int, team_id: str) -> Team | None:
        row = self.conn.execute(f"{_TEAM} AND id = ? AND project = ?", (team_id, project)).fetchone()
        return None if row is None else self._team_of(row)

    def teams(self, project: int, before: int | None, limit: int) -> Sequence[Team]:
        rows = self.conn.execute(
            f"{_TEAM} AND project = ? AND rowid < ? ORDER BY rowid DESC LIMIT ?",
            (project, before or _NO_ROW, limit),
        ).fetchall()
        return [self._team_of(row) for row in rows]

    def teams_of(self, project: int, user: int) -> Sequence[str]:
        rows = self.conn.execute(
            "SELECT t.id FROM teams t JOIN team_members m ON m.team = t.rowid AND m.user = ? "
            "WHERE t.project = ? AND t.deleted_at IS NULL ORDER BY t.rowid",
            (user, project),
        )
        return [row[0] for row in rows]

    def team_named(self, project: int, name: str) -> str | None:
        return self._text(_NAMED, 1, project, *duplicate_range(fold_name(name)))

    def team_name(self, project: int, team_id: str) -> str | None:
        return self._text(f"{_TEAM} AND project = ? AND id = ?", 3, project, team_id)

    def teammate(self, organisation: int, user_id: str) -> TeamMember | None:
        row = self.conn.execute(
            "SELECT u.rowid, u.id, u.name FROM users u JOIN memberships m ON m.user = u.rowid "
            "WHERE u.id = ? AND m.organisation = ?",
            (user_id, organisation),
        ).fetchone()
        return None if row is None else TeamMember(*row)

    def deleted_teams(self) -> Sequence[tuple[int, str]]:
        rows = self.conn.execute("SELECT rowid, id FROM teams WHERE deleted_at IS NOT NULL ORDER BY rowid")
        return [(row[0], row[1]) for row in rows]

    def _text(self, sql: str, column: int, *values: Any) -> str | None:
        row = self.conn.execute(sql, values).fetchone()
        return None if row is None else row[column]

    def _team_of(self, row: Sequence[Any]) -> Team:
        rowid, team_id, project, name, created_at, updated_at = row
        members = self.conn.execute(
            "SELECT u.rowid, u.id, u.name FROM team_members t JOIN users u ON u.rowid = t.user "
            "JOIN projects p ON p.rowid = ? JOIN memberships m ON m.user = u.rowid AND m.organisation = p.organisation "
            "WHERE t.team = ? ORDER BY u.rowid",
            (project, rowid),
        )
        found = tuple(TeamMember(*member) for member in members)
        return Team(team_id, project, name, created_at, updated_at, found, rowid)


class TeamWrites(Changes):
    """Changes of teams. Implements `teams.TeamTransaction`."""

    due: list[int]

    def insert_team(self, team: Team) -> Team:
        rowid = self.inserted(
            "INSERT INTO teams (id, project, name, created_at, updated_at, folded) VALUES (?, ?, ?, ?, ?, ?)",
            (team.id, team.project, team.name, team.created_at, team.updated_at, fold_name(team.name)),
        )
        stored = replace(team, rowid=rowid)
        self._enrol(stored)
        return stored

    def save_team(self, team: Team) -> None:
        self.conn.execute(
            "UPDATE teams SET name = ?, updated_at = ?, folded = CASE WHEN name = ? THEN folded ELSE ? END WHERE rowid = ?",
            (team.name, team.updated_at, team.name, fold_name(team.name), team.rowid),
        )
        self.conn.execute("DELETE FROM team_members WHERE team = ?", (team.rowid,))
        self._enrol(team)

    def delete_team(self, team: int, at: int) -> None:
        self.conn.execute("UPDATE teams SET deleted_at = ? WHERE rowid = ?", (at, team))
        self.conn.execute("UPDATE snippets SET team = NULL WHERE team = ?", (team,))
        self.conn.execute("DELETE FROM saved_views WHERE team = ?", (team,))
        self.due.append(at)

    def forget_team(self, team: int) -> None:
        self.conn.execute("DELETE FROM team_members WHERE team = ?", (team,))
        self.conn.execute("DELETE FROM teams WHERE rowid = ?", (team,))

    def _enrol(self, team: Team) -> None:
        rows = ((team.rowid, member.rowid) for member in team.members)
        self.conn.executemany("INSERT INTO team_members VALUES (?, ?)", rows)
