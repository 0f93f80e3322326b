"""Signing in with e-mail address and password for an access token (decisions 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import structlog
from msgspec import Struct
from pydantic import Field

from deskwire.engine.accounts.access_tokens import Source, new_access_token
from deskwire.engine.accounts.credentials import TOKEN_LIFETIME_S, normal_password
from deskwire.engine.accounts.identity.password_strength import hash_chosen
from deskwire.engine.accounts.members import with_password
from deskwire.engine.accounts.people import User
from deskwire.engine.accounts.ports import OrganisationTransaction
from deskwire.engine.accounts.sessions import client_name
from deskwire.engine.audit.audited_changes import signed_in
from deskwire.engine.audit.trail import AuditEntry
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import (
    Conflict,
    Forbidden,
    Invalid,
    Problem,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from deskwire.engine.core.limits.network import remote_network
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import OPEN, Routes, Tag
from deskwire.http.api.services import Services
from deskwire.http.resources.accounts.codes import require_code
from deskwire.http.resources.accounts.requests import GivenCode, GivenPassword, NewPassword
from deskwire.http.resources.accounts.sign_ins import record_failure
from deskwire.http.schemas.people import AccessToken

log: Final = structlog.get_logger(__name__)

routes = Routes(Tag("Signing in", "Exchange an e-mail address and a password for an access token."), OPEN)


REFUSALS: Final = (
    "invalid_login",
    "too_many_sign_ins",
    "sign_in_busy",
    "sign_in_disabled",
    "password_change_required",
    "one_time_password_ended",
    "password_changed",
)
"""The error codes of a sign-in with a password."""


class SignInRequest(Body):
    """The credentials to sign in with. `newPassword` replaces the password, and is required with a one-time password."""

    email: Annotated[str, Field(min_length=3, max_length=320)]
    password: GivenPassword
    new_password: NewPassword | None = None


class IssueTokenRequest(SignInRequest):
    """The credentials to sign in with, as for a session.

    A user with a second factor also gives a `code` of the authenticator app, or a `recoveryCode`.
    """

    code: GivenCode | None = None
    recovery_code: GivenCode | None = None


@routes.add(
    "POST",
    "/auth/token",
    operation_id="issueToken",
    body=IssueTokenRequest,
    answer=AccessToken,
    errors=(*REFUSALS, "second_factor_required", "invalid_code"),
    records=(
        "sign_in.succeeded",
        "sign_in.failed",
        "account.password_changed",
        "account.recovery_code_used",
    ),
)
async def issue_token(call: Call[IssueTokenRequest, Query]) -> Answer:
    """Create an access token for the dashboard endpoints, valid for an hour.

    A user with a second factor also needs a code of the authenticator app, or a recovery code: 401 `second_factor_required`.
    """
    checked = await checked_user(call)
    factor = await require_code(call, checked.user, call.body.code, call.body.recovery_code)
    user = await store_new_password(call.signed(checked.user).services, checked)
    return await token_for(call, user, "sign_in", signed_in(user, "password", factor))


class CheckedUser(Struct, frozen=True):
    """A user whose password is correct.

    Args:
        new_password_hash: the hash of the chosen new password. It is stored when the sign-in is complete, so that the
            password alone does not change it for a user with a second factor.
    """

    user: User
    new_password_hash: str | None = None


async def checked_user(call: Call[Any, Any]) -> CheckedUser:
    """Return the user who signs in, by the body's `email`, `password` and `new_password`. The caller records the sign-in.

    Raises the errors of REFUSALS.
    """
    services, body = call.services, call.body
    if not services.sign_in:
        raise Forbidden(
            "Users of this installation sign in with an identity provider.", code="sign_in_disabled"
        )
    user = await services.store.read(InlineQuery(lambda reader: reader.user_by_email(body.email)))
    user = await check_password(call, body.email, user, body.password)
    await _require_not_ended(call, user)
    if body.new_password is not None:
        return CheckedUser(user, await hash_other_password(services, user, body.password, body.new_password))
    elif user.password_temporary:
        refusal = Forbidden(
            "This is a one-time password: sign in with it and a `newPassword`.",
            code="password_change_required",
        )
        await record_failure(call, user, refusal)
        raise refusal
    else:
        await _bring_up_to_date(services, user, body.password)
    return CheckedUser(user)


async def _require_not_ended(call: Call[Any, Any], user: User) -> None:
    """Raise Forbidden (`one_time_password_ended`) if the correct password is an expired one-time password."""
    ends_at = call.services.passwords.ends_at(user)
    if ends_at is None or call.services.clock() < ends_at:
        return
    refusal = Forbidden(
        f"This one-time password ended at {iso(ends_at)}, {call.services.passwords.lifetime} after it was created. "
        "A manager of your organisation's members, or the operator, can give you another one.",
        code="one_time_password_ended",
    )
    await record_failure(call, user, refusal)
    raise refusal


async def check_password(call: Call[Any, Any], email: str, user: User | None, password: str) -> User:
    """Return the user if the password is correct.

    Raises Unauthenticated (`invalid_login`), TooManyRequests (`too_many_sign_ins`), Unavailable (`sign_in_busy`).
    """
    services, network = call.services, remote_network(call.address)
    try:
        with services.throttle.attempt(email, network):
            dummy_hash = await services.dummy_hashes.of(email)
            return await services.hashing.run(network, services.passwords.check, user, password, dummy_hash)
    except (TooManyRequests, Unauthenticated) as refusal:
        log.warning(
            "sign_in.failed", address=call.address, reason=refusal.reason
        )  # for tools that ban addresses
        await record_failure(call, user, refusal)
        raise


async def _bring_up_to_date(services: Services, user: User, password: str) -> None:
    """Hash the password again if the configured cost has changed; skipped if that is not possible now."""
    if services.passwords.is_of_today(user):
        return

    def change(tx: OrganisationTransaction) -> None:
        now = tx.user(user.id)
        if now is not None and now.password_hash == user.password_hash:
            tx.save_user(replace(now, password_hash=password_hash))

    try:
        password_hash = await services.hashing.run(None, services.passwords.hash, password)
        await services.store.write(change)
    except Unavailable as reason:
        log.info("sign_in.not_hashed_anew", reason=reason.reason)


async def change_password(services: Services, before: User, present: str, new: str) -> User:
    """Change the password of a user, which ends every token issued before, and return the user.

    Raises the errors of `hash_other_password` and `with_new_password`.
    """
    password_hash = await hash_other_password(services, before, present, new)
    return await store_new_password(services, CheckedUser(before, password_hash))


async def hash_other_password(services: Services, owner: User, present: str, new: str) -> str:
    """Return the hash of a new password.

    Raises Invalid if it is easy to guess, or equals the current one, which its issuer may know.
    """
    if normal_password(new) == normal_password(present):
        raise Invalid(
            Problem("/newPassword", "unchanged", "This is the current password; choose another one.")
        )
    return await hash_new_password(services, new, owner)


async def store_new_password(services: Services, checked: CheckedUser) -> User:
    """Store the chosen new password, if there is one, and return the user. Raises the errors of `with_new_password`."""
    password_hash, now = checked.new_password_hash, services.clock()
    if password_hash is None:
        return checked.user
    return await services.store.write(lambda tx: with_new_password(tx, checked.user, password_hash, now))


def with_new_password(tx: OrganisationTransaction, before: User, password_hash: str, at: int) -> User:
    """Store a new password and return the user.

    Raises Conflict (`password_changed`) if another call has changed the password since `before` was read.
    """
    user = tx.user(before.id)
    if user is None or user.generation != before.generation:
        raise Conflict("The password has just been changed by another call.", code="password_changed")
    user = with_password(user, password_hash, at)
    tx.save_user(user)
    return user


async def hash_new_password(services: Services, password: str, owner: User) -> str:
    """Return the hash of a password chosen by its owner.

    Raises Invalid (`too_guessable`), or Unavailable (`sign_in_busy`).
    """
    return await services.hashing.run(
        None, hash_chosen, services.passwords, password, (owner.email, owner.name), "/newPassword"
    )


async def hash_password(services: Services, password: str) -> str:
    """Return the hash to store, for an authenticated caller. Raises Unavailable (`sign_in_busy`) if too many wait."""
    return await services.hashing.run(None, services.passwords.hash, password)


async def token_for(
    call: Call[Any, Any], user: User, source: Source, *entries: AuditEntry
) -> Mapping[str, Any]:
    """Return a new access token for the user, stored together with the audit records.

    Raises Unavailable if the disk fails; then there is no token.
    """
    services, now = call.services, call.services.clock()
    client = client_name(call.incoming.headers.get("user-agent"))
    token = new_access_token(user, source, client, now, TOKEN_LIFETIME_S)

    def store(tx: Transaction) -> None:
        tx.insert_access_token(token, user.rowid)
        tx.record(*entries)

    await call.signed(user).services.store.write(store)
    return {
        "id": token.id,
        "token": services.tokens.issue(user.id, now, generation=user.generation, token_id=token.id),
        "tokenType": "Bearer",
        "expiresAt": iso(token.expires_at),
    }
