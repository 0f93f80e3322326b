"""Roles: rules for granting and changing them, their scope, and the members who can be assigned work.

Only an owner can make or change owners, and every organisation keeps at least one owner.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from deskwire.engine.accounts.people import (
    WORK,
    GrantedRole,
    Member,
    Organisation,
    Project,
    Role,
    User,
)
from deskwire.engine.accounts.ports import AccountReader, OrganisationReader
from deskwire.engine.core.errors import Conflict, Forbidden, Invalid, NotFound, Problem

MANAGE: Final = "members.manage"


class ActingMember(Struct, frozen=True):
    """A member who changes other members.

    Functions take None for the operator at the command line.
    """

    user: int
    role: Role
    permissions: frozenset[str]


def acting_member(reader: AccountReader, organisation: int, user_id: str | None) -> ActingMember | None:
    """Return the member with this user id, with the present role, None if there is none."""
    user = None if user_id is None else reader.user(user_id)
    role = None if user is None else reader.role(organisation, user.rowid)
    return None if user is None or role is None else ActingMember(user.rowid, role.id, role.permissions)


def role_named(reader: AccountReader, organisation: int, role: Role) -> GrantedRole:
    """Return the organisation's role with this id. Raises Invalid at `/role` if there is none."""
    found = reader.granted_role(organisation, role)
    if found is None:
        raise Invalid(Problem("/role", "unknown", "The organisation has no role with this id."))
    return found


def check_grant(actor: ActingMember | None, role: GrantedRole) -> None:
    """Check that the actor may give a role to others: directly, in an invitation, or by a mapping of claims.

    Raises Forbidden: `permission_denied` without the permission to manage members, `owner_protected`, and
    `permission_not_held` if the role has permissions that the actor lacks.
    """
    if actor is None:
        return
    _check_manages(actor)
    if role.id == "owner" and actor.role != "owner":
        raise Forbidden("Only an owner can appoint another owner.", code="owner_protected")
    check_holds(actor, role.permissions, "give")


def check_reach(actor: ActingMember | None, target: Member, what: str) -> None:
    """Check that the actor may act on another member's role, account or sessions.

    An actor who lacks a permission of the member could gain it by the member's account, so that is refused.

    Args:
        what: the refused action on an owner, as in "Only an owner can …".

    Raises Forbidden: `owner_protected` or `permission_not_held`.
    """
    if actor is None or actor.user == target.user.rowid:
        return
    if target.role == "owner" and actor.role != "owner":
        raise Forbidden(f"Only an owner can {what}.", code="owner_protected")
    check_holds(actor, target.permissions, "act on a member with")


def check_holds(actor: ActingMember | None, permissions: Iterable[str], action: str) -> None:
    """Raise Forbidden (`permission_not_held`), naming the permissions that the actor lacks. `action` is the verb."""
    lacking = [] if actor is None else sorted({*permissions} - actor.permissions)
    if lacking:
        raise Forbidden(
            f"You can't {action} permissions that you do not have: {', '.join(lacking)}.",
            code="permission_not_held",
        )


def _check_manages(actor: ActingMember) -> None:
    if MANAGE not in actor.permissions:
        raise Forbidden(f"This needs the permission {MANAGE}.")


def check_change(actor: ActingMember | None, target: Member, role: GrantedRole | None, owners: int) -> None:
    """Check that the actor may change the target's role, or end the membership if `role` is None.

    Every member may leave. Only an owner can give up that owner's role, and the last owner cannot. A member with
    permissions that the actor lacks is out of the actor's reach.

    Args:
        owners: number of owners of the organisation.

    Raises:
        Forbidden: the actor lacks a permission (`permission_denied`, `owner_protected`, `permission_not_held`).
        Conflict: the organisation would be left without an owner (`last_owner`).
    """
    oneself = actor is not None and actor.user == target.user.rowid
    if role is not None:
        check_grant(actor, role)
    elif actor is not None and not oneself:
        _check_manages(actor)
    if target.role != "owner":
        if actor is not None and not oneself:
            check_holds(actor, target.permissions, "change or remove a member with")
        return
    if role is not None and role.id == "owner":
        return
    if actor is not None and not oneself:
        raise Forbidden("An owner can only be changed by that owner.", code="owner_protected")
    if owners == 1:
        raise Conflict(
            "An organisation keeps its last owner; make another member an owner first.", code="last_owner"
        )


class RoleScope(Struct, frozen=True):
    """The organisation of a permission query: by its id, else by a project, else the user's first one (contract 4.8)."""

    organisation_id: str | None
    project_id: str | None


def role_at(reader: OrganisationReader, user: User, scope: RoleScope) -> GrantedRole:
    """Return the user's role in the scope.

    Raises NotFound if the scope has no organisation of which the user is a member. Organisations and projects of others
    are treated as missing.
    """
    if scope.organisation_id is not None:
        return membership_of(reader, user, scope.organisation_id)[1]
    if scope.project_id is not None:
        return project_of(reader, user, scope.project_id)[1]
    first = reader.memberships(user.rowid, (-1, -1), 1)
    if not first:
        raise NotFound("The user is no member of any organisation.", code="role_not_found")
    return GrantedRole(first[0].role, first[0].permissions)


def membership_of(
    reader: OrganisationReader, user: User, organisation_id: str
) -> tuple[Organisation, GrantedRole]:
    """Return an organisation and the user's role in it.

    Raises NotFound if the user is not a member.
    """
    organisation = reader.organisation(organisation_id)
    role = None if organisation is None else reader.role(organisation.rowid, user.rowid)
    if organisation is None or role is None:
        raise NotFound("There is no such organisation.", code="organisation_not_found")
    return organisation, role


def project_of(reader: OrganisationReader, user: User, project_id: str) -> tuple[Project, GrantedRole]:
    """Return a project and the user's role in its organisation.

    Raises NotFound if the user is not a member.
    """
    project = reader.project(project_id)
    role = None if project is None else reader.role(project.organisation, user.rowid)
    if project is None or role is None:
        raise NotFound("There is no such project.", code="project_not_found")
    return project, role


_UNKNOWN = "There is no such user in this project."
_VIEWER = "{} can't work on conversations and tickets; give them a role with the permission {} first."


def assignable_user(
    reader: AccountReader, organisation: int, user_id: str, pointer: str
) -> tuple[str, None] | tuple[None, Problem]:
    """Return the name of a user to whom work can be assigned, or the problem at `pointer`: `unknown` or `viewer`."""
    name = reader.member_name(organisation, user_id)
    if name is None:
        return None, Problem(pointer, "unknown", _UNKNOWN)
    if reader.assignee_name(organisation, user_id) is None:
        return None, Problem(pointer, "viewer", _VIEWER.format(name, WORK))
    return name, None
