"""Sign-in by a second factor after the password, and by a passkey alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol, Self

import msgspec
from msgspec import Struct
from pydantic import Field, model_validator

from deskwire.engine.accounts.factors.challenge import (
    LIFETIME_MS,
    Challenge,
    hash_challenge_secret,
    new_challenge_secret,
)
from deskwire.engine.accounts.factors.changes import invalid_code
from deskwire.engine.accounts.factors.passkeys import (
    invalid_passkey,
    new_webauthn_challenge,
    request_options,
)
from deskwire.engine.accounts.people import User
from deskwire.engine.audit.audited_changes import sign_in_failed, signed_in, with_second_factor
from deskwire.engine.core.errors import Forbidden, TooManyRequests, Unauthenticated
from deskwire.engine.core.limits.network import remote_network
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Reader, Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import MEDIUM, OPEN, Routes
from deskwire.http.resources.accounts import tokens
from deskwire.http.resources.accounts.codes import GivenCodes, note_wrong_code
from deskwire.http.resources.accounts.passkeys import party_of, signed_passkey
from deskwire.http.resources.accounts.requests import ChallengeSecret, GivenCode, exactly_one
from deskwire.http.resources.accounts.sessions import (
    PendingSignIn,
    ProvedSignIn,
    SessionStart,
    Started,
    browser_view,
    complete_sign_in,
    with_cookie,
)
from deskwire.http.resources.accounts.sign_ins import record_failure
from deskwire.http.schemas import people as shapes

routes = Routes(tokens.routes.tag, OPEN)

_REFUSALS: Final = ("too_many_sign_ins", "challenge_ended", "cross_site_request")
_RECORDS: Final = (
    "sign_in.succeeded",
    "sign_in.failed",
    "sign_in.new_device",
    "account.password_changed",
    "account.sessions_ended",
    "account.recovery_code_used",
)


class FactorRequest(Body):
    """The challenge of a sign-in, and exactly one proof: a code, a recovery code, or the answer of a passkey."""

    challenge: ChallengeSecret
    code: GivenCode | None = None
    recovery_code: GivenCode | None = None
    passkey: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        exactly_one(self, ("code", "recovery_code", "passkey"))
        return self


class ChallengeRequest(Body):
    """The challenge of a sign-in."""

    challenge: ChallengeSecret


class PasskeySignInRequest(Body):
    """The challenge of the options, and the answer of the passkey (`PublicKeyCredential.toJSON()`)."""

    challenge: ChallengeSecret
    credential: dict[str, Any] = Field(min_length=1)


class _Proof(Protocol):
    """A proof that is used once, in the transaction of its sign-in."""

    def used(self, tx: Transaction) -> str | None:
        """Use the proof, and return its method. Return None if it is wrong or was used before."""


class _NoProof:
    """The answer of a passkey that was not valid: it counts as a wrong code."""

    def used(self, tx: Transaction) -> str | None:
        """Return None."""
        return None


@routes.add(
    "POST",
    "/auth/session/factor",
    operation_id="finishSignIn",
    body=FactorRequest,
    limit=MEDIUM,
    answer=shapes.VisitorSession,
    errors=(
        "already_member",
        "invalid_code",
        "invalid_passkey",
        "inviter_not_permitted",
        "link_ended",
        "passkeys_unavailable",
        "password_changed",
        *_REFUSALS,
    ),
    records=(*_RECORDS, "invitation.accepted", "member.added"),
)
async def finish_sign_in(call: Call[FactorRequest, Query]) -> Answer:
    """Finish a sign-in by the second factor. The response sets the session's cookie, as after a password.

    A challenge ends after 10 minutes or 5 wrong codes; then sign in again. Each code is accepted once. If the sign-in began with
    an invitation, this accepts it.
    """
    _require_own_page(call)
    hashed = hash_challenge_secret(call.body.challenge)
    challenge, user = await _pending(call, hashed)
    pending = msgspec.json.decode(challenge.carried, type=PendingSignIn)
    sign_in = replace(pending.sign_in, second_factor=True)
    starting = await SessionStart.of(call, user, sign_in, pending.entries)
    try:
        with call.services.second_factors.throttle.attempt(user.email, remote_network(call.address)):
            finishing = _Finish(hashed, await _proof(call, challenge, user), starting)
            outcome = await call.signed(user).services.store.write(finishing.run)
            if isinstance(outcome, Unauthenticated):
                raise outcome
    except (TooManyRequests, Unauthenticated) as refused:
        if isinstance(refused, TooManyRequests):
            await note_wrong_code(call, user, refused)
        raise
    return with_cookie(call, await browser_view(call, user, outcome.session), outcome)


class _Finish(Struct, frozen=True):
    """The end of a sign-in, as a job for one transaction: the proof is used, or counted as wrong, in its commit."""

    hashed: bytes
    proof: _Proof
    starting: SessionStart

    def run(self, tx: Transaction) -> Unauthenticated | Started:
        """Start the session and end the challenge, or return the refusal after counting it."""
        self.starting.lock(tx)
        now, challenge = self.starting.started.session.created_at, tx.claim_challenge(self.hashed)
        user = self.starting.user
        stored = tx.user(user.id)
        current = stored is not None and challenge is not None and stored.generation == challenge.generation
        if challenge is None or not current or not challenge.lasts(now):
            return challenge_ended()
        method = self.proof.used(tx)
        if method is None:
            tx.count_wrong_code(challenge.rowid)
            refusal = invalid_passkey() if isinstance(self.proof, _NoProof) else invalid_code()
            tx.record(sign_in_failed(user, refusal.reason))
            return refusal
        tx.end_challenge(challenge.rowid)
        entries = [with_second_factor(each, method) for each in self.starting.entries]
        return replace(self.starting, entries=entries).run(tx)


async def _proof(call: Call[FactorRequest, Query], challenge: Challenge, user: User) -> _Proof:
    body = call.body
    if body.passkey is None:
        return GivenCodes(call, user, body.code, body.recovery_code)
    try:
        return await signed_passkey(call, body.passkey, challenge.webauthn, user.rowid)
    except Unauthenticated:
        return _NoProof()


async def _pending(call: Call[Any, Any], hashed: bytes) -> tuple[Challenge, User]:
    """Return the challenge of a sign-in and its user. Raises Unauthenticated (`challenge_ended`)."""
    now = call.services.clock()

    def read(reader: Reader) -> tuple[Challenge, User]:
        found = reader.challenge(hashed)
        user = None if found is None or found.user_id is None else reader.user(found.user_id)
        if found is None or found.kind != "sign_in" or user is None or not found.lasts(now):
            raise challenge_ended()
        if user.generation != found.generation:
            raise challenge_ended()
        return found, user

    return await call.services.store.read(InlineQuery(read))


@routes.add(
    "POST",
    "/auth/session/factor/passkey-options",
    operation_id="getFactorPasskeyOptions",
    body=ChallengeRequest,
    answer=shapes.PasskeyOptions,
    errors=("challenge_ended", "passkeys_unavailable", "cross_site_request"),
    unrecorded="it only asks a passkey to sign",
)
async def factor_passkey_options(call: Call[ChallengeRequest, Query]) -> Answer:
    """Fetch the options for `navigator.credentials.get()`, to finish a sign-in by a passkey of its user."""
    _require_own_page(call)
    party = party_of(call)
    challenge, user = await _pending(call, hash_challenge_secret(call.body.challenge))
    asked = new_webauthn_challenge()
    factors = await call.services.store.read(InlineQuery(lambda reader: reader.factors(user.rowid)))
    await call.services.store.write(lambda tx: tx.ask_passkey(challenge.rowid, asked))
    return {"challenge": None, "publicKey": request_options(party, factors.passkeys, asked)}


@routes.add(
    "POST",
    "/auth/passkey/options",
    operation_id="getPasskeyOptions",
    answer=shapes.PasskeyOptions,
    errors=("passkeys_unavailable", "cross_site_request", "too_many_sign_ins"),
    unrecorded="it only asks a passkey to sign",
)
async def passkey_options(call: Call[Body, Query]) -> Answer:
    """Fetch the options for `navigator.credentials.get()`, to sign in by a passkey alone. The passkey names its user."""
    _require_own_page(call)
    party, asked, secret = party_of(call), new_webauthn_challenge(), new_challenge_secret("passkey")
    now = call.services.clock()
    challenge = Challenge("passkey", None, 0, now + LIFETIME_MS, webauthn=asked)
    hashed = hash_challenge_secret(secret)
    call.services.second_factors.starts.take(remote_network(call.address))
    await call.services.store.write(lambda tx: tx.insert_challenge(challenge, hashed))
    return {"challenge": secret, "publicKey": request_options(party, (), asked)}


@routes.add(
    "POST",
    "/auth/passkey",
    operation_id="signInByPasskey",
    body=PasskeySignInRequest,
    limit=MEDIUM,
    answer=shapes.VisitorSession,
    errors=("invalid_passkey", "passkeys_unavailable", "sign_in_disabled", "password_changed", *_REFUSALS),
    records=_RECORDS,
)
async def sign_in_by_passkey(call: Call[PasskeySignInRequest, Query]) -> Answer:
    """Sign in by a passkey alone, which counts as both factors. The response is as for a password."""
    _require_own_page(call)
    hashed, now = hash_challenge_secret(call.body.challenge), call.services.clock()
    try:
        with call.services.second_factors.throttle.attempt(None, remote_network(call.address)):
            user = await _by_passkey(call, hashed, now)
    except (TooManyRequests, Unauthenticated) as refusal:
        if refusal.reason != "challenge_ended":
            await record_failure(call, None, refusal)
        raise
    sign_in = ProvedSignIn("passkey", second_factor=True)
    return await complete_sign_in(call, user, sign_in, signed_in(user, "passkey"))


async def _by_passkey(call: Call[PasskeySignInRequest, Query], hashed: bytes, now: int) -> User:
    """Return the user whose passkey has signed the challenge, which ends with its first use."""

    def claim(tx: Transaction) -> Challenge:
        found = tx.claim_challenge(hashed)
        if found is None or found.kind != "passkey" or not found.lasts(now):
            raise challenge_ended()
        tx.end_challenge(found.rowid)
        return found

    challenge = await call.services.store.write(claim)
    signed = await signed_passkey(call, call.body.credential, challenge.webauthn, None)

    def use(tx: Transaction) -> User:
        user = tx.user(signed.passkey.user_id)
        if user is None or signed.used(tx) is None:
            raise invalid_passkey()
        return user

    user = await call.services.store.write(use)
    handle = _user_handle(call.body.credential)
    if handle is not None and handle != user.id:
        raise invalid_passkey()
    if not call.services.sessions.allowed:
        raise Forbidden(
            "Users of this installation sign in with an identity provider.", code="sign_in_disabled"
        )
    return user


def _user_handle(assertion: Mapping[str, Any]) -> str | None:
    """Return the user id in the assertion, None without one. Raises Unauthenticated (`invalid_passkey`)."""
    from webauthn import base64url_to_bytes

    response = assertion.get("response")
    given = response.get("userHandle") if isinstance(response, dict) else None
    return None if not isinstance(given, str) else base64url_to_bytes(given).decode("ascii", "replace")


def _require_own_page(call: Call[Any, Any]) -> None:
    """Raise Forbidden (`cross_site_request`) for a browser's page of another origin."""
    if any(call.incoming.headers.get(name) is not None for name in ("sec-fetch-site", "origin")):
        call.services.sessions.require_own_page(call.incoming)


def challenge_ended() -> Unauthenticated:
    """Return the refusal of a challenge that is unknown, used, expired, or has seen too many wrong codes."""
    return Unauthenticated("This sign-in has ended; begin again.", code="challenge_ended")
