"""Authentication: credentials in headers, checked against the route's access.

Source: decisions 2 and 3. Refusals name the kind of the credential that was shown and the kind that is
needed, as far as its form reveals it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, Protocol, assert_never

import structlog

from deskwire.engine.accounts.credentials import TokenIdentity
from deskwire.engine.accounts.identity.verifier import user_of
from deskwire.engine.accounts.machines import SECRET_PREFIX, Machine
from deskwire.engine.accounts.people import ServerKey, User
from deskwire.engine.accounts.proofs import FreshProofRequired, is_fresh, proof_methods, vouched
from deskwire.engine.accounts.roles import membership_of, project_of
from deskwire.engine.accounts.server_keys import KEY_PREFIX
from deskwire.engine.accounts.sessions import BrowserSession
from deskwire.engine.channels.channel import SECRET_PREFIX as CHANNEL_SECRET_PREFIX
from deskwire.engine.core.errors import (
    BadRequest,
    Forbidden,
    NotFound,
    PersonRequired,
    Problem,
    Unauthenticated,
    Unavailable,
)
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.store import InlineJob, InlineQuery
from deskwire.engine.core.values import replace
from deskwire.engine.customers.tokens import SESSION_PREFIX, VISITOR_PREFIX
from deskwire.engine.ports import Reader
from deskwire.http.api.auth.metrics_token import ScrapeAccess
from deskwire.http.api.calls import Caller
from deskwire.http.api.input.headers import Fields, single_value
from deskwire.http.api.routing import RouteAccess
from deskwire.http.api.services import Services

log: Final = structlog.get_logger(__name__)

# The recorded time of a credential's last use may be this old; it saves a write on every call.
_TOUCH_MS: Final = 60_000


class AuthenticationRequest(Protocol):
    """The parts of a request that identify its caller.

    See `pipeline.ApiRequest`.
    """

    @property
    def at(self) -> int: ...
    @property
    def method(self) -> str: ...
    @property
    def headers(self) -> Fields: ...
    @property
    def peer(self) -> str | None: ...
    @property
    def path(self) -> Mapping[str, str]: ...
    @property
    def secure(self) -> bool: ...
    @property
    def arguments(self) -> Callable[[], Mapping[str, list[str]]]: ...


async def admit(services: Services, access: RouteAccess, request: AuthenticationRequest) -> Caller:
    """Return the caller, if its credential fits the route.

    `require_permission` checks its permissions.

    A user shows an access token or the cookie of a session; the token takes precedence. A machine is admitted
    as a caller even to routes where it has no permission.

    Raises:
        Unauthenticated: no valid credential of the right kind.
        BadRequest: the required `project` header is missing (`missing_project`) or repeated
            (`repeated_header`).
        NotFound: a project or organisation that does not exist, or that the user is no member of.
        Forbidden: a scraper is not local; a request with a cookie comes from another origin
            (`cross_site_request`); a customer's page is not one of the channel's (`origin_not_allowed`).
        Conflict: the customer's channel is disabled (`channel_disabled`).
        Unavailable: the token can't be verified at the moment.
    """
    if access.kind == "none":
        return Caller()
    if access.kind == "metrics":
        _admit_scraper(services.scraping, request.headers, request.peer)
        return Caller()
    if access.kind == "visitor":
        return await _visitor(services, access, request)
    if access.kind == "customer":
        return await _customer(services, access, request)
    if access.kind != "server_key" and request.headers.get("authorization") is None:
        session = await services.sessions.of(request, request.at)
        if session is not None:
            return await _user(services, access, request, TokenIdentity("id", session.user_id), session)
    credential, at = _bearer(request.headers), request.at
    check_kind(access, credential)
    if credential.startswith(SECRET_PREFIX):
        return await _machine(services, access, request, credential)
    if access.kind == "server_key" or (access.kind == "either" and credential.startswith(KEY_PREFIX)):
        key = await services.keys.authenticate(credential, at)
        if at - max(services.key_uses.get(key.rowid, 0), key.last_used_at or 0) >= _TOUCH_MS:
            await _note_use(services, key, at)
        return Caller(project=key.project, key=key, credential=f"key {key.rowid}", authorizes_as=key.id)
    identity = await services.verifier.identity(credential)
    await services.ended_tokens.check(identity, at)
    return await _user(services, access, request, identity)


def require_permission(access: RouteAccess, caller: Caller) -> None:
    """Raise Forbidden if the caller lacks a permission of the route.

    A machine is refused as well where only people may call.
    """
    if caller.machine is not None and not access.machines:
        raise server_key_required() if access.kind == "server_key" else PersonRequired
    if access.permission is not None:
        caller.require(*access.permissions)


async def require_fresh_proof(services: Services, access: RouteAccess, caller: Caller, at: int) -> None:
    """Raise FreshProofRequired if the route needs a recent proof of who uses the caller's session.

    Raises Forbidden (`session_required`) for an access token where only sessions are accepted.

    The cached session may be older than a proof on another node, so the time is read from the store.

    Args:
        at: when the request came, in milliseconds.
    """
    session, user = caller.session, caller.user
    if access.session_only and session is None:
        raise Forbidden(
            "An access token was shown, and this call needs a browser session"
            f"{' with a recent proof of who uses it' if access.fresh else ''}: POST /v3/auth/session.",
            code="session_required",
        )
    if not access.fresh or session is None or user is None or is_fresh(session.proved_at, at):
        return
    proved_at, factors = await services.store.read(
        InlineQuery(lambda reader: (reader.proved_at(session.id), reader.factors(user.rowid)))
    )
    if proved_at is None:
        raise Unauthenticated("The session has ended; sign in again.", code="session_ended")
    if not is_fresh(proved_at, at):
        raise FreshProofRequired(proof_methods(user, session, factors, passwords=services.sign_in))


async def _machine(
    services: Services, access: RouteAccess, request: AuthenticationRequest, secret: str
) -> Caller:
    """Return the machine with this secret.

    Raises NotFound if the call names a project other than its own.
    """
    machine, name = await services.machines.authenticate(secret, request.at)
    project = machine.project
    for named in (_named_project(access, request), request.path.get("project_id")):
        if named is not None and named != project.id:
            raise NotFound("There is no such project.", code="project_not_found")
    owner = None
    if access.kind == "project":
        owner = await services.store.read(
            InlineQuery(lambda reader: reader.organisation_of(project.organisation))
        )
    if request.at - max(services.machine_uses.get(machine.rowid, 0), machine.last_used_at or 0) >= _TOUCH_MS:
        await _note_machine(services, machine, request.at)
    known_by = f"machine {machine.rowid}"
    return Caller(project, organisation=owner, credential=known_by, machine=machine, authorizes_as=name)


async def _customer(services: Services, access: RouteAccess, request: AuthenticationRequest) -> Caller:
    """Return the customer whose session's token was shown."""
    token = _bearer(request.headers)
    check_kind(access, token)
    session = await services.customers.authenticate(token, request.at)
    services.customers.check_page(request, session.channel, verified=session.verified)
    return Caller(
        session.project, credential=f"customer {session.id}", authorizes_as=session.id, customer=session
    )


async def _visitor(services: Services, access: RouteAccess, request: AuthenticationRequest) -> Caller:
    """Return the user of a valid session, else an anonymous caller. Raises Forbidden."""
    try:
        session = await services.sessions.of(request, request.at)
        if session is not None:
            return await _user(services, access, request, TokenIdentity("id", session.user_id), session)
    except Unauthenticated:
        pass  # the caller of an ended session is anonymous
    return Caller()


async def _user(
    services: Services,
    access: RouteAccess,
    request: AuthenticationRequest,
    identity: TokenIdentity,
    session: BrowserSession | None = None,
) -> Caller:
    """Return the identified user with the object of the route."""
    named = _named_project(access, request)

    def caller(reader: Reader) -> Caller:
        user = user_of(reader, identity)
        if access.kind in ("dashboard", "either") and not named:
            where = "header or parameter" if access.by_parameter else "header"
            raise BadRequest(f"This call needs the {where} `project`.", code="missing_project")
        found = _caller(reader, access, user, named, request.path)
        if not vouched(session):
            _require_factor(reader, found, user)
        return replace(found, session=session, token=None if session is not None else identity)

    return await services.store.read(InlineQuery(caller))


def _require_factor(reader: Reader, found: Caller, user: User) -> None:
    """Raise Forbidden if the organisation of the call requires a second factor that the user does not have."""
    owner = found.organisation.rowid if found.organisation is not None else None
    if owner is None and found.project is not None:
        owner = found.project.organisation
    if owner is not None and reader.lacks_factor(owner, user.rowid):
        raise Forbidden(
            "The organisation requires a second factor of its members; add one to your account.",
            code="second_factor_required_here",
        )


def _named_project(access: RouteAccess, request: AuthenticationRequest) -> str | None:
    """Return the project id in the header or parameter `project`.

    The parameter counts only if the route accepts it. Returns None without either.
    """
    named = single_value(request.headers, "project")
    if not access.by_parameter:
        return named
    given = request.arguments().get("project", ())
    if named and any(each != named for each in given if is_id(each, "prj")):
        message = "The header and the parameter `project` name different projects."
        raise BadRequest(message, code="bad_query", problems=(Problem("?project", "repeated", message),))
    return named or next(iter(given), None)


def _caller(
    reader: Reader, access: RouteAccess, user: User, named: str | None, path: Mapping[str, str]
) -> Caller:
    """Return the user with the object of the route."""
    known_by = f"user {user.rowid}"
    match access.kind:
        case "organisation":
            organisation, role = membership_of(reader, user, path["organisation_id"])
            return Caller(None, user, organisation, role.id, credential=known_by, granted=role.permissions)
        case "project":
            project, role = project_of(reader, user, path["project_id"])
            owner = reader.organisation_of(project.organisation)
            return Caller(project, user, owner, role.id, credential=known_by, granted=role.permissions)
        case "dashboard" | "either":
            project, role = project_of(reader, user, named or "")
            return Caller(
                project,
                user,
                role=role.id,
                credential=f"{known_by} in {project.rowid}",
                granted=role.permissions,
            )
        case "user" | "visitor":
            return Caller(user=user, named_project=named, credential=known_by)
        case "none" | "metrics" | "server_key" | "customer":
            raise AssertionError(f"no user signs in for {access.kind}")
        case _:
            assert_never(access.kind)


def _admit_scraper(scraping: ScrapeAccess, headers: Fields, peer: str | None) -> None:
    if scraping.token is None:
        scraping.check_local(peer, headers)
    else:
        scraping.check_token(_bearer(headers))


def _bearer(headers: Fields) -> str:
    header = single_value(headers, "authorization")
    if header is None:
        raise Unauthenticated(
            "This call needs the header `Authorization: Bearer …`.", code="missing_credential"
        )
    scheme, _, credential = header.partition(" ")
    if scheme.lower() != "bearer" or not credential.strip():
        raise Unauthenticated("The header `Authorization` must read `Bearer …`.", code="bad_credential")
    return credential.strip()


async def _note_use(services: Services, key: ServerKey, now: int) -> None:
    """Record the last use of the key.

    A full disk does not prevent a read.
    """
    services.key_uses[key.rowid] = now
    try:
        await services.store.write(InlineJob(lambda tx: tx.touch_key(key.rowid, now)))
    except Unavailable as error:
        log.warning("server_key.use_not_noted", reason=error.reason)


async def _note_machine(services: Services, machine: Machine, now: int) -> None:
    """Record the last use of the machine credential.

    A full disk does not prevent a read.
    """
    services.machine_uses[machine.rowid] = now
    try:
        await services.store.write(InlineJob(lambda tx: tx.touch_machine(machine.rowid, now)))
    except Unavailable as error:
        log.warning("machine_credential.use_not_noted", reason=error.reason)


WRONG_KIND: Final = "wrong_credential_kind"

# The kinds of credentials, each with the pattern that identifies it.
_FORMS: Final = (
    ("server key", re.compile(rf"{KEY_PREFIX}\S+")),
    ("machine credential", re.compile(rf"{SECRET_PREFIX}\S+")),
    ("webhook's signing secret", re.compile(r"whsec_\S+")),
    ("customer's session token", re.compile(rf"{SESSION_PREFIX}\S+")),
    ("visitor's session token", re.compile(rf"{VISITOR_PREFIX}\S+")),
    ("channel's secret", re.compile(rf"{CHANNEL_SECRET_PREFIX}\S+")),
    ("access token", re.compile(r"eyJ[\w-]*\.[\w-]*\.[\w-]*")),
    ("stream authorization", re.compile(r"[0-9A-Za-z]{8,40}:eyJ[\w-]*\.[\w-]*\.[\w-]*")),
)

_S2S: Final = frozenset({"server key", "machine credential"})
_PEOPLE: Final = frozenset({"access token", "machine credential"})
_CUSTOMERS: Final = frozenset({"customer's session token", "visitor's session token"})
_FITTING: Final = {"server_key": _S2S, "either": _S2S | _PEOPLE, "customer": _CUSTOMERS}
_NEEDED: Final = {
    "server_key": "a server key (sk_…) or a machine credential (mk_…)",
    "either": "a server key (sk_…), a machine credential (mk_…) or the access token of a user",
    "customer": "the token of a customer's session (ct_… or cv_…)",
}


def kind_of(credential: str) -> str | None:
    """Return the kind of a credential by its form.

    Returns None for an unknown form.
    """
    for kind, form in _FORMS:
        if form.fullmatch(credential):
            return kind
    return None


def check_kind(access: RouteAccess, credential: str) -> None:
    """Raise Unauthenticated for a kind of credential that the route never accepts.

    The code is `wrong_credential_kind`. A credential of unknown form passes, and its own check refuses it.
    The refusal does not repeat the credential.
    """
    kind = kind_of(credential)
    if kind is None or kind in _FITTING.get(access.kind, _PEOPLE):
        return
    raise Unauthenticated(
        f"{'An' if kind[0] == 'a' else 'A'} {kind} was shown, and this call needs {_needed(access)}.",
        code=WRONG_KIND,
    )


def _needed(access: RouteAccess) -> str:
    needed = _NEEDED.get(access.kind)
    if needed is not None:
        return needed
    machine = " or a machine credential (mk_…)" if access.machines else ""
    return f"the access token or session of a user{machine}"


def server_key_required() -> Forbidden:
    """Return the refusal of a machine on a route that has no permission for machines."""
    return Forbidden(
        "A machine credential was shown, and this call needs a server key (sk_…).", code=WRONG_KIND
    )
