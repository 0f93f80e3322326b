"""Members and their accounts: creation, changes, removal. Each function is a job for one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import READ, WORK, Member, Membership, Organisation, Role, User
from deskwire.engine.accounts.ports import OrganisationReader, OrganisationTransaction
from deskwire.engine.accounts.roles import ActingMember, check_change, check_grant, check_reach, role_named
from deskwire.engine.accounts.sessions import SessionLifetime, SessionTransaction
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import Conflict, Forbidden, Invalid, NotFound, Problem
from deskwire.engine.core.values import replace


class SessionsTransaction(OrganisationTransaction, SessionTransaction, Protocol):
    """Changes of members and of their sessions."""


_ALL: Final = (1 << 63) - 1


class NewAccount(Struct, frozen=True):
    """The data of a new account.

    Args:
        password_hash: hash of a one-time password, None if an identity provider signs users in.
        temporary: whether the password must be replaced at the first sign-in.
    """

    id: str
    email: str
    name: str
    password_hash: str | None
    temporary: bool = True


def member_view(member: Member) -> dict[str, Any]:
    """Return the member object."""
    user = member.user
    return {
        "id": user.id,
        "email": user.email,
        "name": user.name,
        "role": member.role,
        "assignable": WORK in member.permissions,
        "mentionable": READ in member.permissions,
        "joinedAt": iso(member.joined_at),
    }


def membership_view(membership: Membership) -> dict[str, Any]:
    """Return the organisation object for one of its members."""
    return organisation_view(membership.organisation, membership.role)


def organisation_view(organisation: Organisation, role: Role) -> dict[str, Any]:
    """Return the organisation object with the caller's role in it."""
    return {
        "id": organisation.id,
        "name": organisation.name,
        "role": role,
        "sessionIdleS": organisation.session_idle_s,
        "sessionMaxS": organisation.session_max_s,
        "requireSecondFactor": bool(organisation.second_factor),
        "createdAt": iso(organisation.created_at),
    }


def user_view(user: User) -> dict[str, Any]:
    """Return the user object."""
    return {"id": user.id, "email": user.email, "name": user.name, "createdAt": iso(user.created_at)}


def make_user(tx: OrganisationTransaction, newcomer: NewAccount, at: int) -> User:
    """Create an account. Raises Conflict (`email_in_use`)."""
    if tx.similar_account_exists(newcomer.email):
        raise Conflict(
            "There is an account with this e-mail address, or one that reads like it.", code="email_in_use"
        )
    user = tx.insert_user(newcomer.id, newcomer.email, newcomer.name, newcomer.password_hash, at)
    temporary = newcomer.temporary and newcomer.password_hash is not None
    user = replace(user, password_temporary=temporary, password_made_at=at if temporary else None)
    tx.save_user(user)
    return user


def add_new_member(
    tx: OrganisationTransaction,
    actor: ActingMember,
    organisation: int,
    newcomer: NewAccount,
    role: Role,
    at: int,
) -> Member:
    """Create an account and add it as a member.

    An existing account without memberships is reset: it gets the new password and name, and loses its second factors and
    identities, so that a former holder cannot sign in. An account of another organisation is refused because its holder there may not own the address. The operator can
    add it (`add_existing_user`).

    Raises:
        Forbidden: the actor may not grant the role.
        Conflict: the account is a member already (`already_member`), or of another organisation (`email_in_use`).
    """
    check_grant(actor, role_named(tx, organisation, role))
    user = tx.user_by_email(newcomer.email)
    if user is None:
        return join(tx, organisation, make_user(tx, newcomer, at), role, at)
    if tx.role(organisation, user.rowid) is not None:
        raise Conflict("This user is a member already.", code="already_member")
    if tx.memberships(user.rowid, (-1, -1), 1):
        raise Conflict(
            "There is an account with this e-mail address; the operator can add it.", code="email_in_use"
        )
    user = with_password(user, newcomer.password_hash, at, temporary=newcomer.temporary)
    user = replace(user, name=newcomer.name, home=organisation)
    tx.save_user(user)
    tx.forget_ways_to_sign_in(user.rowid)
    return join(tx, organisation, user, role, at)


PasswordHandover = Literal["new", "keep"]
"""Whether an account gets a new password or keeps its own when it joins an organisation other than its home."""


def add_existing_user(
    tx: OrganisationTransaction,
    organisation: int,
    user: User,
    role: Role,
    handover: PasswordHandover | None,
    password_hash: str | None,
    at: int,
) -> Member:
    """Add an existing account as a member, for the operator (ADR 15).

    Admins of its home organisation may know its password and could sign in with it, or by a passkey that they have added. So an
    account from another home gets a one-time password, all its tokens, second factors and identities end, and this organisation
    becomes its home.

    Args:
        handover: `new`, or `keep` if the operator is sure that only the owner of the address knows the password.
        password_hash: hash of the one-time password, if the handover is `new`.

    Raises Conflict: `already_member`, or `other_home` if a handover is needed and none is given.
    """
    if tx.role(organisation, user.rowid) is None and user.home not in (None, organisation):
        if handover is None:
            home = tx.organisation_of(user.home)
            raise Conflict(
                f"{user.email} is an account of {home.name}, whose people may know its password.",
                code="other_home",
            )
        if handover == "new":
            user = replace(with_password(user, password_hash, at, temporary=True), home=organisation)
            tx.save_user(user)
            tx.forget_ways_to_sign_in(user.rowid)
    return join(tx, organisation, user, role, at)


def join(tx: OrganisationTransaction, organisation: int, user: User, role: Role, at: int) -> Member:
    """Add a user as a member.

    A user without a home gets this one. Raises Conflict (`already_member`), and Invalid for an unknown role.
    """
    tx.lock_across_nodes()  # so that the role is not deleted in the meantime
    granted = role_named(tx, organisation, role)
    if tx.role(organisation, user.rowid) is not None:
        raise Conflict("This user is a member already.", code="already_member")
    if user.home is None:
        user = replace(user, home=organisation)
        tx.save_user(user)
    tx.insert_membership(organisation, user.rowid, role, at)
    return Member(user, role, at, granted.permissions)


def change_role(
    tx: OrganisationTransaction, actor: ActingMember | None, organisation: int, user_id: str, role: Role
) -> Member:
    """Change the role of a member. Raises NotFound, Invalid for an unknown role, and the errors of `check_change`."""
    tx.lock_across_nodes()
    target, granted = member_of(tx, organisation, user_id), role_named(tx, organisation, role)
    check_change(actor, target, granted, tx.owners(organisation))
    tx.set_role(organisation, target.user.rowid, role)
    return replace(target, role=role, permissions=granted.permissions)


def remove_member(
    tx: OrganisationTransaction, actor: ActingMember | None, organisation: int, user_id: str
) -> Member:
    """End a membership but keep the account.

    Raises NotFound, and the errors of `check_change`.
    """
    tx.lock_across_nodes()
    target = member_of(tx, organisation, user_id)
    check_change(actor, target, None, tx.owners(organisation))
    tx.delete_membership(organisation, target.user.rowid)
    return target


def end_sessions(tx: SessionsTransaction, actor: ActingMember, organisation: int, user_id: str) -> int:
    """End all sessions of a member. Return the number of ended sessions.

    Raises NotFound, and the errors of `check_reach`.
    """
    return tx.end_sessions(reachable_member(tx, actor, organisation, user_id).user.rowid, None)


def reachable_member(
    reader: OrganisationReader, actor: ActingMember, organisation: int, user_id: str
) -> Member:
    """Return a member whose sessions and access tokens the actor may end.

    Raises NotFound, and the errors of `check_reach`.
    """
    target = member_of(reader, organisation, user_id)
    check_reach(actor, target, "end an owner's sessions and access tokens")
    return target


def change_organisation(
    tx: SessionsTransaction,
    organisation_id: str,
    changes: Mapping[str, Any],
    installation: SessionLifetime,
    now: int,
) -> Organisation:
    """Change fields of an organisation, and return it. Sessions of members that have passed the new limits end.

    Raises:
        NotFound: the organisation has just been deleted.
        Invalid: a limit is longer than the installation's.
    """
    _check_limits(changes, installation)
    before = tx.organisation(organisation_id)
    if before is None:
        raise NotFound("There is no such organisation.", code="organisation_not_found")
    after = replace(before, **changes)
    if after != before:
        tx.save_organisation(after)
        tx.end_sessions_over_limits(after.rowid, now)
    return after


def _check_limits(changes: Mapping[str, Any], installation: SessionLifetime) -> None:
    """Raise Invalid for limits of sessions that are longer than the installation's, and so would not apply."""
    problems = []
    for field, pointer, longest in (
        ("session_idle_s", "/sessionIdleS", installation.idle),
        ("session_max_s", "/sessionMaxS", installation.longest),
    ):
        limit = changes.get(field)
        if limit is not None and limit * 1000 > longest:
            message = f"The limit of the installation is {longest // 1000} seconds; null leaves it as it is."
            problems.append(Problem(pointer, "too_long", message))
    if problems:
        raise Invalid(*problems)


def renew_password(
    tx: OrganisationTransaction,
    actor: ActingMember,
    organisation: int,
    user_id: str,
    password_hash: str,
    at: int,
) -> Member:
    """Give a member a one-time password, which ends all sessions and tokens.

    Return the member.

    Raises:
        NotFound: there is no such member.
        Forbidden: the member is the actor (`own_password`), an owner (`owner_protected`), or has permissions that the
            actor lacks (`permission_not_held`).
        Conflict: the account has another home or is a member of another organisation, too (`member_elsewhere`).
    """
    target = check_password_reset(tx, actor, organisation, user_id)
    user = with_password(target.user, password_hash, at, temporary=True)
    tx.save_user(user)
    return replace(target, user=user)


def check_password_reset(
    reader: OrganisationReader, actor: ActingMember, organisation: int, user_id: str
) -> Member:
    """Return a member to whom the actor may give a new password, or a link for one.

    The account must belong to this organisation alone because the actor could sign in with the new password.

    Raises the errors of `renew_password`.
    """
    target = member_of(reader, organisation, user_id)
    check_reach(actor, target, "give an owner a new password")
    if target.user.rowid == actor.user:
        raise Forbidden("Change your own password by the present one.", code="own_password")
    if (
        target.user.home not in (None, organisation)
        or len(reader.memberships(target.user.rowid, (-1, -1), 2)) > 1
    ):
        raise Conflict(
            "The account belongs to another organisation, too; the operator can give it a new password.",
            code="member_elsewhere",
        )
    return target


def delete_user(tx: OrganisationTransaction, user: User, at: int) -> None:
    """Delete an account with its memberships.

    The user's messages stay, under the name at that time (ADR 21).

    Raises Conflict (`last_owner`), with nothing changed, if an organisation would be left without an owner.
    """
    tx.lock_across_nodes()
    memberships = tx.memberships(user.rowid, (-1, -1), _ALL)
    for membership in memberships:
        member = Member(user, membership.role, membership.joined_at, membership.permissions)
        check_change(None, member, None, tx.owners(membership.organisation.rowid))
    for membership in memberships:
        tx.delete_membership(membership.organisation.rowid, user.rowid)
    tx.delete_user(user.rowid, at)


def member_of(reader: OrganisationReader, organisation: int, user_id: str) -> Member:
    """Return the member with this user id. Raises NotFound (`member_not_found`)."""
    member = reader.organisation_member(organisation, user_id)
    if member is None:
        raise NotFound("The organisation has no such member.", code="member_not_found")
    return member


def with_password(user: User, password_hash: str | None, at: int, *, temporary: bool = False) -> User:
    """Return the user with a password set at `at` (ms). It ends all tokens issued before."""
    temporary = temporary and password_hash is not None
    return replace(
        user,
        password_hash=password_hash,
        password_temporary=temporary,
        password_made_at=at if temporary else None,
        generation=user.generation + 1,
    )
