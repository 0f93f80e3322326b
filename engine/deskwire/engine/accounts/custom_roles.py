"""Roles of an organisation: the built-in ones, and its own with the permissions that it chooses.

An actor gives, changes and deletes only roles whose permissions it has, before and after a change (ADR 108).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import PERMISSIONS, ROLES, Role
from deskwire.engine.accounts.roles import ActingMember, check_holds
from deskwire.engine.core.errors import Conflict, NotFound
from deskwire.engine.core.folding import fold_name
from deskwire.engine.core.values import replace

ROLES_MAX: Final = 50
"""Maximum number of an organisation's own roles. A list has all of them."""

_BUILT_IN: Final[Mapping[str, tuple[str, str]]] = {
    "owner": ("Owner", "Everything, and the only role whose members appoint owners."),
    "admin": ("Admin", "Everything except appointing owners."),
    "agent": ("Agent", "Works on conversations and tickets, and changes no settings."),
    "viewer": ("Viewer", "Reads conversations, tickets, contacts and surveys."),
}


class OrganisationRole(Struct, frozen=True):
    """A role of an organisation.

    Args:
        rowid: storage key, from 1. Built-in roles have numbers below 1.
        members: number of members with the role. 0 in a role that is to be stored.
    """

    rowid: int
    id: Role
    organisation: int
    name: str
    description: str
    permissions: frozenset[str]
    created_at: int = 0
    members: int = 0

    @property
    def built_in(self) -> bool:
        """True if every organisation has the role, and it can't be changed."""
        return self.rowid < 1


class RoleReader(Protocol):
    """Queries on the own roles of organisations."""

    def custom_roles(self, organisation: int) -> Sequence[OrganisationRole]:
        """Return the own roles of an organisation, oldest first, with their members counted."""

    def members_by_role(self, organisation: int) -> Mapping[Role, int]:
        """Return the number of members of each role that has any."""


class RoleTransaction(RoleReader, Protocol):
    """Changes of roles."""

    def lock_across_nodes(self) -> None:
        """See `AccountTransaction.lock_across_nodes`."""

    def insert_role(self, role: OrganisationRole) -> OrganisationRole:
        """Store a new role. Return it with its `rowid`."""

    def save_role(self, role: OrganisationRole) -> None:
        """Store the name, description and permissions of a role."""

    def invitations_with_role(self, organisation: int, role: Role) -> int:
        """Return the number of invitations that give a role, expired ones that can be renewed included."""

    def delete_role(self, role: OrganisationRole) -> None:
        """Remove a role that no member has."""


def role_view(role: OrganisationRole) -> dict[str, Any]:
    """Return the role object."""
    return {
        "id": role.id,
        "name": role.name,
        "description": role.description,
        "permissions": sorted(role.permissions),
        "builtIn": role.built_in,
        "members": role.members,
    }


def roles_of(reader: RoleReader, organisation: int) -> list[OrganisationRole]:
    """Return the roles of an organisation: the built-in ones, then its own, oldest first."""
    counts = reader.members_by_role(organisation)
    built_in = [
        OrganisationRole(
            number - len(ROLES) + 1,
            role,
            organisation,
            *_BUILT_IN[role],
            PERMISSIONS[role],
            members=counts.get(role, 0),
        )
        for number, role in enumerate(ROLES)
    ]
    return [*built_in, *reader.custom_roles(organisation)]


def role_of(reader: RoleReader, organisation: int, role_id: Role) -> OrganisationRole:
    """Return the organisation's role with this id. Raises NotFound (`role_not_found`)."""
    for role in roles_of(reader, organisation):
        if role.id == role_id:
            return role
    raise NotFound("The organisation has no such role.", code="role_not_found")


def create_role(tx: RoleTransaction, actor: ActingMember, role: OrganisationRole) -> OrganisationRole:
    """Store a new role.

    Raises Forbidden (`permission_not_held`), and Conflict (`role_name_taken`, `role_limit_reached`).
    """
    tx.lock_across_nodes()
    check_holds(actor, role.permissions, "give")
    others = roles_of(tx, role.organisation)
    _check_name(role, others)
    if len(others) - len(ROLES) >= ROLES_MAX:
        raise Conflict(
            f"The organisation has reached its limit of {ROLES_MAX} roles of its own; delete one first.",
            code="role_limit_reached",
        )
    return tx.insert_role(role)


def change_custom_role(
    tx: RoleTransaction,
    actor: ActingMember,
    organisation: int,
    role_id: Role,
    *,
    name: str | None = None,
    description: str | None = None,
    permissions: frozenset[str] | None = None,
) -> OrganisationRole:
    """Change a role; None keeps a field. Its members have the new permissions from their next call.

    Raises NotFound, Forbidden (`permission_not_held`), and Conflict (`role_built_in`, `role_name_taken`).
    """
    tx.lock_across_nodes()
    before = _own_role(tx, actor, organisation, role_id)
    after = replace(
        before,
        name=before.name if name is None else name,
        description=before.description if description is None else description,
        permissions=before.permissions if permissions is None else permissions,
    )
    check_holds(actor, after.permissions, "give")
    if after != before:
        _check_name(after, roles_of(tx, organisation))
        tx.save_role(after)
    return after


def delete_custom_role(
    tx: RoleTransaction, actor: ActingMember, organisation: int, role_id: Role
) -> OrganisationRole:
    """Delete a role that no member has and no invitation gives.

    Raises NotFound, Forbidden (`permission_not_held`), and Conflict (`role_built_in`, `role_in_use`).
    """
    tx.lock_across_nodes()
    role = _own_role(tx, actor, organisation, role_id)
    if role.members:
        noun = "1 member has" if role.members == 1 else f"{role.members} members have"
        raise Conflict(f"{noun} this role; give them another one first.", code="role_in_use")
    invitations = tx.invitations_with_role(organisation, role_id)
    if invitations:
        noun = "1 invitation gives" if invitations == 1 else f"{invitations} invitations give"
        raise Conflict(f"{noun} this role; revoke it first.", code="role_in_use")
    tx.delete_role(role)
    return role


def _own_role(reader: RoleReader, actor: ActingMember, organisation: int, role_id: Role) -> OrganisationRole:
    """Return a role that the actor may change, as far as its present permissions matter."""
    role = role_of(reader, organisation, role_id)
    if role.built_in:
        raise Conflict("The built-in roles can't be changed or deleted.", code="role_built_in")
    check_holds(actor, role.permissions, "change a role with")
    return role


def _check_name(role: OrganisationRole, others: Sequence[OrganisationRole]) -> None:
    folded = fold_name(role.name)
    if any(each.id != role.id and fold_name(each.name) == folded for each in others):
        raise Conflict("The organisation has a role with this name.", code="role_name_taken")
