"""The second factors of the signed-in user, and the reset of a member's."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from deskwire.engine.accounts.factors import changes
from deskwire.engine.accounts.factors.challenge import (
    LIFETIME_MS,
    Challenge,
    hash_challenge_secret,
    new_challenge_secret,
)
from deskwire.engine.accounts.factors.factor import Passkey, factors_view, passkey_view
from deskwire.engine.accounts.factors.passkeys import (
    creation_options,
    new_webauthn_challenge,
    verify_creation,
)
from deskwire.engine.accounts.factors.totp import new_totp_secret, totp_uri
from deskwire.engine.accounts.roles import MANAGE
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.ports import Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import MEDIUM, SIGNED_IN, Routes, fresh, in_organisation, proved_session
from deskwire.http.resources.accounts import users
from deskwire.http.resources.accounts.members import acting_member
from deskwire.http.resources.accounts.organisations import ONE as ORGANISATION
from deskwire.http.resources.accounts.passkeys import party_of
from deskwire.http.resources.accounts.requests import ChallengeSecret, GivenCode, Name
from deskwire.http.resources.accounts.second_factor import challenge_ended
from deskwire.http.schemas import people as shapes
from deskwire.http.schemas.base import Deleted

routes = Routes(users.routes.tag, proved_session(SIGNED_IN))

_ALL: Final = "/users/me/factors"
_ADDED: Final = ("account.factor_added",)
_REMOVED: Final = ("account.factor_removed", "account.sessions_ended")


class ConfirmTotpRequest(Body):
    """A code that the authenticator app shows."""

    code: GivenCode


class AddPasskeyRequest(Body):
    """The challenge of the options, the answer of the authenticator, and a name to tell passkeys apart."""

    challenge: ChallengeSecret
    credential: Annotated[dict[str, Any], Field(min_length=1)]
    name: Name


@routes.add("GET", _ALL, SIGNED_IN, operation_id="getFactors", answer=shapes.Factors)
async def get_factors(call: Call[Body, Query]) -> Answer:
    """Fetch the second factors of the signed-in user."""
    user = call.user.rowid
    return factors_view(await call.services.store.read(InlineQuery(lambda reader: reader.factors(user))))


@routes.add(
    "POST",
    f"{_ALL}/totp",
    operation_id="beginTotp",
    answer=shapes.PendingTotp,
    unrecorded="the factor is recorded when its first code confirms it",
)
async def begin_totp(call: Call[Body, Query]) -> Answer:
    """Create the secret of an authenticator app, shown only now. Its first code confirms it within 10 minutes.

    An app that the user already has remains until then.
    """
    services, user, secret = call.services, call.user, new_totp_secret()
    sealed, now, uri = services.second_factors.seal(secret), services.clock(), totp_uri(secret, user.email)
    await services.store.write(lambda tx: tx.put_pending_totp(user.rowid, sealed, now))
    import segno  # once in an agent's life, and 5 ms of each start

    picture = segno.make(uri, error="m").svg_data_uri(scale=4, light="white")
    return {"secret": secret, "uri": uri, "qr": picture}


@routes.add(
    "POST",
    f"{_ALL}/totp/confirm",
    operation_id="confirmTotp",
    body=ConfirmTotpRequest,
    answer=shapes.RecoveryCodesIfFirst,
    errors=("invalid_code", "no_pending_totp"),
    records=_ADDED,
)
async def confirm_totp(call: Call[ConfirmTotpRequest, Query]) -> Answer:
    """Confirm the authenticator app by a code. With the first factor, the response shows recovery codes, only this once."""
    services, user, now = call.services, call.user, call.services.clock()
    code, opened = "".join(call.body.code.split()), services.second_factors.open
    codes = await services.store.write(lambda tx: changes.confirm_totp(tx, user, code, opened, now))
    return {"recoveryCodes": None if codes is None else list(codes)}


@routes.add(
    "DELETE",
    f"{_ALL}/totp",
    operation_id="removeTotp",
    answer=shapes.Factors,
    errors=("factor_not_found", "last_factor_required"),
    records=_REMOVED,
)
async def remove_totp(call: Call[Body, Query]) -> Answer:
    """Remove the authenticator app. With the last factor, the recovery codes go and the user's other sessions end.

    The last factor stays while an organisation of the user requires one.
    """
    user, session = call.user, _session_id(call)
    await call.services.store.write(lambda tx: changes.remove_totp(tx, user, session))
    return await get_factors(call)


@routes.add(
    "POST",
    f"{_ALL}/passkeys/options",
    operation_id="beginPasskey",
    answer=shapes.PasskeyOptions,
    errors=("passkeys_unavailable",),
    unrecorded="the factor is recorded when its authenticator has answered",
)
async def begin_passkey(call: Call[Body, Query]) -> Answer:
    """Fetch the options for `navigator.credentials.create()`, to add a passkey within 10 minutes."""
    party, user, now = party_of(call), call.user, call.services.clock()
    asked, secret = new_webauthn_challenge(), new_challenge_secret("enrolment")
    challenge = Challenge("enrolment", user.id, user.generation, now + LIFETIME_MS, webauthn=asked)
    hashed = hash_challenge_secret(secret)
    factors = await call.services.store.read(InlineQuery(lambda reader: reader.factors(user.rowid)))
    await call.services.store.write(lambda tx: tx.insert_challenge(challenge, hashed))
    return {"challenge": secret, "publicKey": creation_options(party, user, factors.passkeys, asked)}


@routes.add(
    "POST",
    f"{_ALL}/passkeys",
    operation_id="addPasskey",
    body=AddPasskeyRequest,
    limit=MEDIUM,
    answer=shapes.AddedPasskey,
    errors=(
        "challenge_ended",
        "invalid_passkey",
        "passkey_known",
        "passkeys_unavailable",
        "too_many_passkeys",
    ),
    records=_ADDED,
)
async def add_passkey(call: Call[AddPasskeyRequest, Query]) -> Answer:
    """Add a passkey. With the first factor, the response shows recovery codes, only this once."""
    party, body, user, now = party_of(call), call.body, call.user, call.services.clock()
    hashed = hash_challenge_secret(body.challenge)

    def claim(tx: Transaction) -> bytes:
        found = tx.claim_challenge(hashed)
        if (
            found is None
            or (found.kind, found.user_id, found.generation) != ("enrolment", user.id, user.generation)
            or not found.lasts(now)
            or found.webauthn is None
        ):
            raise challenge_ended()
        tx.end_challenge(found.rowid)
        return found.webauthn

    verified = verify_creation(party, body.credential, await call.services.store.write(claim))
    passkey = Passkey(
        new_id("pky", now),
        verified.credential,
        verified.public_key,
        verified.sign_count,
        body.name,
        now,
        user=user.rowid,
    )
    codes = await call.services.store.write(lambda tx: changes.add_passkey(tx, user, passkey))
    return {"passkey": passkey_view(passkey), "recoveryCodes": None if codes is None else list(codes)}


@routes.add(
    "DELETE",
    f"{_ALL}/passkeys/<passkey_id>",
    operation_id="removePasskey",
    answer=shapes.Factors,
    errors=("last_factor_required",),
    records=_REMOVED,
)
async def remove_passkey(call: Call[Body, Query]) -> Answer:
    """Remove a passkey, with the same effects as the removal of an authenticator app."""
    user, session, passkey_id = call.user, _session_id(call), call.path["passkey_id"]
    await call.services.store.write(lambda tx: changes.remove_passkey(tx, user, passkey_id, session))
    return await get_factors(call)


@routes.add(
    "POST",
    f"{_ALL}/recovery-codes",
    operation_id="renewRecoveryCodes",
    answer=shapes.RecoveryCodes,
    errors=("no_factor",),
    records=_ADDED,
)
async def renew_recovery_codes(call: Call[Body, Query]) -> Answer:
    """Create new recovery codes, shown only now. All earlier ones become invalid."""
    user = call.user
    codes = await call.services.store.write(lambda tx: changes.renew_recovery_codes(tx, user))
    return {"recoveryCodes": list(codes)}


@routes.add(
    "DELETE",
    f"{ORGANISATION}/members/<user_id>/factors",
    fresh(in_organisation(MANAGE)),
    operation_id="resetMemberFactors",
    answer=Deleted,
    errors=("member_elsewhere", "own_factors", "owner_protected", "permission_not_held"),
    records=("account.factors_reset", "account.tokens_revoked", "account.sessions_ended"),
)
async def reset_member_factors(call: Call[Body, Query]) -> Answer:
    """Remove the second factors of a member who has lost them. All sessions and access tokens of the member end.

    The password stays. For an account that also belongs to another organisation, only the operator can do this.
    """
    organisation, user_id, actor = call.organisation.rowid, call.path["user_id"], acting_member(call)
    member = await call.services.store.write(
        lambda tx: changes.reset_members_factors(tx, actor(tx), organisation, user_id)
    )
    return {"id": member.user.id, "deleted": True}


def _session_id(call: Call[Any, Any]) -> str | None:
    return None if call.access.session is None else call.access.session.id
