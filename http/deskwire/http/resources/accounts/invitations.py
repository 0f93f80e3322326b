"""Invitations to an organisation, and links by which its members choose a new password."""

from __future__ import annotations

from typing import Any, Final

from deskwire.engine.accounts.invitations import (
    Invitation,
    create_invitation,
    invitation_view,
    renew_invitation,
    revoke_invitation,
)
from deskwire.engine.accounts.links import (
    LINK_LIFETIME_MS,
    OneTimeLink,
    hash_link_token,
    link_url,
    make_password_link,
    new_link_token,
)
from deskwire.engine.accounts.roles import MANAGE
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import Forbidden
from deskwire.engine.core.ids import new_id
from deskwire.engine.ports import Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.pagination import page
from deskwire.http.api.routing import Routes, fresh, in_organisation
from deskwire.http.resources.accounts import members
from deskwire.http.resources.accounts.members import acting_member
from deskwire.http.resources.accounts.organisations import ONE as ORGANISATION
from deskwire.http.resources.accounts.requests import AccountList, AddMemberRequest, check_role
from deskwire.http.schemas import people as shapes
from deskwire.http.schemas.base import Deleted, page_of

routes = Routes(members.routes.tag, fresh(in_organisation(MANAGE)))

_ALL: Final = f"{ORGANISATION}/invitations"
_ONE: Final = f"{_ALL}/<invitation_id>"
_NEWEST: Final = (1 << 63) - 1


@routes.add(
    "GET",
    _ALL,
    in_organisation(MANAGE),
    operation_id="listInvitations",
    query=AccountList,
    answer=page_of(shapes.Invitation),
)
async def list_invitations(call: Call[Body, AccountList]) -> Answer:
    """List the open invitations of an organisation, newest first, with the state of their mails.

    An expired invitation stays in the list for 30 days.
    """
    organisation, query = call.organisation.rowid, call.query
    before = _NEWEST if query.row is None else query.row
    found = await call.services.store.read(
        lambda reader: reader.invitations(organisation, before, query.rows)
    )
    return page(query, found, invitation_view, lambda each: each.rowid)


@routes.add(
    "POST",
    _ALL,
    operation_id="createInvitation",
    tells="members",
    body=AddMemberRequest,
    answer=shapes.Invitation,
    further=(check_role,),
    errors=(
        "already_member",
        "email_in_use",
        "invitation_exists",
        "invitation_limit_reached",
        "owner_protected",
        "permission_not_held",
        "sign_in_disabled",
        "too_many_members",
    ),
    records=("invitation.created",),
)
async def create(call: Call[AddMemberRequest, Query]) -> Answer:
    """Invite a person to the organisation. The response shows the one-time link once, which is valid for 7 days.

    With mail settings, the link is also sent to the address. A new person chooses a password by the link. The owner of an
    existing account joins by the account's own password.
    """
    _require_own_passwords(call)
    services, body, now, actor = call.services, call.body, call.services.clock(), acting_member(call)
    token = new_link_token()
    invitation = Invitation(
        new_id("inv", now),
        call.organisation.rowid,
        body.email,
        body.name,
        body.role,
        call.user.id,
        now,
        now + LINK_LIFETIME_MS,
    )

    def store(tx: Transaction) -> Invitation:
        stored = create_invitation(tx, actor(tx), invitation, hash_link_token(token))
        return _mailed(call, tx, stored, token)

    with services.rate_limits.adding_member(call.organisation.rowid):
        stored = await services.store.write(store)
    return invitation_view(stored, link_url(services.sites.public_url, token))


@routes.add(
    "DELETE",
    _ONE,
    operation_id="revokeInvitation",
    tells="members",
    answer=Deleted,
    records=("invitation.revoked",),
)
async def revoke(call: Call[Body, Query]) -> Answer:
    """Revoke an invitation. Its link ends at once."""
    organisation, invitation_id = call.organisation.rowid, call.path["invitation_id"]
    await call.services.store.write(lambda tx: revoke_invitation(tx, organisation, invitation_id))
    return {"id": invitation_id, "deleted": True}


@routes.add(
    "POST",
    f"{_ONE}/renew",
    operation_id="renewInvitation",
    tells="members",
    answer=shapes.Invitation,
    errors=("owner_protected", "permission_not_held", "sign_in_disabled", "too_many_members"),
    records=("invitation.renewed",),
)
async def renew(call: Call[Body, Query]) -> Answer:
    """Give an invitation another link, valid for 7 days; the earlier one ends. The response shows it once.

    The caller becomes the inviter, whose right to give the role is checked when the invitation is accepted.
    """
    _require_own_passwords(call)
    services, now, actor, token = call.services, call.services.clock(), acting_member(call), new_link_token()
    organisation, invitation_id = call.organisation.rowid, call.path["invitation_id"]

    def store(tx: Transaction) -> Invitation:
        renewed = renew_invitation(tx, actor(tx), organisation, invitation_id, hash_link_token(token), now)
        return _mailed(call, tx, renewed, token)

    with services.rate_limits.adding_member(organisation):
        renewed = await services.store.write(store)
    return invitation_view(renewed, link_url(services.sites.public_url, token))


@routes.add(
    "POST",
    f"{ORGANISATION}/members/<user_id>/password-link",
    operation_id="createPasswordLink",
    answer=shapes.PasswordLink,
    errors=("member_elsewhere", "own_password", "owner_protected", "permission_not_held", "sign_in_disabled"),
    records=("account.password_link_created",),
)
async def create_password_link(call: Call[Body, Query]) -> Answer:
    """Create a one-time link by which a member who has forgotten the password chooses another one. The response shows it once.

    It is valid for 7 days, and replaces an earlier one. The password and all sessions stay until the link is used. For an
    account that also belongs to another organisation, only the operator can do this.
    """
    _require_own_passwords(call)
    services, now, actor, token = call.services, call.services.clock(), acting_member(call), new_link_token()
    organisation, user_id = call.organisation.rowid, call.path["user_id"]

    def store(tx: Transaction) -> OneTimeLink:
        return make_password_link(tx, actor(tx), organisation, user_id, hash_link_token(token), now)

    link = await services.store.write(store)
    return {"url": link_url(services.sites.public_url, token), "expiresAt": iso(link.expires_at)}


def _mailed(call: Call[Any, Any], tx: Transaction, invitation: Invitation, token: str) -> Invitation:
    """Queue the mail of an invitation, if there are mail settings. Return the invitation with the mail's state."""
    mailer = call.services.mailer
    if mailer is None:
        return invitation
    now = call.services.clock()
    mailer.invite(tx, invitation, call.organisation.name, call.user.name, token, now)
    stored = tx.invitation_with(invitation.rowid)
    assert stored is not None, "it was stored just now"
    return stored


def _require_own_passwords(call: Call[Any, Any]) -> None:
    """Raise Forbidden (`sign_in_disabled`) if users have no passwords here, so that a link has no use."""
    if not call.services.sign_in:
        raise Forbidden(
            "Users of this installation sign in with an identity provider.", code="sign_in_disabled"
        )
