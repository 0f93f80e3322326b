"""Queries on the own roles of organisations. They implement `RoleReader` and `RoleTransaction`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deskwire.engine.accounts.custom_roles import OrganisationRole
from deskwire.engine.accounts.people import Role
from deskwire.engine.audit.audited_changes import role_changed, role_deleted, role_made
from deskwire.engine.core.values import replace
from deskwire.storage.tables.accounts.people import listed_permissions
from deskwire.storage.tables.audit import AuditWrites
from deskwire.storage.tables.base import Queries


class RoleReads(Queries):
    """Queries."""

    def custom_roles(self, organisation: int) -> Sequence[OrganisationRole]:
        counts = self.members_by_role(organisation)
        rows = self.conn.execute(
            "SELECT rowid, id, organisation, name, description, permissions, created_at FROM roles "
            "WHERE organisation = ? ORDER BY rowid",
            (organisation,),
        ).fetchall()
        return [
            OrganisationRole(
                rowid, role, owner, name, description, listed_permissions(listed), at, counts.get(role, 0)
            )
            for rowid, role, owner, name, description, listed, at in rows
        ]

    def members_by_role(self, organisation: int) -> Mapping[Role, int]:
        sql = "SELECT role, count(*) FROM memberships WHERE organisation = ? GROUP BY role"
        return dict(self.conn.execute(sql, (organisation,)).fetchall())


class RoleWrites(RoleReads, AuditWrites):
    """Changes, each recorded in the audit trail."""

    def invitations_with_role(self, organisation: int, role: Role) -> int:
        sql = "SELECT count(*) FROM invitations WHERE organisation = ? AND role = ?"
        return int(self.conn.execute(sql, (organisation, role)).fetchone()[0])

    def insert_role(self, role: OrganisationRole) -> OrganisationRole:
        rowid = self.inserted(
            "INSERT INTO roles (id, organisation, name, description, permissions, created_at) VALUES (?, ?, ?, ?, ?, ?)",
            (
                role.id,
                role.organisation,
                role.name,
                role.description,
                _listed(role.permissions),
                role.created_at,
            ),
        )
        self.record(role_made(role))
        return replace(role, rowid=rowid)

    def save_role(self, role: OrganisationRole) -> None:
        before = next(each for each in self.custom_roles(role.organisation) if each.rowid == role.rowid)
        self.conn.execute(
            "UPDATE roles SET name = ?, description = ?, permissions = ? WHERE rowid = ?",
            (role.name, role.description, _listed(role.permissions), role.rowid),
        )
        self.record(*role_changed(before, role))

    def delete_role(self, role: OrganisationRole) -> None:
        self.conn.execute("DELETE FROM roles WHERE rowid = ?", (role.rowid,))
        self.record(role_deleted(role))


def _listed(permissions: frozenset[str]) -> str:
    return ",".join(sorted(permissions))
