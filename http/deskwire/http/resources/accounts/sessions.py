"""Browser sessions: sign-in with a cookie, the current session, and sign-out (ADR 15)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from deskwire.engine.accounts.known_browsers import note_sign_in
from deskwire.engine.accounts.members import user_view
from deskwire.engine.accounts.people import User
from deskwire.engine.accounts.ports import OrganisationReader
from deskwire.engine.accounts.proofs import proof_methods
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
from deskwire.http.api.calls import Answer, BytesAnswer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.output.responses import json_line
from deskwire.http.api.pipeline import JSON
from deskwire.http.api.routing import OPEN, VISITOR, Routes
from deskwire.http.api.services import Services
from deskwire.http.resources.accounts import tokens
from deskwire.http.resources.accounts.tokens import SignInRequest, checked_user
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
    answer=shapes.BrowserSession,
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
    user = await checked_user(call)
    return await complete_sign_in(call, user, ProvedSignIn("password"), signed_in(user))


@routes.add("GET", "/auth/methods", OPEN, operation_id="listSignInMethods", answer=shapes.SignInMethods)
async def list_methods(call: Call[Body, Query]) -> Answer:
    """List the ways to sign in: with a password here, or at identity providers."""
    services = call.services
    set_up = not await services.store.read(InlineQuery(lambda reader: reader.has_users()))
    forgotten = "administrator" if services.mailer is None else "mail"
    return {
        "password": services.sign_in,
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
    return await browser_view(call, call.access.user, call.access.session)


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
    """

    method: SignInMethod
    second_factor: bool = False
    provider: str | None = None
    provider_sid: str | None = None


async def complete_sign_in(
    call: Call[Any, Any], user: User, sign_in: ProvedSignIn, *entries: AuditEntry
) -> BytesAnswer:
    """Start the session of a user who has just proved who signs in, and return its view with the cookie.

    The audit records are stored with the session. Raises the errors of `begin`.
    """
    started = await begin(call, user, *entries, sign_in=sign_in)
    return with_cookie(call, await browser_view(call, user, started.session), started)


class Started(Struct, frozen=True):
    """A new session with the secret for its cookie, and the one by which the browser is known."""

    session: BrowserSession
    secret: str
    browser: str


_BY_PASSWORD: Final = ProvedSignIn("password")


async def begin(
    call: Call[Any, Any], user: User, *entries: AuditEntry, sign_in: ProvedSignIn = _BY_PASSWORD
) -> Started:
    """Start a session for a user whose password was just verified, and record the sign-in.

    Raises Conflict (`password_changed`), or Unavailable if the disk fails.
    """
    now, secret = call.services.clock(), new_session_secret()
    client = client_name(call.incoming.headers.get("user-agent"))
    session = BrowserSession(
        new_id("ses", now),
        user.id,
        client,
        now,
        now,
        method=sign_in.method,
        proved_at=now,
        second_factor=sign_in.second_factor,
        provider=sign_in.provider,
        provider_sid=sign_in.provider_sid,
    )
    before, browser = await _before(call, now), call.services.sessions.browser_secret(call.incoming)

    def job(tx: Transaction) -> BrowserSession:
        owner = None if before is None else tx.user(before.user_id)
        if before is not None and owner is not None:
            tx.end_session(owner.rowid, before.id)
        begin_session(tx, user, session, hash_session_secret(secret))
        tx.record(*entries)
        if note_sign_in(tx, user, hash_session_secret(browser), now):
            tx.record(signed_in_with_new_browser(user, session.id))
        return replace(session, limits=tx.session_limits(user.rowid))

    stored = await call.signed(user).services.store.write(job)
    return Started(stored, secret, browser)


async def _before(call: Call[Any, Any], at: int) -> BrowserSession | None:
    """Return the browser's previous session, whose cookie is about to be replaced."""
    try:
        return await call.services.sessions.of(call.incoming, at)
    except (Forbidden, Unauthenticated):
        return None


def with_cookie(call: Call[Any, Any], content: Mapping[str, Any], started: Started) -> BytesAnswer:
    """Return the response that sets the session's cookie, and the one by which the browser is known."""
    sessions = call.services.sessions
    return _answer(
        content,
        sessions.cookie(call.incoming, started.secret),
        sessions.browser_cookie(call.incoming, started.browser),
    )


async def browser_view(
    call: Call[Any, Any], user: User | None, session: BrowserSession | None
) -> dict[str, Any]:
    """Return the view of a browser's session, with null and empty fields without one."""
    services = call.services
    if user is None or session is None:
        view: dict[str, Any] = {"user": None, "expiresAt": None, "projects": [], "storageKeys": []}
        return {**view, **_TIMES, "provedAt": None, "signedInBy": None, "proofMethods": []}

    def read(reader: Reader) -> tuple[list[dict[str, Any]], int]:
        return _projects(reader, user), reader.proved_at(session.id) or session.proved_at

    projects, proved_at = await services.store.read(read)
    return {
        "user": user_view(user),
        "expiresAt": iso(services.sessions.life.ends_at(session)),
        "projects": projects,
        "storageKeys": browser_keys(services.secrets, user.id),
        **_TIMES,
        "provedAt": iso(proved_at),
        "signedInBy": session.method,
        "proofMethods": proof_methods(user, session, passwords=services.sign_in),
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
