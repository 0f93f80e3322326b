"""Step-up: a proof of who uses a browser session, which sensitive calls require (`engine.accounts.proofs`)."""

from __future__ import annotations

from deskwire.engine.accounts.sessions import BrowserSession
from deskwire.engine.audit.audited_changes import proved
from deskwire.engine.core.errors import Conflict, Forbidden, Unauthenticated
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import SIGNED_IN, Routes
from deskwire.http.resources.accounts import tokens
from deskwire.http.resources.accounts.requests import GivenPassword
from deskwire.http.resources.accounts.sessions import browser_view
from deskwire.http.resources.accounts.tokens import check_password
from deskwire.http.schemas import people as shapes

routes = Routes(tokens.routes.tag, SIGNED_IN)


class ProofRequest(Body):
    """The proof of who uses the session: the user's password."""

    password: GivenPassword


@routes.add(
    "POST",
    "/auth/session/proof",
    operation_id="proveSession",
    body=ProofRequest,
    answer=shapes.BrowserSession,
    errors=(
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
    if not call.services.sign_in:
        raise Forbidden(
            "Users of this installation sign in with an identity provider.", code="sign_in_disabled"
        )
    session = _session(call)
    await check_password(call, call.user.email, call.user, call.body.password)
    return await browser_view(call, call.user, await _prove(call, session))


def _session(call: Call[ProofRequest, Query]) -> BrowserSession:
    """Return the session that makes the call. Raises Conflict (`no_session`) for an access token."""
    if call.access.session is None:
        raise Conflict(
            "The call was made with an access token, which needs no proof; only sessions do.",
            code="no_session",
        )
    return call.access.session


async def _prove(call: Call[ProofRequest, Query], session: BrowserSession) -> BrowserSession:
    """Store the time of the proof, with its audit record, and return the session as proved."""
    now, user = call.services.clock(), call.user

    def prove(tx: Transaction) -> None:
        stored = tx.user(user.id)
        if stored is None or stored.generation != user.generation or not tx.prove_session(session.id, now):
            raise Unauthenticated("The session has ended; sign in again.", code="session_ended")
        tx.record(proved(user, "password"))

    await call.services.store.write(prove)
    return replace(session, proved_at=now)
