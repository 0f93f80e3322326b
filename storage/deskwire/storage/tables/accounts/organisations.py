"""Queries on organisations, their members, projects, keys and accounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from deskwire.engine.accounts.credential_ends import (
    ENDING_MAX,
    CredentialEnds,
    CredentialType,
    EndingCredential,
)
from deskwire.engine.accounts.people import Member, Membership, Organisation, Project, ServerKey, User
from deskwire.storage.dialect import differing
from deskwire.storage.tables.accounts.people import (
    GRANTED,
    KEYS,
    PROJECT,
    USER,
    USER_WIDTH,
    as_key,
    as_project,
    as_user,
    granted,
)
from deskwire.storage.tables.base import Queries

_ORGANISATION: Final = (
    "o.rowid, o.id, o.name, o.created_at, o.session_idle_s, o.session_max_s, o.second_factor"
)
_ORGANISATION_WIDTH: Final = 7
ORGANISATION: Final = f"SELECT {_ORGANISATION} FROM organisations o"
_MEMBER: Final = f"SELECT {USER}, m.created_at, {GRANTED} JOIN users u ON u.rowid = m.user"

_IN_FORCE: Final = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"
_ENDING: Final = "revoked_at IS NULL AND expires_at > ? AND expires_at <= ? AND expires_at - created_at > ?"
_CREDENTIALS: Final[tuple[tuple[CredentialType, str, str], ...]] = (
    ("server_key", "server_keys", "label"),
    ("machine_credential", "machine_credentials", "name"),
)
"""The types of credentials, each with its table and the column of its name."""

_UPTO_SIGN: Final = "rtrim({0}, replace({0}, '$', ''))"
"""SQL for the text up to and including its last `$`."""
_ENCODED: Final = (
    f"substr({_UPTO_SIGN.format('password_hash')}, 1, length({_UPTO_SIGN.format('password_hash')}) - 1)"
)
_COSTS: Final = (
    f"SELECT {_UPTO_SIGN.format('encoded')}, count(*) FROM "
    f"(SELECT {_ENCODED} AS encoded FROM users WHERE password_hash IS NOT NULL) AS hashes GROUP BY 1"
)
"""Counts users by the prefix of their password hashes, without salt and hash."""

_REFERRING: Final = differing(
    sqlite='SELECT t.name, f."from" FROM sqlite_schema t, pragma_foreign_key_list(t.name) f '
    "WHERE t.type = 'table' AND f.\"table\" = 'projects'",
    postgres="SELECT CAST(CAST(f.conrelid AS regclass) AS text), CAST(a.attname AS text) FROM pg_constraint f "
    "JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = f.conkey[1] "
    "WHERE f.contype = 'f' AND f.confrelid = CAST('projects' AS regclass)",
)
"""The tables with a foreign key to projects, each with its column."""
_OWN: Final = frozenset(
    {"channels", "consumers", "machine_credentials", "seen_marks", "server_keys", "teams"}
)
"""Tables that may have rows of a project when it is removed."""
_UNREFERENCED: Final = ("conversations", "events")
"""Tables that have rows of projects but no foreign key to them."""
_BUT: Final = {"events": " AND internal = 0"}
"""Conditions for rows that do not count as data of the project: internal events about its settings may remain."""


class OrganisationReads(Queries):
    """Queries. Implements `OrganisationReader`."""

    def organisation(self, organisation_id: str) -> Organisation | None:
        sql = f"{ORGANISATION} WHERE o.id = ? AND o.deleted_at IS NULL"
        row = self.conn.execute(sql, (organisation_id,)).fetchone()
        return None if row is None else Organisation(*row)

    def organisation_of(self, organisation: int) -> Organisation:
        return Organisation(
            *self.conn.execute(f"{ORGANISATION} WHERE o.rowid = ?", (organisation,)).fetchone()
        )

    def organisations(self) -> Sequence[Organisation]:
        sql = f"{ORGANISATION} WHERE o.deleted_at IS NULL ORDER BY o.rowid"
        return [Organisation(*row) for row in self.conn.execute(sql)]

    def memberships(self, user: int, after: tuple[int, int], limit: int) -> Sequence[Membership]:
        rows = self.conn.execute(
            f"SELECT {_ORGANISATION}, m.created_at, {GRANTED} "
            "JOIN organisations o ON o.rowid = m.organisation "
            "WHERE m.user = ? AND (m.created_at, m.organisation) > (?, ?) "
            "ORDER BY m.created_at, m.organisation LIMIT ?",
            (user, *after, limit),
        )
        width = _ORGANISATION_WIDTH
        return [
            Membership(
                Organisation(*row[:width]), row[width + 1], row[width], granted(*row[width + 1 :]).permissions
            )
            for row in rows
        ]

    def members(self, organisation: int, after: int, limit: int) -> Sequence[Member]:
        sql = f"{_MEMBER} WHERE m.organisation = ? AND m.user > ? ORDER BY m.user LIMIT ?"
        return [_member(row) for row in self.conn.execute(sql, (organisation, after, limit))]

    def organisation_member(self, organisation: int, user_id: str) -> Member | None:
        sql = f"{_MEMBER} WHERE m.organisation = ? AND u.id = ?"
        row = self.conn.execute(sql, (organisation, user_id)).fetchone()
        return None if row is None else _member(row)

    def owners(self, organisation: int) -> int:
        sql = "SELECT count(*) FROM memberships WHERE organisation = ? AND role = 'owner'"
        return int(self.conn.execute(sql, (organisation,)).fetchone()[0])

    def users(self) -> Sequence[User]:
        sql = f"SELECT {USER} FROM users u WHERE u.deleted_at IS NULL ORDER BY u.rowid"
        return [as_user(row) for row in self.conn.execute(sql)]

    def password_costs(self) -> Mapping[str, int]:
        return dict(self.conn.execute(_COSTS).fetchall())

    def projects(
        self, organisation: int | None, user: int | None, before: int, limit: int
    ) -> Sequence[Project]:
        sql, values = f"SELECT {PROJECT} FROM projects p WHERE p.removed_at IS NULL AND p.rowid < ?", [before]
        if organisation is not None:
            sql += " AND p.organisation = ?"
            values.append(organisation)
        if user is not None:
            sql += " AND p.organisation IN (SELECT m.organisation FROM memberships m WHERE m.user = ?)"
            values.append(user)
        rows = self.conn.execute(f"{sql} ORDER BY p.rowid DESC LIMIT ?", (*values, limit))
        return [as_project(row) for row in rows]

    def keys(self, project: int, before: int, limit: int) -> Sequence[ServerKey]:
        sql = f"{KEYS} WHERE k.project = ? AND k.rowid < ? ORDER BY k.rowid DESC LIMIT ?"
        return [as_key(row) for row in self.conn.execute(sql, (project, before, limit))]

    def key(self, key_id: str) -> ServerKey | None:
        row = self.conn.execute(f"{KEYS} WHERE k.id = ?", (key_id,)).fetchone()
        return None if row is None else as_key(row)

    def keys_in_force(self, project: int, at: int) -> int:
        sql = f"SELECT count(*) FROM server_keys WHERE project = ? AND {_IN_FORCE}"
        return int(self.conn.execute(sql, (project, at)).fetchone()[0])

    def credentials_ending(self, project: int, after: int, until: int) -> Sequence[EndingCredential]:
        found: list[EndingCredential] = []
        for kind, table, name in _CREDENTIALS:
            rows = self.conn.execute(
                f"SELECT id, {name}, expires_at FROM {table} WHERE project = ? AND {_ENDING} "
                "ORDER BY expires_at, rowid LIMIT ?",
                (project, after, until, until - after, ENDING_MAX),
            )
            found += [EndingCredential(kind, *row) for row in rows]
        return sorted(found, key=lambda each: each.expires_at)[:ENDING_MAX]

    def count_credential_ends(self, after: int, until: int) -> Mapping[CredentialType, CredentialEnds]:
        return {
            kind: CredentialEnds(
                *self.conn.execute(
                    f"SELECT (SELECT count(*) FROM {table} WHERE {_ENDING}), "
                    f"(SELECT count(*) FROM {table} WHERE revoked_at IS NULL AND expires_at IS NULL)",
                    (after, until, until - after),
                ).fetchone()
            )
            for kind, table, _ in _CREDENTIALS
        }

    def project_is_used(self, project: int) -> bool:
        referring = self.conn.execute(_REFERRING[self.dialect]).fetchall()
        holding = [(table, column) for table, column in referring if table not in _OWN]
        holding += [(table, "project") for table in _UNREFERENCED]
        return any(
            self.conn.execute(
                f"SELECT 1 FROM {table} WHERE {column} = ?{_BUT.get(table, '')} LIMIT 1", (project,)
            ).fetchone()
            for table, column in holding
        )


def _member(row: Sequence[Any]) -> Member:
    joined_at, role, permissions = row[USER_WIDTH:]
    return Member(as_user(row[:USER_WIDTH]), role, joined_at, granted(role, permissions).permissions)
