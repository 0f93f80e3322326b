"""Sign-in at an OpenID provider: the start, the provider's answer, and logouts that the provider reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final
from urllib.parse import parse_qs

import structlog
from msgspec import Struct
from pydantic import Field

from deskwire.engine.accounts.identity.oidc.answers import ProviderRefusal, ProviderUnreachable
from deskwire.engine.accounts.identity.oidc.identities import (
    NewIds,
    SignInRefused,
    admitted,
    known_user,
    organisation_of,
    within_reach,
)
from deskwire.engine.accounts.identity.oidc.provider import (
    ProviderConnection,
    ProviderRequest,
    Registration,
    authorization_url,
)
from deskwire.engine.accounts.identity.oidc.requests import (
    DESK,
    REQUEST_LIFETIME_MS,
    OidcRequest,
    Purpose,
    challenge_of,
    hash_secret,
    is_answered,
    new_request,
    nonce_of,
    own_page,
    slot_of,
    verifier_of,
)
from deskwire.engine.accounts.identity.oidc.tokens import BadToken, ExpectedToken, LogoutToken, issuer_named
from deskwire.engine.accounts.people import User
from deskwire.engine.accounts.sessions import BrowserSession
from deskwire.engine.audit.audited_changes import proved, provider_sign_in_failed, signed_in
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.errors import BadRequest, Conflict, Unavailable
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.limits.network import remote_network
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Reader, Transaction
from deskwire.http.api.auth.oidc import browser_cookie, browser_secrets
from deskwire.http.api.auth.sessions import began_here
from deskwire.http.api.calls import Answer, BytesAnswer, Call
from deskwire.http.api.input.headers import mimetype_of
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import MEDIUM, OPEN, VISITOR, Media, Routes
from deskwire.http.resources.accounts import tokens
from deskwire.http.resources.accounts.sessions import (
    OpenChallenge,
    ProvedSignIn,
    challenge_cookie,
    session_cookies,
    sign_in_or_challenge,
)
from deskwire.http.schemas import people as shapes

log: Final = structlog.get_logger(__name__)

routes = Routes(tokens.routes.tag, OPEN)

_MOVED: Final = Media("", statuses=(), bare=(303,))
_FORM: Final = "application/x-www-form-urlencoded"
_LATER: Final = frozenset({"server_error", "temporarily_unavailable"})
# Characters, so that all values of a request together fit into its head of 16 KiB.
_TEXT_MAX: Final = 4_096
_NAME_MAX: Final = 1_024
_Text = Annotated[str, Field(max_length=_TEXT_MAX)]
_Name = Annotated[str, Field(max_length=_NAME_MAX)]


class StartQuery(Query):
    """The provider, and the page of the desk to show afterwards. With `purpose=proof` the user of a session proves again who uses it."""

    lenient = True

    provider: _Name
    return_to: _Text | None = None
    purpose: Purpose = "sign_in"


class CallbackQuery(Query):
    """The provider's answer (RFC 6749 4.1.2, RFC 9207)."""

    lenient = True

    state: _Name | None = None
    code: _Text | None = None
    iss: _Text | None = None
    error: _Name | None = None


class _Refused(Exception):
    """A sign-in that ends on the desk's page with an error code.

    Args:
        reason: the reason for the log.
        organisation: storage key of the organisation whose trail gets the record.
        user: the account that was refused, if there is one.
    """

    def __init__(
        self, code: str, reason: str, organisation: int | None = None, user: User | None = None
    ) -> None:
        super().__init__(reason)
        self.code: Final = code
        self.organisation: Final = organisation
        self.user: Final = user


class _Answered(Struct, frozen=True):
    """A request that its browser has brought an answer to."""

    request: OidcRequest
    provider: ProviderConnection
    state: str
    browser: str


@routes.add(
    "GET",
    "/auth/oidc/start",
    VISITOR,
    operation_id="startOidcSignIn",
    query=StartQuery,
    answer=_MOVED,
    errors=("too_many_sign_ins",),
)
async def start(call: Call[Body, StartQuery]) -> Answer:
    """Lead the browser to the page of an identity provider. The sign-in must be complete within ten minutes.

    If that is not possible now, the browser is led to `/desk?signIn=` with the error code. A page of another site can't start a
    sign-in (`Sec-Fetch-Site`): the code is `started_elsewhere`.
    """
    query, services = call.query, call.services
    provider = services.oidc.providers.named(query.provider)
    if provider is None:
        return _moved(f"{DESK}?signIn=provider_refused")
    if not began_here(call.incoming.headers):
        services.oidc.note(query.provider, "started_elsewhere")
        return _moved(f"{DESK}?signIn=started_elsewhere")
    services.oidc.starts.take(remote_network(call.address))
    proof = query.purpose == "proof"
    if proof and call.access.session is None:
        return _moved(f"{DESK}?signIn=sign_in_expired")
    try:
        metadata = await provider.metadata()
    except ProviderUnreachable:
        services.oidc.note(query.provider, "provider_unreachable")
        return _moved(f"{DESK}?signIn=provider_unreachable")
    secure = services.sessions.secure(call.incoming)
    new = new_request(browser_secrets(call.incoming.headers, secure=secure).keys())
    now, session = services.clock(), call.access.session
    request = OidcRequest(
        hash_secret(new.state),
        hash_secret(new.browser),
        query.provider,
        query.purpose,
        own_page(query.return_to),
        None if session is None else session.id,
        now,
        now + REQUEST_LIFETIME_MS,
    )
    await services.store.write(lambda tx: tx.insert_oidc_request(request))
    asked = ProviderRequest(
        new.state,
        nonce_of(new.browser, new.state),
        challenge_of(verifier_of(new.browser, new.state)),
        services.oidc.redirect_uri,
        proof,
    )
    return _moved(
        authorization_url(metadata, provider.client, asked),
        browser_cookie(new.slot, new.browser, secure=secure),
    )


@routes.add(
    "GET",
    "/auth/oidc/callback",
    operation_id="completeOidcSignIn",
    query=CallbackQuery,
    answer=_MOVED,
    records=(
        "sign_in.succeeded",
        "sign_in.failed",
        "sign_in.new_device",
        "sign_in.proved",
        "identity.linked",
        "account.created",
        "account.changed",
        "account.sessions_ended",
        "member.added",
        "member.role_changed",
    ),
)
async def complete(call: Call[Body, CallbackQuery]) -> Answer:
    """Take the answer of an identity provider: start a session, and lead the browser to the desk.

    A refused sign-in leads to `/desk?signIn=` with the error code: `no_account`, `account_elsewhere`, `no_role`, `address_not_verified`,
    `other_account`, `provider_refused`, `provider_unreachable` or `sign_in_expired`.
    """
    try:
        answered = await _answered(call)
    except _Refused as refusal:
        log.info("oidc.refused", code=refusal.code, reason=str(refusal))
        return _moved(f"{DESK}?signIn={refusal.code}")
    client = answered.provider.client
    try:
        answer = await _signed_in(call, answered)
    except _Refused as refusal:
        return await _recorded(call, client, refusal)
    call.services.oidc.note(client.name, "signed_in" if answered.request.purpose == "sign_in" else "proved")
    return answer


@routes.add(
    "POST",
    "/auth/oidc/backchannel-logout",
    operation_id="endOidcSessions",
    answer=shapes.SessionsEnded,
    json_only=False,
    limit=MEDIUM,
    errors=("invalid_logout_token", "provider_unreachable"),
    records=("account.sessions_ended",),
)
async def end_sessions(call: Call[Body, Query]) -> Answer:
    """End the sessions that a provider reports as ended, with their streams (OpenID Connect Back-Channel Logout).

    The body is a form with the provider's `logout_token`. A token counts once.
    """
    provider, token = await _logout_of(call)
    name = provider.client.name

    def end(tx: Transaction) -> int:
        if not tx.remember_logout(token.issuer, token.jti, int(token.expires_at * 1000)):
            raise _bad_logout("It was used before (`jti`).")
        known = None if token.subject is None else tx.identity(token.issuer, token.subject)
        if token.subject is not None and known is None:
            return 0
        return tx.end_provider_sessions(name, None if known is None else known[1].rowid, token.sid)

    ended = await call.services.store.write(end)
    call.services.oidc.note_logout(name)
    return {"ended": ended}


async def _answered(call: Call[Body, CallbackQuery]) -> _Answered:
    """Return the request that the answer belongs to, which is used up by this. Raises _Refused."""
    state, services = call.query.state, call.services
    slot = slot_of(state)
    if state is None and call.query.error is not None:  # some providers refuse without the state
        raise _Refused("provider_refused", f"the provider answers {call.query.error[:60]!r}, without a state")
    if state is None or slot is None:
        raise _Refused("sign_in_expired", "the answer has no state of this service")
    request = await services.store.write(lambda tx: tx.take_oidc_request(hash_secret(state)))
    secure = services.sessions.secure(call.incoming)
    browser = browser_secrets(call.incoming.headers, secure=secure).get(slot)
    if request is None or browser is None or not is_answered(request, browser, services.clock()):
        raise _Refused("sign_in_expired", "the request has ended, or was made by another browser")
    provider = services.oidc.providers.named(request.provider)
    if provider is None:
        raise _Refused("sign_in_expired", "the provider is no longer configured")
    return _Answered(request, provider, state, browser)


async def _signed_in(call: Call[Body, CallbackQuery], answered: _Answered) -> BytesAnswer:
    """Return the answer of a successful sign-in or proof. Raises _Refused."""
    request, client = answered.request, answered.provider.client
    claims = await _claims(call, answered)
    if request.purpose == "proof":
        await _prove(call, request, client, claims)
        return _moved(request.return_to)
    user = await _admitted(call, request, client, claims)
    proved = ProvedSignIn(
        "oidc",
        client.second_factor,
        client.name,
        _sid(claims),
        vouched=client.second_factor,
    )
    try:
        entry = signed_in(user, f"oidc:{client.name}", "provider" if client.second_factor else None)
        outcome = await sign_in_or_challenge(call, user, proved, entry)
    except Conflict as error:  # the password was changed, or the account deleted, in this moment
        raise _Refused("sign_in_expired", error.reason, None, user) from error
    if isinstance(outcome, OpenChallenge):  # the desk's page asks for the second factor
        return _moved(request.return_to, challenge_cookie(call, outcome))
    return _moved(request.return_to, *session_cookies(call, outcome))


async def _claims(call: Call[Body, CallbackQuery], answered: _Answered) -> Mapping[str, Any]:
    """Return the claims of the provider's user. Raises _Refused."""
    query, provider, request = call.query, answered.provider, answered.request
    name = provider.client.name
    try:
        metadata = await provider.metadata()
        # An answer of another issuer would send this provider's code to that one (RFC 9207).
        if query.iss != metadata.issuer and (query.iss is not None or metadata.names_issuer):
            raise _Refused("provider_refused", "the answer names another issuer, or none")
        if query.error is not None:
            code = "provider_unreachable" if query.error in _LATER else "provider_refused"
            raise _Refused(code, f"the provider answers {query.error[:60]!r}")
        if query.code is None:
            raise _Refused("provider_refused", "the answer has neither code nor error")
        since = request.created_at / 1000 if request.purpose == "proof" else None
        expected = ExpectedToken(
            metadata.issuer,
            provider.client.client_id,
            nonce_of(answered.browser, answered.state),
            signed_in_since=since,
        )
        verifier = verifier_of(answered.browser, answered.state)
        return await provider.id_claims(
            query.code, call.services.oidc.redirect_uri, verifier, expected, call.services.clock() / 1000
        )
    except ProviderUnreachable as error:
        log.warning("oidc.provider_unreachable", provider=name, reason=str(error))
        raise _Refused("provider_unreachable", str(error)) from error
    except (ProviderRefusal, BadToken) as error:
        log.warning("oidc.answer_refused", provider=name, reason=str(error))
        raise _Refused("provider_refused", str(error)) from error


async def _admitted(
    call: Call[Body, CallbackQuery], request: OidcRequest, client: Registration, claims: Mapping[str, Any]
) -> User:
    """Return the account of the provider's user, and end the session that the browser had before. Raises _Refused."""
    now = call.services.clock()
    ids = NewIds(new_id("idn", now), new_id("usr", now))

    def admit(tx: Transaction) -> User:
        user = admitted(tx, client, claims, ids, now)
        before = None if request.session is None else tx.session_with(request.session)
        owner = None if before is None else tx.user(before.user_id)
        if before is not None and owner is not None:
            tx.end_session(owner.rowid, before.id)
        return user

    # The records name the user who signs in, also a new one.
    known = await call.services.store.read(lambda reader: known_user(reader, client, claims))
    origin = replace(call.origin, actor=Actor("user", ids.user if known is None else known.id))
    try:
        return await call.services.signed(origin).store.write(admit)
    except SignInRefused as refusal:
        raise _Refused(refusal.reason, str(refusal), refusal.organisation, refusal.user) from refusal


async def _prove(
    call: Call[Body, CallbackQuery], request: OidcRequest, client: Registration, claims: Mapping[str, Any]
) -> None:
    """Note that the user of the session that began the request has proved who uses it. Raises _Refused."""
    now, services = call.services.clock(), call.services

    def find(reader: Reader) -> tuple[BrowserSession | None, User | None, bool]:
        session = None if request.session is None else reader.session_with(request.session)
        known = reader.identity(client.issuer, claims["sub"])
        user = None if known is None or not within_reach(reader, client, known[1]) else known[1]
        return session, user, user is not None and reader.factors(user.rowid).any

    session, user, has_factor = await services.store.read(find)
    if session is None or user is None or user.id != session.user_id:
        raise _Refused("other_account", "the provider's user is not the session's, or the session has ended")
    if has_factor and not client.second_factor:
        raise _Refused("provider_refused", "the user has a second factor, and the provider vouches for none")

    # The provider may have begun a new session of its own, whose end it reports.
    sid = _sid(claims) if session.provider == client.name else None

    def prove(tx: Transaction) -> bool:
        if not tx.prove_session(session.id, now, sid):
            return False
        tx.record(proved(user, f"oidc:{client.name}"))
        return True

    if not await call.signed(user).services.store.write(prove):
        raise _Refused("sign_in_expired", "the session has just ended", None, user)


async def _recorded(call: Call[Body, CallbackQuery], client: Registration, refusal: _Refused) -> BytesAnswer:
    """Record a refused sign-in and lead the browser to the page that explains it."""
    services = call.services
    services.oidc.note(client.name, refusal.code)
    log.info("oidc.refused", provider=client.name, code=refusal.code, reason=str(refusal))
    organisation = refusal.organisation
    if organisation is None and refusal.user is None:
        found = await services.store.read(lambda reader: organisation_of(reader, client))
        organisation = None if found is None else found.rowid
    entry = provider_sign_in_failed(refusal.user, refusal.code, client.name, organisation)
    try:
        await services.store.write(lambda tx: tx.record(entry))
    except Unavailable as error:
        log.warning("sign_in.failure_not_recorded", reason=error.reason)
    return _moved(f"{DESK}?signIn={refusal.code}")


async def _logout_of(call: Call[Body, Query]) -> tuple[ProviderConnection, LogoutToken]:
    """Return the provider and the content of the logout token in the form. Raises BadRequest or Unavailable."""
    form = parse_qs(call.raw.decode("ascii", "replace"), max_num_fields=10) if _is_form(call) else {}
    given = form.get("logout_token", [])
    if len(given) != 1:
        raise _bad_logout(f"The body must be a form ({_FORM}) with one `logout_token`.")
    try:
        provider = call.services.oidc.providers.of_issuer(issuer_named(given[0]))
        if provider is None:
            raise _bad_logout("Its issuer is not one of the providers.")
        return provider, await provider.logout_token(given[0], call.services.clock() / 1000)
    except BadToken as error:
        log.warning("oidc.logout_refused", reason=str(error))
        raise _bad_logout(str(error)) from error
    except ProviderUnreachable as error:
        raise Unavailable(
            "The identity provider can't be reached to check the token.", code="provider_unreachable"
        ) from error


def _sid(claims: Mapping[str, Any]) -> str | None:
    """Return the id of the provider's session, if the provider names one."""
    sid = claims.get("sid")
    return sid if isinstance(sid, str) else None


def _is_form(call: Call[Body, Query]) -> bool:
    return mimetype_of(call.incoming.headers.get("content-type")) == _FORM


def _bad_logout(reason: str) -> BadRequest:
    return BadRequest(f"The logout token is not valid. {reason}", code="invalid_logout_token")


def _moved(url: str, *cookies: str) -> BytesAnswer:
    headers = {"Location": url, "Cache-Control": "no-store"}
    return BytesAnswer(b"", "", headers, 303, cookies=cookies)
