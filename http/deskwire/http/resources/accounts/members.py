"""Members of an organisation and their roles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from deskwire.engine.accounts import members
from deskwire.engine.accounts.members import NewAccount, member_view
from deskwire.engine.accounts.people import Member
from deskwire.engine.accounts.ports import OrganisationReader, OrganisationTransaction
from deskwire.engine.accounts.roles import MANAGE, ActingMember
from deskwire.engine.accounts.server_keys import random_base62
from deskwire.engine.core.clock import iso_or_none
from deskwire.engine.core.errors import Forbidden, NotFound
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import InlineQuery
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.pagination import page
from deskwire.http.api.routing import Routes, Tag, fresh, in_organisation
from deskwire.http.resources.accounts.organisations import ONE as ORGANISATION
from deskwire.http.resources.accounts.requests import (
    AccountList,
    AddMemberRequest,
    ChangeMemberRequest,
    check_role,
)
from deskwire.http.resources.accounts.tokens import hash_password
from deskwire.http.schemas import people as shapes
from deskwire.http.schemas.base import Deleted, page_of

routes = Routes(
    Tag("Members", "Manage the members of an organisation and their roles."), in_organisation(MANAGE)
)
_ANY = in_organisation()
_CHANGE = fresh(in_organisation(MANAGE))
_ALL = f"{ORGANISATION}/members"
_ONE = f"{_ALL}/<user_id>"
ONE_TIME_BYTES = 16
_MASKED = "…"


@routes.add("GET", _ALL, _ANY, operation_id="listMembers", query=AccountList, answer=page_of(shapes.Member))
async def list_members(call: Call[Body, AccountList]) -> Answer:
    """List the members of an organisation, oldest account first."""
    organisation, query = call.organisation.rowid, call.query
    after = query.row or 0
    listed = await call.services.store.read(lambda reader: reader.members(organisation, after, query.rows))
    return page(query, listed, member_view, lambda member: member.user.rowid)


@routes.add("GET", _ONE, _ANY, operation_id="getMember", answer=shapes.Member)
async def get_member(call: Call[Body, Query]) -> Answer:
    """Fetch a member."""

    def find(reader: OrganisationReader) -> Member:
        member = reader.organisation_member(call.organisation.rowid, call.path["user_id"])
        if member is None:
            raise NotFound("The organisation has no such member.", code="member_not_found")
        return member

    return member_view(await call.services.store.read(InlineQuery(find)))


@routes.add(
    "POST",
    _ALL,
    _CHANGE,
    operation_id="addMember",
    tells="members",
    body=AddMemberRequest,
    answer=shapes.AddedMember,
    errors=(
        "already_member",
        "email_in_use",
        "owner_protected",
        "permission_not_held",
        "sign_in_busy",
        "too_many_members",
    ),
    idempotent=True,
    further=(check_role,),
    records=(
        "account.created",
        "account.changed",
        "account.factors_reset",
        "account.password_changed",
        "identity.unlinked",
        "member.added",
    ),
)
async def add_member(call: Call[AddMemberRequest, Query]) -> Answer:
    """Create an account for an e-mail address and add it as a member. The response shows the one-time password once.

    The response to a repeated request with the same `Idempotency-Key` has `…` instead of the password.
    """
    with call.services.rate_limits.adding_member(call.organisation.rowid):
        return await _add(call)


async def _add(call: Call[AddMemberRequest, Query]) -> Answer:
    services, body, now = call.services, call.body, call.services.clock()
    password = random_base62(ONE_TIME_BYTES) if services.sign_in else None
    password_hash = None if password is None else await hash_password(services, password)
    newcomer = NewAccount(new_id("usr", now), body.email, body.name or body.email, password_hash)
    organisation, actor = call.organisation.rowid, acting_member(call)

    def add(tx: OrganisationTransaction) -> Member:
        return members.add_new_member(tx, actor(tx), organisation, newcomer, body.role, now)

    def kept(member: Member) -> Mapping[str, Any]:
        return _with_password(call, member, None if password is None else _MASKED)

    return _with_password(call, await services.store.write(call.around(add, kept, newcomer.id)), password)


@routes.add(
    "PATCH",
    _ONE,
    _CHANGE,
    operation_id="changeMember",
    tells="members",
    body=ChangeMemberRequest,
    answer=shapes.Member,
    errors=("last_owner", "owner_protected", "permission_not_held"),
    further=(check_role,),
    records=("member.role_changed",),
)
async def change_member(call: Call[ChangeMemberRequest, Query]) -> Answer:
    """Change the role of a member. Only an owner can grant or withdraw the role of owner.

    You can only give a role whose permissions you have, to a member whose permissions you have.
    """
    organisation, user_id, role, actor = (
        call.organisation.rowid,
        call.path["user_id"],
        call.body.role,
        acting_member(call),
    )
    member = await call.services.store.write(
        lambda tx: members.change_role(tx, actor(tx), organisation, user_id, role)
    )
    return member_view(member)


@routes.add(
    "DELETE",
    _ONE,
    fresh(_ANY),
    operation_id="removeMember",
    tells="members",
    answer=Deleted,
    errors=("last_owner", "owner_protected", "permission_denied", "permission_not_held"),
    records=("member.removed",),
)
async def remove_member(call: Call[Body, Query]) -> Answer:
    """Remove a member from the organisation. Without the permission `members.manage`, users can only remove themselves.

    The account remains.
    """
    organisation, user_id, actor = call.organisation.rowid, call.path["user_id"], acting_member(call)
    removed = await call.services.store.write(
        lambda tx: members.remove_member(tx, actor(tx), organisation, user_id)
    )
    return {"id": removed.user.id, "deleted": True}


@routes.add(
    "DELETE",
    f"{_ONE}/sessions",
    _CHANGE,
    operation_id="endMemberSessions",
    answer=shapes.SessionsEnded,
    errors=("owner_protected", "permission_not_held"),
    records=("account.sessions_ended",),
)
async def end_sessions(call: Call[Body, Query]) -> Answer:
    """End all sessions of a member, for any organisation. An owner's sessions can only be ended by an owner.

    Access tokens stay until they expire.
    """
    organisation, user_id, actor = call.organisation.rowid, call.path["user_id"], acting_member(call)
    ended = await call.services.store.write(
        lambda tx: members.end_sessions(tx, actor(tx), organisation, user_id)
    )
    return {"ended": ended}


@routes.add(
    "POST",
    f"{_ONE}/password",
    _CHANGE,
    operation_id="renewMemberPassword",
    answer=shapes.AddedMember,
    errors=(
        "member_elsewhere",
        "own_password",
        "owner_protected",
        "permission_not_held",
        "sign_in_busy",
        "sign_in_disabled",
    ),
    records=("account.password_changed",),
)
async def renew_password(call: Call[Body, Query]) -> Answer:
    """Give a member who has forgotten the password a one-time password. The response shows it once.

    All sessions and access tokens of the member end. For an account that also belongs to another organisation, only the operator can do this.
    """
    services, organisation, user_id, actor = (
        call.services,
        call.organisation.rowid,
        call.path["user_id"],
        acting_member(call),
    )
    if not services.sign_in:
        raise Forbidden(
            "Users of this installation sign in with an identity provider.", code="sign_in_disabled"
        )
    now = services.clock()
    password = random_base62(ONE_TIME_BYTES)
    password_hash = await hash_password(services, password)
    member = await services.store.write(
        lambda tx: members.renew_password(tx, actor(tx), organisation, user_id, password_hash, now)
    )
    return _with_password(call, member, password)


def _with_password(call: Call[Any, Any], member: Member, password: str | None) -> Mapping[str, Any]:
    """Return the member object with a one-time password and its end."""
    ends_at = call.services.passwords.ends_at(member.user)
    return {**member_view(member), "password": password, "passwordEndsAt": iso_or_none(ends_at)}


def acting_member(call: Call[Any, Any]) -> Callable[[OrganisationTransaction], ActingMember]:
    """Return a query for the acting member with the current role, which may have changed since the call was checked.

    The role stays until the transaction ends, because other nodes wait with changes of roles and members.
    """

    def find(tx: OrganisationTransaction) -> ActingMember:
        tx.lock_across_nodes()
        role = tx.role(call.organisation.rowid, call.user.rowid)
        if role is None:
            raise NotFound("There is no such organisation.", code="organisation_not_found")
        return ActingMember(call.user.rowid, role.id, role.permissions)

    return find
