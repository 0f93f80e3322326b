"""Browser sessions: sign-in with a cookie, the current session, and sign-out (ADR 15)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from deskwire.engine.accounts.factors.challenge import (
    LIFETIME_MS,
    Challenge,
    hash_challenge_secret,
    new_challenge_secret,
)
from deskwire.engine.accounts.factors.factor import Factors
from deskwire.engine.accounts.known_browsers import note_sign_in
from deskwire.engine.accounts.members import user_view
from deskwire.engine.accounts.people import Organisation, User
from deskwire.engine.accounts.ports import OrganisationReader
from deskwire.engine.accounts.proofs import proof_methods, vouched
from deskwire.engine.accounts.sessions import (
    BrowserSession,
    SignInMethod,
    begin_session,
    browser_keys,
    client_name,
    hash_session_secret,
    new_session_secret,
)
from deskwire.engine.audit.audited_changes import signed_in, signed_in_with_new_browser
from deskwire.engine.audit.trail import AuditEntry
from deskwire.engine.conversations.typing import TYPING_TIMEOUT_S
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import Forbidden, Unauthenticated
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Reader, Transaction
from deskwire.http.api.auth.sessions import challenge_in, delete_challenge_cookie, set_challenge_cookie
from deskwire.http.api.calls import Answer, BytesAnswer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.output.responses import json_line
from deskwire.http.api.pipeline import JSON
from deskwire.http.api.routing import OPEN, VISITOR, Routes
from deskwire.http.api.services import Services
from deskwire.http.resources.accounts import tokens
from deskwire.http.resources.accounts.tokens import SignInRequest, checked_user, with_new_password
from deskwire.http.schemas import people as shapes

routes = Routes(tokens.routes.tag, VISITOR)

PROJECTS_MAX: Final = 200  # projects in a session's view
_NEWEST: Final = (1 << 63) - 1
_TIMES: Final = {"typingSeconds": TYPING_TIMEOUT_S}


@routes.add(
    "POST",
    "/auth/session",
    OPEN,
    operation_id="startSession",
    body=SignInRequest,
    answer=shapes.VisitorSession,
    errors=(*tokens.REFUSALS, "cross_site_request"),
    records=(
        "sign_in.succeeded",
        "sign_in.failed",
        "sign_in.new_device",
        "account.password_changed",
        "account.sessions_ended",
    ),
)
async def start_session(call: Call[SignInRequest, Query]) -> Answer:
    """Sign in with a browser. The response sets an HttpOnly cookie, which identifies the user from then on.

    The browser's previous session ends. Changing calls with the cookie are accepted only from pages of this origin. A session ends when it was
    not used for 12 hours (`DESKWIRE_SESSION_IDLE_S`), after 30 days (`DESKWIRE_SESSION_MAX_S`) at the latest, with
    a new password, or when it is ended explicitly.
    """
    sessions = call.services.sessions
    if any(call.incoming.headers.get(name) is not None for name in ("sec-fetch-site", "origin")):
        sessions.require_own_page(call.incoming)
    checked = await checked_user(call)
    sign_in = ProvedSignIn("password", new_password_hash=checked.new_password_hash)
    return await complete_sign_in(call, checked.user, sign_in, signed_in(checked.user, "password"))


@routes.add("GET", "/auth/methods", OPEN, operation_id="listSignInMethods", answer=shapes.SignInMethods)
async def list_methods(call: Call[Body, Query]) -> Answer:
    """List the ways to sign in: with a password or passkey here, or at identity providers."""
    services = call.services
    able = services.sessions.relying_party(call.incoming) is not None
    passkey = able and (services.sign_in or await services.store.read(lambda reader: reader.has_passkeys()))
    set_up = not await services.store.read(InlineQuery(lambda reader: reader.has_users()))
    forgotten = "administrator" if services.mailer is None else "mail"
    return {
        "password": services.sign_in,
        "passkey": passkey,
        "oidc": oidc_methods(services),
        "forgottenPassword": forgotten if services.sign_in else None,
        "setUp": set_up and services.sign_in,
    }


def oidc_methods(services: Services) -> list[dict[str, str]]:
    """Return the identity providers to sign in with."""
    return [
        {"id": each.name, "name": each.label, "startUrl": f"/v3/auth/oidc/start?provider={each.name}"}
        for each in services.oidc.providers.clients
    ]


@routes.add("GET", "/auth/session", operation_id="getSession", answer=shapes.VisitorSession)
async def get_session(call: Call[Body, Query]) -> Answer:
    """Fetch the session of this browser's cookie; all fields are null without one. The status is 200 in both cases."""
    user, session = call.access.user, call.access.session
    return await browser_view(call, user, session, None if user is not None else await _pending(call))


async def _pending(call: Call[Any, Any]) -> OpenChallenge | None:
    """Return the challenge in the browser's cookie, which a sign-in by an identity provider has set."""
    secure = call.services.sessions.secure(call.incoming)
    secret = challenge_in(call.incoming.headers, secure=secure)
    if secret is None:
        return None

    def read(reader: Reader) -> OpenChallenge | None:
        found = reader.challenge(hash_challenge_secret(secret))
        user = None if found is None or found.user_id is None else reader.user(found.user_id)
        if found is None or user is None or not found.lasts(call.services.clock()):
            return None
        return OpenChallenge(secret, found.expires_at, reader.factors(user.rowid).methods)

    return await call.services.store.read(InlineQuery(read))


@routes.add(
    "DELETE",
    "/auth/session",
    operation_id="endSession",
    answer=shapes.SessionEnded,
    records=("account.sessions_ended",),
)
async def end_session(call: Call[Body, Query]) -> Answer:
    """Sign out: end the session of this browser's cookie, if any, and remove the cookie."""
    session = call.access.session
    if session is not None:
        user = call.user.rowid
        await call.services.store.write(lambda tx: tx.end_session(user, session.id))
    return _answer({"ended": True}, call.services.sessions.no_cookie(call.incoming))


class ProvedSignIn(Struct, frozen=True):
    """A proved sign-in, before its session starts.

    Args:
        method: the way in which the user signed in.
        second_factor: whether the way includes a second factor.
        provider, provider_sid: see `BrowserSession`.
        new_password_hash: hash of a new password, which is stored when the session starts.
        carried: JSON for the function in CARRIED, which gets it when the session starts.
        vouched: whether it is the identity provider that vouches for the second factor.
    """

    method: SignInMethod
    second_factor: bool = False
    provider: str | None = None
    provider_sid: str | None = None
    new_password_hash: str | None = None
    carried: tuple[str, Mapping[str, Any]] | None = None
    vouched: bool = False


CARRIED: Final[dict[str, Callable[[Transaction, User, Mapping[str, Any], int], None]]] = {}
"""Functions that complete a sign-in in the transaction that starts its session, by the name in `ProvedSignIn.carried`.

They get the user, the JSON, and the time (ms). Their errors refuse the sign-in.
"""


class OpenChallenge(Struct, frozen=True):
    """A sign-in that waits for a second factor: the secret of its challenge, its end (ms), and the possible methods."""

    secret: str
    expires_at: int
    methods: Sequence[str]

    def view(self) -> dict[str, Any]:
        """Return the challenge object."""
        return {"id": self.secret, "expiresAt": iso(self.expires_at), "methods": list(self.methods)}


class PendingSignIn(Struct, frozen=True):
    """A sign-in as its challenge carries it: the proof, and the audit records for the start of the session."""

    sign_in: ProvedSignIn
    entries: tuple[AuditEntry, ...] = ()


async def complete_sign_in(
    call: Call[Any, Any], user: User, sign_in: ProvedSignIn, *entries: AuditEntry
) -> BytesAnswer:
    """Start the session of a user who has just proved who signs in, and return its view with the cookie.

    A user with a second factor that the way does not include gets a challenge instead, and no cookie. The audit records
    are stored with the session. Raises the errors of `begin`.
    """
    outcome = await sign_in_or_challenge(call, user, sign_in, *entries)
    if isinstance(outcome, Started):
        return with_cookie(call, await browser_view(call, user, outcome.session), outcome)
    return BytesAnswer(json_line(await browser_view(call, None, None, outcome)), JSON)


async def sign_in_or_challenge(
    call: Call[Any, Any], user: User, sign_in: ProvedSignIn, *entries: AuditEntry
) -> Started | OpenChallenge:
    """Start the session, or store a challenge for a user with a second factor. See `complete_sign_in`."""
    factors = await call.services.store.read(InlineQuery(lambda reader: reader.factors(user.rowid)))
    if sign_in.second_factor or not factors.any:
        return await begin(call, user, *entries, sign_in=sign_in)
    now, secret = call.services.clock(), new_challenge_secret("sign_in")
    carried = msgspec.json.encode(PendingSignIn(sign_in, entries))
    challenge = Challenge("sign_in", user.id, user.generation, now + LIFETIME_MS, carried=carried)
    hashed = hash_challenge_secret(secret)
    await call.services.store.write(lambda tx: tx.insert_challenge(challenge, hashed))
    return OpenChallenge(secret, challenge.expires_at, factors.methods)


class Started(Struct, frozen=True):
    """A new session with the secret for its cookie, and the one by which the browser is known."""

    session: BrowserSession
    secret: str
    browser: str


_BY_PASSWORD: Final = ProvedSignIn("password")


async def begin(
    call: Call[Any, Any], user: User, *entries: AuditEntry, sign_in: ProvedSignIn = _BY_PASSWORD
) -> Started:
    """Start a session for a user who was just verified, and record the sign-in.

    Raises Conflict (`password_changed`), or Unavailable if the disk fails.
    """
    starting = await SessionStart.of(call, user, sign_in, entries)
    return await call.signed(user).services.store.write(starting.run)


class SessionStart(Struct, frozen=True):
    """The start of a session, as a job for one transaction.

    Args:
        before: the browser's previous session, whose cookie is about to be replaced.
    """

    user: User
    sign_in: ProvedSignIn
    entries: Sequence[AuditEntry]
    started: Started
    before: BrowserSession | None

    @classmethod
    async def of(
        cls, call: Call[Any, Any], user: User, sign_in: ProvedSignIn, entries: Sequence[AuditEntry]
    ) -> SessionStart:
        """Return the start of a session in the browser that makes the call."""
        now = call.services.clock()
        session = BrowserSession(
            new_id("ses", now),
            user.id,
            client_name(call.incoming.headers.get("user-agent")),
            now,
            now,
            method=sign_in.method,
            proved_at=now,
            second_factor=sign_in.second_factor,
            provider=sign_in.provider,
            provider_sid=sign_in.provider_sid,
            vouched=sign_in.vouched,
        )
        started = Started(session, new_session_secret(), call.services.sessions.browser_secret(call.incoming))
        return cls(user, sign_in, entries, started, await _before(call, now))

    def lock(self, tx: Transaction) -> None:
        """Take the lock that a function in CARRIED needs. It comes before locks of rows, so that no two sign-ins block each other."""
        if self.sign_in.carried is not None:
            tx.lock_across_nodes()

    def run(self, tx: Transaction) -> Started:
        """Store the session, after the new password if there is one, and return it with its limits.

        Raises Conflict (`password_changed`), and the errors of a function in CARRIED.
        """
        before, owner, session = self.before, self.user, self.started.session
        self.lock(tx)
        if self.sign_in.new_password_hash is not None:
            owner = with_new_password(tx, owner, self.sign_in.new_password_hash, session.created_at)
        replaced = None if before is None else tx.user(before.user_id)
        if before is not None and replaced is not None:
            tx.end_session(replaced.rowid, before.id)
        begin_session(tx, owner, session, hash_session_secret(self.started.secret))
        if self.sign_in.carried is not None:
            name, content = self.sign_in.carried
            CARRIED[name](tx, owner, content, session.created_at)
        tx.record(*self.entries)
        if note_sign_in(tx, owner, hash_session_secret(self.started.browser), session.created_at):
            tx.record(signed_in_with_new_browser(owner, session.id))
        return replace(self.started, session=replace(session, limits=tx.session_limits(owner.rowid)))


async def _before(call: Call[Any, Any], at: int) -> BrowserSession | None:
    """Return the browser's previous session, whose cookie is about to be replaced."""
    try:
        return await call.services.sessions.of(call.incoming, at)
    except (Forbidden, Unauthenticated):
        return None


def with_cookie(call: Call[Any, Any], content: Mapping[str, Any], started: Started) -> BytesAnswer:
    """Return the response that sets the session's cookie, and the one by which the browser is known."""
    return _answer(content, *session_cookies(call, started))


def session_cookies(call: Call[Any, Any], started: Started) -> list[str]:
    """Return the `Set-Cookie` values of a new session. A challenge that the browser still has is deleted."""
    sessions, secure = call.services.sessions, call.services.sessions.secure(call.incoming)
    cookies = [
        sessions.cookie(call.incoming, started.secret),
        sessions.browser_cookie(call.incoming, started.browser),
    ]
    if challenge_in(call.incoming.headers, secure=secure) is not None:
        cookies.append(delete_challenge_cookie(secure=secure))
    return cookies


def challenge_cookie(call: Call[Any, Any], challenge: OpenChallenge) -> str:
    """Return the `Set-Cookie` of a challenge, for a sign-in that returns to the desk by a redirect."""
    secure = call.services.sessions.secure(call.incoming)
    return set_challenge_cookie(challenge.secret, LIFETIME_MS // 1000, secure=secure)


async def browser_view(
    call: Call[Any, Any],
    user: User | None,
    session: BrowserSession | None,
    challenge: OpenChallenge | None = None,
) -> dict[str, Any]:
    """Return the view of a browser's session, with null and empty fields without one."""
    services = call.services
    if user is None or session is None:
        return {
            "user": None,
            "expiresAt": None,
            "projects": [],
            "storageKeys": [],
            **_TIMES,
            "provedAt": None,
            "signedInBy": None,
            "proofMethods": [],
            "enrolmentRequired": [],
            "challenge": None if challenge is None else challenge.view(),
        }

    def read(reader: Reader) -> tuple[list[dict[str, Any]], int, Factors, Sequence[Organisation]]:
        return (
            _projects(reader, user),
            reader.proved_at(session.id) or session.proved_at,
            reader.factors(user.rowid),
            reader.organisations_requiring_factor(user.rowid),
        )

    projects, proved_at, factors, requiring = await services.store.read(read)
    missing = [] if factors.any or vouched(session) else requiring
    return {
        "user": user_view(user),
        "expiresAt": iso(services.sessions.life.ends_at(session)),
        "projects": projects,
        "storageKeys": browser_keys(services.secrets, user.id),
        **_TIMES,
        "provedAt": iso(proved_at),
        "signedInBy": session.method,
        "proofMethods": proof_methods(user, session, factors, passwords=services.sign_in),
        "enrolmentRequired": [{"id": each.id, "name": each.name} for each in missing],
        "challenge": None,
    }


def _projects(reader: OrganisationReader, user: User) -> list[dict[str, Any]]:
    """Return the user's projects, newest first, with their permissions."""
    memberships = reader.memberships(user.rowid, (-1, -1), _NEWEST)
    joined = {each.organisation.rowid: each for each in memberships}
    return [
        {
            "id": project.id,
            "name": project.name,
            "organisationId": joined[project.organisation].organisation.id,
            "organisationName": joined[project.organisation].organisation.name,
            "role": joined[project.organisation].role,
            "permissions": sorted(joined[project.organisation].permissions),
        }
        for project in reader.projects(None, user.rowid, _NEWEST, PROJECTS_MAX)
    ]


def _answer(content: Mapping[str, Any], *cookies: str) -> BytesAnswer:
    return BytesAnswer(json_line(content), JSON, cookies=cookies)
