"""Step-up: a proof of who uses a browser session, which sensitive calls require (`engine.accounts.proofs`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from pydantic import model_validator

from deskwire.engine.accounts.factors.challenge import (
    LIFETIME_MS,
    Challenge,
    hash_challenge_secret,
    new_challenge_secret,
)
from deskwire.engine.accounts.factors.changes import invalid_code
from deskwire.engine.accounts.factors.passkeys import new_webauthn_challenge, request_options
from deskwire.engine.accounts.sessions import BrowserSession
from deskwire.engine.audit.audited_changes import proved
from deskwire.engine.core.errors import Conflict, Forbidden, TooManyRequests, Unauthenticated
from deskwire.engine.core.limits.network import remote_network
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.ports import Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import MEDIUM, SIGNED_IN, Routes
from deskwire.http.resources.accounts import tokens
from deskwire.http.resources.accounts.codes import GivenCodes, note_wrong_code
from deskwire.http.resources.accounts.passkeys import SignedPasskey, party_of, signed_passkey
from deskwire.http.resources.accounts.requests import GivenCode, GivenPassword, exactly_one
from deskwire.http.resources.accounts.second_factor import challenge_ended
from deskwire.http.resources.accounts.sessions import browser_view
from deskwire.http.resources.accounts.tokens import check_password
from deskwire.http.schemas import people as shapes

routes = Routes(tokens.routes.tag, SIGNED_IN)


class ProofRequest(Body):
    """The proof of who uses the session, exactly one: the password, or a code or passkey of a user with a second factor."""

    password: GivenPassword | None = None
    code: GivenCode | None = None
    passkey: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        exactly_one(self, ("password", "code", "passkey"))
        return self


@routes.add(
    "POST",
    "/auth/session/proof",
    operation_id="proveSession",
    body=ProofRequest,
    limit=MEDIUM,
    answer=shapes.VisitorSession,
    errors=(
        "challenge_ended",
        "invalid_code",
        "invalid_passkey",
        "passkeys_unavailable",
        "second_factor_required",
        "invalid_login",
        "too_many_sign_ins",
        "sign_in_busy",
        "sign_in_disabled",
        "session_ended",
        "no_session",
    ),
    records=("sign_in.proved", "sign_in.failed"),
)
async def prove(call: Call[ProofRequest, Query]) -> Answer:
    """Prove who uses this browser's session, so that sensitive calls are accepted for the next 15 minutes.

    Sensitive calls create and end credentials, change members and settings of the organisation, and export or erase data. Without
    a recent proof, they answer 403 `fresh_proof_required`.
    """
    session, user, body = _session(call), call.user, call.body
    factors = await call.services.store.read(InlineQuery(lambda reader: reader.factors(user.rowid)))
    if body.password is None:
        await _by_factor(call, session)
    elif factors.any:
        raise Unauthenticated(
            "The account has a second factor, which is the proof here: a `code` or a `passkey`.",
            code="second_factor_required",
        )
    elif not call.services.sign_in:
        raise Forbidden(
            "Users of this installation sign in with an identity provider.", code="sign_in_disabled"
        )
    else:
        await check_password(call, user.email, user, body.password)
        await store_proof(call, session, "password")
    return await browser_view(call, user, session)


@routes.add(
    "POST",
    "/auth/session/proof/passkey-options",
    operation_id="getProofPasskeyOptions",
    answer=shapes.PasskeyOptions,
    errors=("no_session", "passkeys_unavailable"),
    unrecorded="it only asks a passkey to sign",
)
async def proof_passkey_options(call: Call[Body, Query]) -> Answer:
    """Fetch the options for `navigator.credentials.get()`, to prove by a passkey who uses this session."""
    session, party, user = _session(call), party_of(call), call.user
    now, asked = call.services.clock(), new_webauthn_challenge()
    challenge = Challenge(
        "proof", user.id, user.generation, now + LIFETIME_MS, session=session.id, webauthn=asked
    )
    hashed = hash_challenge_secret(new_challenge_secret("proof"))
    factors = await call.services.store.read(InlineQuery(lambda reader: reader.factors(user.rowid)))
    await call.services.store.write(lambda tx: tx.insert_challenge(challenge, hashed))
    return {"challenge": None, "publicKey": request_options(party, factors.passkeys, asked)}


async def _by_factor(call: Call[ProofRequest, Query], session: BrowserSession) -> None:
    """Prove the session by a code or passkey. Raises Unauthenticated or TooManyRequests."""
    user, body = call.user, call.body
    try:
        with call.services.second_factors.throttle.attempt(user.email, remote_network(call.address)):
            if body.passkey is None:
                proof: GivenCodes | SignedPasskey = GivenCodes(call, user, body.code, None)
            else:
                proof = await signed_passkey(call, body.passkey, await _asked(call, session), user.rowid)
            await store_proof(call, session, "totp" if body.passkey is None else "passkey", proof.used)
    except (TooManyRequests, Unauthenticated) as refusal:
        await note_wrong_code(call, user, refusal)
        raise


async def _asked(call: Call[ProofRequest, Query], session: BrowserSession) -> bytes | None:
    """Return the bytes that the passkey was asked to sign. They are asked for once."""
    now = call.services.clock()

    def claim(tx: Transaction) -> bytes | None:
        found = tx.proof_challenge(session.id)
        if found is None or not found.lasts(now):
            raise challenge_ended()
        tx.end_challenge(found.rowid)
        return found.webauthn

    return await call.services.store.write(claim)


def _session(call: Call[Any, Any]) -> BrowserSession:
    """Return the session that makes the call. Raises Conflict (`no_session`) for an access token."""
    if call.access.session is None:
        raise Conflict(
            "The call was made with an access token, which needs no proof; only sessions do.",
            code="no_session",
        )
    return call.access.session


async def store_proof(
    call: Call[Any, Any],
    session: BrowserSession,
    method: str,
    used: Callable[[Transaction], str | None] | None = None,
) -> None:
    """Store the time of a proof of who uses the session, with its audit record.

    Args:
        used: uses a code or passkey in the same transaction, and returns None if it is wrong or was used before.

    Raises Unauthenticated (`invalid_code`, `session_ended`).
    """
    now, user = call.services.clock(), call.user

    def prove(tx: Transaction) -> None:
        if used is not None and used(tx) is None:
            raise invalid_code()
        stored = tx.user(user.id)
        if stored is None or stored.generation != user.generation or not tx.prove_session(session.id, now):
            raise Unauthenticated("The session has ended; sign in again.", code="session_ended")
        tx.record(proved(user, method))

    await call.services.store.write(prove)
