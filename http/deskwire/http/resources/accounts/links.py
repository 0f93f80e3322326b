"""One-time links: inspection and use, and links for a new password by mail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Struct
from pydantic import Field

from deskwire.engine.accounts.identity.password_strength import hash_chosen
from deskwire.engine.accounts.invitations import (
    Invitation,
    accept_with_account,
    accept_with_new_account,
    invitation_of,
    make_first_owner,
)
from deskwire.engine.accounts.links import (
    OneTimeLink,
    hash_link_token,
    open_link,
    password_link_owner,
    use_password_link,
)
from deskwire.engine.accounts.members import NewAccount
from deskwire.engine.accounts.people import Organisation, User
from deskwire.engine.accounts.projects import make_project
from deskwire.engine.audit.audited_changes import signed_in
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.errors import Forbidden, Invalid, Problem
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.limits.network import remote_network
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Reader, Store, Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import MEDIUM, OPEN, Routes
from deskwire.http.resources.accounts import tokens
from deskwire.http.resources.accounts.projects import CreateProjectRequest, new_project
from deskwire.http.resources.accounts.requests import PASSWORD_MIN, Email, GivenPassword, Name
from deskwire.http.resources.accounts.sessions import (
    CARRIED,
    ProvedSignIn,
    complete_sign_in,
    oidc_methods,
)
from deskwire.http.resources.accounts.sign_ins import record_failure
from deskwire.http.resources.accounts.tokens import check_password
from deskwire.http.schemas import people as shapes

routes = Routes(tokens.routes.tag, OPEN)

Token = Annotated[str, Field(min_length=1, max_length=200)]


class InspectLinkRequest(Body):
    """The token of a link, which is the fragment of its URL."""

    token: Token


class UseLinkRequest(InspectLinkRequest):
    """The token of a link, and the password.

    The password is a new one, except for an invitation of an address that has an account: then it is the account's own.
    `name` is for a new account, `email` and `organisationName` for the first one.
    """

    password: GivenPassword
    name: Name | None = None
    email: Email | None = None
    organisation_name: Name | None = None


class PasswordLinkRequest(Body):
    """The address of the account whose owner has forgotten the password."""

    email: Annotated[str, Field(min_length=3, max_length=320)]


class _Opened(Struct, frozen=True):
    """A link that can be used, with its objects.

    Args:
        user: the existing account of an invitation or of a new password.
    """

    link: OneTimeLink
    invitation: Invitation | None = None
    organisation: Organisation | None = None
    user: User | None = None


@routes.add(
    "POST",
    "/auth/links/inspect",
    operation_id="inspectLink",
    body=InspectLinkRequest,
    answer=shapes.InspectedLink,
    errors=("inviter_not_permitted", "link_ended"),
    unrecorded="It changes nothing.",
)
async def inspect(call: Call[InspectLinkRequest, Query]) -> Answer:
    """Look at a one-time link without using it: its purpose, and the inputs that its use needs."""
    opened = await _opened(call, call.body.token)
    invitation, user = opened.invitation, opened.user
    new = user is None
    provider_only = invitation is not None and user is not None and user.password_hash is None
    return {
        "purpose": opened.link.purpose,
        "email": invitation.email if invitation is not None else None if user is None else user.email,
        "organisationName": None if opened.organisation is None else opened.organisation.name,
        "name": None if invitation is None or not new else invitation.name,
        "nameNeeded": new,
        "account": invitation is not None and user is not None,
        "methods": {
            "password": call.services.sign_in and not provider_only,
            "oidc": oidc_methods(call.services),
        },
    }


@routes.add(
    "POST",
    "/auth/links/use",
    operation_id="useLink",
    body=UseLinkRequest,
    limit=MEDIUM,
    answer=shapes.VisitorSession,
    errors=(
        *tokens.REFUSALS,
        "already_member",
        "cross_site_request",
        "email_in_use",
        "inviter_not_permitted",
        "link_ended",
    ),
    records=(
        "account.created",
        "account.password_changed",
        "account.sessions_ended",
        "invitation.accepted",
        "member.added",
        "organisation.created",
        "project.created",
        "sign_in.succeeded",
        "sign_in.failed",
        "sign_in.new_device",
    ),
)
async def use(call: Call[UseLinkRequest, Query]) -> Answer:
    """Use a one-time link: accept an invitation, choose a new password, or create the first account. Then sign in.

    The response sets the cookie of a session, like `POST /v3/auth/session`. A link works once. A user with a second factor
    accepts an invitation when `POST /v3/auth/session/factor` has proved it.
    """
    services, body = call.services, call.body
    if any(call.incoming.headers.get(name) is not None for name in ("sec-fetch-site", "origin")):
        services.sessions.require_own_page(call.incoming)
    if not services.sign_in:
        raise Forbidden(
            "Users of this installation sign in with an identity provider.", code="sign_in_disabled"
        )
    opened = await _opened(call, body.token)
    if opened.link.purpose == "password":
        user = await _choose_password(call, opened)
    elif opened.link.purpose == "setUp":
        user = await _set_up(call)
    elif opened.user is None:
        user = await _join_newly(call, opened)
    else:
        user = await _checked_account(call, opened.user)
        # A user with a second factor joins when the factor is proved, as everything else waits for it.
        carried = (_JOIN, {"link": hash_link_token(body.token).hex()})
        sign_in = ProvedSignIn("password", carried=carried)
        return await complete_sign_in(call, user, sign_in, signed_in(user, "password"))
    method = "passwordLink" if opened.link.purpose == "password" else opened.link.purpose
    return await complete_sign_in(call, user, ProvedSignIn("invitation"), signed_in(user, method))


@routes.add(
    "POST",
    "/auth/password-links",
    operation_id="requestPasswordLink",
    body=PasswordLinkRequest,
    answer=shapes.LinkRequested,
    errors=("mail_disabled", "too_many_sign_ins"),
    unrecorded="The queue of mails records the link when it makes one, so that the call is the same for every address.",
)
async def request_password_link(call: Call[PasswordLinkRequest, Query]) -> Answer:
    """Request a mail with a one-time link for a new password, which is valid for an hour.

    The response is the same for addresses without an account, and comes as fast. An address gets up to three mails an hour.
    """
    services, email = call.services, call.body.email
    mailer = services.mailer
    if mailer is None or not services.sign_in:
        raise Forbidden(
            "This installation sends no mails; ask a manager of your organisation's members for a link.",
            code="mail_disabled",
        )
    if services.link_requests.allows(email, remote_network(call.address)):
        now = services.clock()
        await services.store.write(lambda tx: mailer.request_password(tx, email, now))
    return {"accepted": True}


async def _opened(call: Call[Any, Any], token: str) -> _Opened:
    """Return a link that can be used, with its objects. Raises LinkEnded, and Forbidden (`inviter_not_permitted`)."""
    now = call.services.clock()

    def find(reader: Reader) -> _Opened:
        link = open_link(reader, token, now)
        if link.purpose == "password":
            return _Opened(link, user=password_link_owner(reader, link))
        if link.purpose == "setUp":
            return _Opened(link)
        invitation = invitation_of(reader, link, now)
        organisation = reader.organisation_of(invitation.organisation)
        return _Opened(link, invitation, organisation, reader.user_by_email(invitation.email))

    return await call.services.store.read(find)


async def _choose_password(call: Call[UseLinkRequest, Query], opened: _Opened) -> User:
    owner = opened.user
    assert owner is not None, "a link for a password has an account"
    password_hash, now = await _hashed(call, owner.email, owner.name), call.services.clock()
    token = call.body.token
    store = call.signed(owner).services.store
    return await store.write(lambda tx: use_password_link(tx, token, password_hash, now))


async def _join_newly(call: Call[UseLinkRequest, Query], opened: _Opened) -> User:
    """Create the account of an invited person."""
    invitation, body, now = opened.invitation, call.body, call.services.clock()
    assert invitation is not None, "this link accepts an invitation"
    name = body.name or invitation.name
    if name is None:
        raise Invalid(Problem("/name", "required", "A new account needs a name."))
    password_hash = await _hashed(call, invitation.email, name)
    newcomer = NewAccount(new_id("usr", now), invitation.email, name, password_hash, temporary=False)
    store = _store_of(call, newcomer)
    user, _ = await store.write(lambda tx: accept_with_new_account(tx, body.token, newcomer, now))
    return user


async def _checked_account(call: Call[UseLinkRequest, Query], account: User) -> User:
    """Return the existing account of an invitation, after a check of the account's own password."""
    user = await check_password(call, account.email, account, call.body.password)
    if user.password_temporary:
        # A manager of another organisation may know this password.
        refusal = Forbidden(
            "This is a one-time password: sign in with it and choose your own one, then open this link again.",
            code="password_change_required",
        )
        await record_failure(call, user, refusal)
        raise refusal
    return user


def _join(tx: Transaction, user: User, content: Mapping[str, Any], at: int) -> None:
    """Make a user who has just signed in a member, by the link whose hash is in `content`."""
    accept_with_account(tx, bytes.fromhex(content["link"]), user, at)


_JOIN: Final = "join"
CARRIED[_JOIN] = _join


async def _set_up(call: Call[UseLinkRequest, Query]) -> User:
    """Create the first account, its organisation and a first project."""
    body, now = call.body, call.services.clock()
    missing = [name for name, given in (("name", body.name), ("email", body.email)) if given is None]
    if missing or body.name is None or body.email is None:
        raise Invalid(*(Problem(f"/{name}", "required", "The first account needs this.") for name in missing))
    organisation = body.organisation_name or body.email.rpartition("@")[2]
    password_hash = await _hashed(call, body.email, body.name)
    newcomer = NewAccount(new_id("usr", now), body.email, body.name, password_hash, temporary=False)

    def make(tx: Transaction) -> User:
        user, made = make_first_owner(tx, body.token, newcomer, organisation, now)
        make_project(
            tx,
            made.rowid,
            new_project(CreateProjectRequest.model_validate({"name": organisation}), made, now),
        )
        return user

    return await _store_of(call, newcomer).write(make)


def _store_of(call: Call[Any, Any], newcomer: NewAccount) -> Store:
    """Return a store that writes in the name of the account that is about to be created."""
    return call.services.signed(replace(call.origin, actor=Actor("user", newcomer.id))).store


async def _hashed(call: Call[UseLinkRequest, Query], *about: str) -> str:
    """Return the hash of a chosen password. Raises Invalid (`too_guessable`), or Unavailable (`sign_in_busy`)."""
    services, password = call.services, call.body.password
    if len(password) < PASSWORD_MIN:
        raise Invalid(
            Problem("/password", "too_short", f"A password has at least {PASSWORD_MIN} characters.")
        )
    network = remote_network(call.address)
    return await services.hashing.run(network, hash_chosen, services.passwords, password, about, "/password")
