"""Organisations, projects, users and server keys."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from deskwire.engine.people import Project, Role, ServerKey, User

_PROJECT: Final = "p.rowid, p.id, p.organisation, p.name, p.stream_key"
_PROJECT_WIDTH: Final = 5


class PeopleReads:
    """Queries on people and their projects; the methods are those of `ports.Reader`."""

    conn: sqlite3.Connection

    def has_projects(self) -> bool:
        return self.conn.execute("SELECT 1 FROM projects LIMIT 1").fetchone() is not None

    def project(self, project_id: str) -> Project | None:
        return self._project("id", project_id)

    def project_by_stream_key(self, stream_key: str) -> Project | None:
        return self._project("stream_key", stream_key)

    def server_key(self, key_hash: bytes) -> ServerKey | None:
        row = self.conn.execute(
            f"SELECT {_PROJECT}, k.rowid, k.id, k.last_used_at, k.revoked_at FROM server_keys k "
            "JOIN projects p ON p.rowid = k.project WHERE k.hash = ?",
            (key_hash,),
        ).fetchone()
        if row is None:
            return None
        rowid, key_id, last_used_at, revoked_at = row[_PROJECT_WIDTH:]
        return ServerKey(rowid, key_id, Project(*row[:_PROJECT_WIDTH]), last_used_at, revoked_at)

    def user(self, user_id: str) -> User | None:
        return self._user("id", user_id)

    def user_by_email(self, email: str) -> User | None:
        return self._user("email", email)

    def role(self, organisation: int, user: int) -> Role | None:
        row = self.conn.execute(
            "SELECT role FROM memberships WHERE organisation = ? AND user = ?", (organisation, user)
        ).fetchone()
        return None if row is None else row[0]

    def member_name(self, organisation: int, user_id: str) -> str | None:
        row = self.conn.execute(
            "SELECT u.name FROM users u JOIN memberships m ON m.user = u.rowid WHERE m.organisation = ? AND u.id = ?",
            (organisation, user_id),
        ).fetchone()
        return None if row is None else row[0]

    def _project(self, column: str, value: str) -> Project | None:
        row = self.conn.execute(
            f"SELECT {_PROJECT} FROM projects p WHERE p.{column} = ?", (value,)
        ).fetchone()
        return None if row is None else Project(*row)

    def _user(self, column: str, value: str) -> User | None:
        sql = f"SELECT rowid, id, email, name, password_hash FROM users WHERE {column} = ?"
        row = self.conn.execute(sql, (value,)).fetchone()
        return None if row is None else User(*row)


class PeopleWrites:
    """Changes of people and keys; the methods are those of `ports.Transaction`."""

    conn: sqlite3.Connection

    def insert_organisation(self, organisation_id: str, name: str, at: int) -> int:
        return self._insert("organisations", id=organisation_id, name=name, created_at=at)

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
        return Project(rowid, project_id, organisation, name, stream_key)

    def insert_user(self, user_id: str, email: str, name: str, password_hash: str, at: int) -> User:
        rowid = self._insert(
            "users", id=user_id, email=email, name=name, password_hash=password_hash, created_at=at
        )
        return User(rowid, user_id, email, name, password_hash)

    def insert_membership(self, organisation: int, user: int, role: Role, at: int) -> None:
        self._insert("memberships", organisation=organisation, user=user, role=role, created_at=at)

    def insert_key(self, key_id: str, project: int, key_hash: bytes, tail: str, label: str, at: int) -> None:
        self._insert(
            "server_keys",
            id=key_id,
            project=project,
            hash=key_hash,
            tail=tail,
            label=label,
            created_at=at,
        )

    def touch_key(self, key: int, at: int) -> None:
        self.conn.execute("UPDATE server_keys SET last_used_at = ? WHERE rowid = ?", (at, key))

    def _insert(self, table: str, **values: Any) -> int:
        columns, marks = ", ".join(values), ", ".join("?" for _ in values)
        sql = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
        return self.conn.execute(sql, tuple(values.values())).lastrowid or 0
