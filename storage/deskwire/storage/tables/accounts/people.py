"""Queries on projects, users, roles and server keys, which every request needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from deskwire.engine.accounts.people import (
    PERMISSIONS,
    WORK,
    GrantedRole,
    Project,
    ProjectSettings,
    Role,
    ServerKey,
    User,
)
from deskwire.engine.audit.audited_changes import made
from deskwire.engine.audit.trail import AuditEntry
from deskwire.engine.core.clock import iso
from deskwire.engine.core.folding import address_key, duplicate_range, fold_name
from deskwire.storage.tables.audit import AuditWrites
from deskwire.storage.tables.base import Queries

PROJECT: Final = (
    "p.rowid, p.id, p.organisation, p.name, p.stream_key, p.created_at, p.memory_enabled, "
    "p.archived_retention_days, p.primary_language, p.languages, p.upload_quota_bytes"
)
PROJECT_WIDTH: Final = 11


USER: Final = "u.rowid, u.id, u.email, u.name, u.password_hash, u.password_temporary, u.generation, u.created_at, u.home, u.password_made_at"
USER_WIDTH: Final = 10
GRANTED: Final = "m.role, r.permissions FROM memberships m LEFT JOIN roles r ON r.id = m.role AND r.organisation = m.organisation"
"""The columns that `granted` takes, and the tables that they come from."""
KEYS: Final = (
    f"SELECT {PROJECT}, k.rowid, k.id, k.last_used_at, k.revoked_at, k.label, k.tail, k.created_at, k.expires_at "
    "FROM server_keys k JOIN projects p ON p.rowid = k.project"
)

_LIKE_THIS: Final = "(u.folded = ? OR (u.folded > ? AND u.folded < ?))"
"""Matches accounts with the same folded address, including duplicates of older databases (`core.folding.duplicate_key`)."""


def as_project(row: Sequence[Any]) -> Project:
    """Return the project in a row of the columns PROJECT."""
    rowid, project_id, organisation, name, stream_key, at, memory, days, primary, languages, quota = row
    settings = ProjectSettings(bool(memory), days, primary, tuple(languages.split(",")), quota)
    return Project(rowid, project_id, organisation, name, stream_key, settings, at)


def as_user(row: Sequence[Any]) -> User:
    """Return the user in a row of the columns USER."""
    rowid, user_id, email, name, password_hash, temporary, *rest = row
    return User(rowid, user_id, email, name, password_hash, bool(temporary), *rest)


def as_key(row: Sequence[Any]) -> ServerKey:
    """Return the server key in a row of KEYS."""
    rowid, key_id, *rest = row[PROJECT_WIDTH:]
    return ServerKey(rowid, key_id, as_project(row[:PROJECT_WIDTH]), *rest)


def granted(role: Role, permissions: str | None) -> GrantedRole:
    """Return a stored role with its permissions. One that is neither built-in nor stored has none."""
    return GrantedRole(role, PERMISSIONS.get(role) or listed_permissions(permissions or ""))


def listed_permissions(text: str) -> frozenset[str]:
    """Return the permissions in a stored list."""
    return frozenset(filter(None, text.split(",")))


class PeopleReads(Queries):
    """Queries on people and their projects. Implements `AccountReader`."""

    def has_projects(self) -> bool:
        return self.conn.execute("SELECT 1 FROM projects LIMIT 1").fetchone() is not None

    def project(self, project_id: str) -> Project | None:
        return self._project("id", project_id)

    def project_with(self, project: int) -> Project | None:
        return self._project("rowid", project)

    def project_by_stream_key(self, stream_key: str) -> Project | None:
        return self._project("stream_key", stream_key)

    def server_key(self, key_hash: bytes) -> ServerKey | None:
        row = self.conn.execute(f"{KEYS} WHERE k.hash = ?", (key_hash,)).fetchone()
        return None if row is None else as_key(row)

    def user(self, user_id: str) -> User | None:
        return self._user("u.id = ?", user_id)

    def user_by_email(self, email: str) -> User | None:
        key = address_key(email)
        found = [user for user in self._users_like(email) if address_key(user.email) == key]
        return next((user for user in found if user.email == email), found[0] if found else None)

    def similar_account_exists(self, email: str) -> bool:
        return bool(self._users_like(email))

    def _users_like(self, email: str) -> list[User]:
        sql = f"SELECT {USER} FROM users u WHERE {_LIKE_THIS} AND u.deleted_at IS NULL ORDER BY u.rowid"
        return [as_user(row) for row in self.conn.execute(sql, duplicate_range(fold_name(email)))]

    def role(self, organisation: int, user: int) -> GrantedRole | None:
        row = self.conn.execute(
            f"SELECT {GRANTED} WHERE m.organisation = ? AND m.user = ?", (organisation, user)
        ).fetchone()
        return None if row is None else granted(*row)

    def granted_role(self, organisation: int, role: Role) -> GrantedRole | None:
        if role in PERMISSIONS:
            return granted(role, None)
        sql = "SELECT id, permissions FROM roles WHERE id = ? AND organisation = ?"
        row = self.conn.execute(sql, (role, organisation)).fetchone()
        return None if row is None else granted(*row)

    def member_name(self, organisation: int, user_id: str) -> str | None:
        row = self.conn.execute(
            "SELECT u.name FROM users u JOIN memberships m ON m.user = u.rowid WHERE m.organisation = ? AND u.id = ?",
            (organisation, user_id),
        ).fetchone()
        return None if row is None else row[0]

    def assignee_name(self, organisation: int, user_id: str) -> str | None:
        row = self.conn.execute(
            f"SELECT u.name, {GRANTED} JOIN users u ON u.rowid = m.user WHERE m.organisation = ? AND u.id = ?",
            (organisation, user_id),
        ).fetchone()
        return None if row is None or WORK not in granted(*row[1:]).permissions else row[0]

    def _project(self, column: str, value: str | int) -> Project | None:
        row = self.conn.execute(
            f"SELECT {PROJECT} FROM projects p WHERE p.{column} = ? AND p.removed_at IS NULL", (value,)
        ).fetchone()
        return None if row is None else as_project(row)

    def _user(self, which: str, value: str) -> User | None:
        sql = f"SELECT {USER} FROM users u WHERE {which} AND u.deleted_at IS NULL"
        row = self.conn.execute(sql, (value,)).fetchone()
        return None if row is None else as_user(row)


class PeopleWrites(AuditWrites):
    """Changes of people and keys. Implements `AccountTransaction`."""

    def insert_organisation(self, organisation_id: str, name: str, at: int) -> int:
        rowid = self._insert("organisations", id=organisation_id, name=name, created_at=at)
        changes = made({"name": name})
        self.record(AuditEntry("organisation.created", organisation_id, organisation=rowid, changes=changes))
        return rowid

    def insert_project(
        self, project_id: str, organisation: int, name: str, stream_key: str, at: int
    ) -> Project:
        rowid = self._insert(
            "projects",
            id=project_id,
            organisation=organisation,
            name=name,
            stream_key=stream_key,
            created_at=at,
        )
        self.record(AuditEntry("project.created", project_id, project=rowid, changes=made({"name": name})))
        return Project(rowid, project_id, organisation, name, stream_key, created_at=at)

    def insert_user(self, user_id: str, email: str, name: str, password_hash: str | None, at: int) -> User:
        rowid = self._insert(
            "users",
            id=user_id,
            email=email,
            name=name,
            password_hash=password_hash,
            created_at=at,
            folded=fold_name(email),
        )
        changes = made({"email": email, "name": name})
        self.record(AuditEntry("account.created", user_id, account=rowid, changes=changes))
        return User(rowid, user_id, email, name, password_hash, created_at=at)

    def insert_membership(self, organisation: int, user: int, role: Role, at: int) -> None:
        self.conn.execute(
            'INSERT INTO memberships (organisation, "user", role, created_at) VALUES (?, ?, ?, ?)',
            (organisation, user, role, at),
        )
        # Conversations from before the membership are not unread for the new member.
        self.conn.execute(
            'INSERT INTO seen_marks ("user", project, until) SELECT CAST(? AS bigint), p.rowid, CAST(? AS bigint) '
            'FROM projects p WHERE p.organisation = ? ON CONFLICT ("user", project) DO UPDATE SET until = excluded.until',
            (user, at, organisation),
        )
        self.record_member("member.added", organisation, user, None, role)

    def insert_key(
        self,
        key_id: str,
        project: int,
        key_hash: bytes,
        tail: str,
        label: str,
        at: int,
        expires_at: int | None = None,
    ) -> None:
        self._insert(
            "server_keys",
            id=key_id,
            project=project,
            hash=key_hash,
            tail=tail,
            label=label,
            created_at=at,
            expires_at=expires_at,
        )
        known = {"label": label} if expires_at is None else {"label": label, "expiresAt": iso(expires_at)}
        self.record(AuditEntry("key.created", key_id, project=project, changes=made(known)))

    def touch_key(self, key: int, at: int) -> None:
        self.conn.execute("UPDATE server_keys SET last_used_at = ? WHERE rowid = ?", (at, key))

    def record_member(
        self,
        action: str,
        organisation: int,
        user: int,
        before: Role | None,
        after: Role | None,
        details: Mapping[str, int] | None = None,
    ) -> None:
        """Record a change of a user's role.

        `details` counts the rows that were deleted with a membership.
        """
        (user_id,) = self.conn.execute("SELECT id FROM users WHERE rowid = ?", (user,)).fetchone()
        self.record(
            AuditEntry(
                action,
                user_id,
                organisation=organisation,
                account=user,
                changes={"role": (before, after)},
                details=details or {},
            )
        )

    def _insert(self, table: str, **values: Any) -> int:
        columns, marks = ", ".join(values), ", ".join("?" for _ in values)
        return self.inserted(f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(values.values()))
