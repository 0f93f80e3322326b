"""Queries on machine credentials. They implement `MachineReader` and `MachineTransaction`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from deskwire.engine.accounts.machines import Machine
from deskwire.engine.audit.audited_changes import machine_changed, machine_made, machine_rotated
from deskwire.engine.audit.trail import AuditEntry
from deskwire.storage.tables.accounts.people import PROJECT, PROJECT_WIDTH, as_project
from deskwire.storage.tables.audit import AuditWrites
from deskwire.storage.tables.base import Queries

MACHINE_RIGHTS: Final = (
    "project, name, permissions, hash, expires_at, revoked_at, generation, previous_hash, previous_expires_at"
)
"""The columns that authentication depends on. A change of any of them invalidates cached callers."""

_MACHINES: Final = (
    f"SELECT {PROJECT}, m.rowid, m.id, m.name, m.permissions, m.hash, m.tail, m.made_by, m.made_by_id, m.created_at, "
    "m.expires_at, m.last_used_at, m.revoked_at, m.generation, m.previous_hash, m.previous_expires_at, m.own_expires_at "
    "FROM machine_credentials m JOIN projects p ON p.rowid = m.project"
)


class MachineReads(Queries):
    """Queries."""

    def machine_with(self, secret_hash: bytes) -> Machine | None:
        return self._machine("m.hash", secret_hash) or self._machine("m.previous_hash", secret_hash)

    def machine(self, machine_id: str) -> Machine | None:
        return self._machine("m.id", machine_id)

    def machines(self, project: int, before: int, limit: int) -> Sequence[Machine]:
        sql = f"{_MACHINES} WHERE m.project = ? AND m.rowid < ? ORDER BY m.rowid DESC LIMIT ?"
        return [_as_machine(row) for row in self.conn.execute(sql, (project, before, limit))]

    def machines_in_force(self, project: int, at: int) -> int:
        sql = (
            "SELECT count(*) FROM machine_credentials WHERE project = ? AND revoked_at IS NULL "
            "AND (expires_at IS NULL OR expires_at > ?)"
        )
        return int(self.conn.execute(sql, (project, at)).fetchone()[0])

    def next_machine_end(self, after: int) -> int | None:
        sql = "SELECT min(expires_at) FROM machine_credentials WHERE revoked_at IS NULL AND expires_at > ?"
        end: int | None = self.conn.execute(sql, (after,)).fetchone()[0]
        return end

    def child_machines(self) -> Sequence[Machine]:
        sql = f"{_MACHINES} WHERE m.made_by = 'machine' AND m.revoked_at IS NULL ORDER BY m.rowid"
        return [_as_machine(row) for row in self.conn.execute(sql)]

    def machines_made_by(self, machine: Machine) -> Sequence[Machine]:
        sql = (
            f"{_MACHINES} WHERE m.project = ? AND m.made_by = 'machine' AND m.made_by_id = ? ORDER BY m.rowid"
        )
        return [_as_machine(row) for row in self.conn.execute(sql, (machine.project.rowid, machine.id))]

    def _machine(self, column: str, value: str | bytes | int) -> Machine | None:
        row = self.conn.execute(f"{_MACHINES} WHERE {column} = ?", (value,)).fetchone()
        return None if row is None else _as_machine(row)


class MachineWrites(MachineReads, AuditWrites):
    """Changes."""

    def insert_machine(self, machine: Machine) -> None:
        columns = (
            "id, project, name, permissions, hash, tail, made_by, made_by_id, created_at, expires_at, "
            "own_expires_at, generation"
        )
        self.conn.execute(
            f"INSERT INTO machine_credentials ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
            (
                machine.id,
                machine.project.rowid,
                machine.name,
                _listed(machine.permissions),
                machine.hash,
                machine.tail,
                machine.made_by,
                machine.made_by_id,
                machine.created_at,
                machine.expires_at,
                machine.own_expires_at,
            ),
        )
        self.record(machine_made(machine))

    def save_machine(self, machine: Machine) -> None:
        before = self._machine("m.rowid", machine.rowid)
        assert before is not None, "only what is stored is changed"
        self.conn.execute(
            "UPDATE machine_credentials SET name = ?, permissions = ?, expires_at = ?, own_expires_at = ? WHERE rowid = ?",
            (
                machine.name,
                _listed(machine.permissions),
                machine.expires_at,
                machine.own_expires_at,
                machine.rowid,
            ),
        )
        self.record(*machine_changed(before, machine))

    def rotate_machine(self, machine: Machine, overlap_s: int) -> None:
        self.conn.execute(
            "UPDATE machine_credentials SET hash = ?, tail = ?, generation = ?, previous_hash = ?, "
            "previous_expires_at = ? WHERE rowid = ?",
            (
                machine.hash,
                machine.tail,
                machine.generation,
                machine.previous_hash,
                machine.previous_expires_at,
                machine.rowid,
            ),
        )
        self.record(machine_rotated(machine, overlap_s))

    def revoke_machine(self, machine: int, at: int) -> None:
        self.conn.execute("UPDATE machine_credentials SET revoked_at = ? WHERE rowid = ?", (at, machine))
        sql = "SELECT id, project FROM machine_credentials WHERE rowid = ?"
        machine_id, project = self.conn.execute(sql, (machine,)).fetchone()
        self.record(AuditEntry("credential.revoked", machine_id, project=project))

    def revoke_machines(self, project: int, at: int) -> None:
        """Revoke all credentials of a project that are not revoked yet."""
        sql = "SELECT rowid FROM machine_credentials WHERE project = ? AND revoked_at IS NULL"
        for (machine,) in self.conn.execute(sql, (project,)).fetchall():
            self.revoke_machine(machine, at)

    def touch_machine(self, machine: int, at: int) -> None:
        self.conn.execute("UPDATE machine_credentials SET last_used_at = ? WHERE rowid = ?", (at, machine))


def _listed(permissions: frozenset[str]) -> str:
    return ",".join(sorted(permissions))


def _as_machine(row: Sequence[Any]) -> Machine:
    rowid, machine_id, name, permissions, *rest = row[PROJECT_WIDTH:]
    allowed = frozenset(permissions.split(",")) if permissions else frozenset[str]()
    return Machine(rowid, machine_id, as_project(row[:PROJECT_WIDTH]), name, allowed, *rest)
