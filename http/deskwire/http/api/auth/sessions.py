"""Browser sessions: cookie, cache, and the check of the page's origin (ADR 15).

The cache holds hashes of secrets. The commit that ends a session invalidates the cache on every node before
it is answered: after the response, the session is refused everywhere.

A cookie changes data only for pages of our own origin. Browsers send the origin's relation in
`Sec-Fetch-Site`, which pages can't set; over plain HTTP they do not, and `Origin` is checked. Our own origins
are the public URL's, and the origin in `Host`: a browser sends a cookie only to the host that set it, so a
foreign name for this host has no session.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Protocol
from urllib.parse import urlsplit

import structlog
from msgspec import Struct, field

from deskwire.engine.accounts.factors.passkeys import RelyingParty
from deskwire.engine.accounts.known_browsers import KNOWN_FOR_S
from deskwire.engine.accounts.ports import CallerCommit
from deskwire.engine.accounts.sessions import (
    SESSION_SECRET,
    BrowserSession,
    SessionCommit,
    SessionLifetime,
    SessionReader,
    SessionTransaction,
    hash_session_secret,
    new_session_secret,
)
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.errors import Forbidden, RefusedCredential, Unauthenticated, Unavailable
from deskwire.engine.core.store import InlineJob, InlineQuery, Store
from deskwire.engine.core.values import replace
from deskwire.http.api.input.headers import Fields

log: Final = structlog.get_logger(__name__)

# The recorded time of a session's last use may be this old; it saves a write on every call.
TOUCH_INTERVAL_MS: Final = 60_000

# Some 5 MB; if more sessions are in use, each is looked up now and then.
_CACHE_SIZE_MAX: Final = 10_000

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class CallerSessionCommit(CallerCommit, SessionCommit, Protocol):
    """The part of a commit that ends sessions or may change their limits."""


class SessionRequest(Protocol):
    """The parts of a request that concern its session."""

    @property
    def method(self) -> str:
        """The method as in the request line."""

    @property
    def headers(self) -> Fields:
        """The headers of the request."""

    @property
    def secure(self) -> bool:
        """True if the request came over TLS."""


class Sessions(Struct):
    """The sessions of browsers.

    Args:
        public_url: the URL by which clients reach the service, if it is set.
        allowed: True if users may sign in here.
    """

    store: Store[SessionReader, SessionTransaction]
    life: SessionLifetime
    public_url: str | None = None
    allowed: bool = True
    _known: dict[bytes, BrowserSession] = field(default_factory=dict)

    async def of(self, request: SessionRequest, at: int) -> BrowserSession | None:
        """Return the session in the request's cookie and record its use.

        Returns None if there is no cookie.

        Args:
            at: when the request came, in milliseconds.

        Raises:
            Unauthenticated: the session has ended (`session_ended`), or the cookie is malformed
                (`bad_session_cookie`).
            Forbidden: a changing request does not come from a page of our own (`cross_site_request`).
        """
        secret = session_cookie(request.headers, secure=self.secure(request))
        if secret is None:
            return None
        hashed = hash_session_secret(secret)
        if request.method not in _SAFE:
            try:
                self.require_own_page(request)
            except Forbidden as refused:
                if (
                    known := self._known.get(hashed)
                ) is not None:  # only the cache, because a foreign request must not cause a look-up
                    refused.of(RefusedCredential("user", known.user_id))
                raise
        return await self._found(hashed, at)

    async def good_for(self, request: SessionRequest, at: int) -> int:
        """Return the milliseconds until the request's session expires if it is not used.

        Returns 0 if it has ended. Records no use.
        """
        secret = session_cookie(request.headers, secure=self.secure(request))
        hashed = hash_session_secret(secret or "")
        found = await self.store.read(InlineQuery(lambda reader: reader.session(hashed)))
        return 0 if found is None else max(0, self.life.ends_at(found) - at)

    def require_own_page(self, request: SessionRequest) -> None:
        """See `require_own_page`."""
        require_own_page(request.headers, origin_of(self.public_url), secure=request.secure)

    def is_own(self, origin: str, headers: Fields, *, secure: bool) -> bool:
        """See `is_own`."""
        return is_own(origin, headers, origin_of(self.public_url), secure=secure)

    def relying_party(self, request: SessionRequest) -> RelyingParty | None:
        """See `relying_party`."""
        return relying_party(request.headers, self.public_url, secure=self.secure(request))

    def cookie(self, request: SessionRequest, secret: str) -> str:
        """Return the `Set-Cookie` of a new session.

        The browser keeps it for the installation's limit, because an organisation can lengthen its own later.
        """
        return set_cookie(secret, self.life.longest // 1000, secure=self.secure(request))

    def browser_secret(self, request: SessionRequest) -> str:
        """Return the secret by which the browser is known, a new one if it has none."""
        found = cookie_contents(request.headers, _name(BROWSER_COOKIE_NAME, self.secure(request)))
        if len(found) == 1 and SESSION_SECRET.fullmatch(known := found.pop()) is not None:
            return known
        return new_session_secret()

    def browser_cookie(self, request: SessionRequest, secret: str) -> str:
        """Return the `Set-Cookie` by which the browser is known from now on."""
        secure = self.secure(request)
        name = _name(BROWSER_COOKIE_NAME, secure)
        return f"{name}={secret}; Max-Age={KNOWN_FOR_S}; {_attributes(secure)}"

    def no_cookie(self, request: SessionRequest) -> str:
        """Return the `Set-Cookie` of a session that has ended."""
        return delete_cookie(secure=self.secure(request))

    def secure(self, request: SessionRequest) -> bool:
        """True if the browser uses TLS, at least up to a proxy."""
        return request.secure or (self.public_url or "").startswith("https:")

    def follow(self, commits: Commits[CallerSessionCommit]) -> None:
        """Invalidate the cache with each commit that ends a session or may change the limits of one, from now on."""
        commits.subscribe(lambda _: self.invalidate(), "sessions", "people")

    def invalidate(self) -> None:
        """Empty the cache: a session has ended, or its limits have changed."""
        self._known = {}  # a look-up under way stores its result in the old dict

    async def _found(self, hashed: bytes, at: int) -> BrowserSession:
        known = self._known
        found = known.get(hashed) or await self.store.read(InlineQuery(lambda reader: reader.session(hashed)))
        if found is None or not self.allowed or at >= self.life.ends_at(found):
            raise Unauthenticated("The session has ended; sign in again.", code="session_ended")
        # A clock that was set back must not prolong the session, so a use in the future is replaced as well.
        used = abs(at - found.last_seen_at) >= TOUCH_INTERVAL_MS
        if used:
            found = replace(found, last_seen_at=at)
        if hashed not in known and len(known) >= _CACHE_SIZE_MAX:
            known.clear()
        known[hashed] = found
        if used:
            await self._note_use(found)
        return found

    async def _note_use(self, session: BrowserSession) -> None:
        """Record the last use of the session.

        A full disk does not prevent a read.
        """
        try:
            await self.store.write(InlineJob(lambda tx: tx.touch_session(session.id, session.last_seen_at)))
        except Unavailable as error:
            log.warning("session.use_not_noted", reason=error.reason)


# `__Host-` makes browsers accept the cookie over TLS from this host only (RFC 6265bis 4.1.3.2). Over plain
# HTTP they refuse that name, so a service without TLS uses the plain one; each service reads only its own.
COOKIE_NAME: Final = "deskwire"
BROWSER_COOKIE_NAME: Final = f"{COOKIE_NAME}-device"
_SECURE_PREFIX: Final = "__Host-"
SECURE_COOKIE_NAME: Final = f"{_SECURE_PREFIX}{COOKIE_NAME}"


def session_cookie(headers: Fields, *, secure: bool) -> str | None:
    """Return the session's secret in the request's cookies.

    Returns None without one.

    Raises Unauthenticated (`bad_session_cookie`) for a malformed secret, and for two different ones: another
    page of the host may have set one of them.
    """
    name = _name(COOKIE_NAME, secure)
    given = cookie_contents(headers, name)
    if not given:
        return None
    if len(given) > 1:
        raise Unauthenticated(
            f"The request has two different cookies named {name}; delete this site's cookies and sign in again.",
            code="bad_session_cookie",
        )
    (secret,) = given
    if SESSION_SECRET.fullmatch(secret) is None:
        raise Unauthenticated(
            f"The cookie {name} is none of this service; sign in again.", code="bad_session_cookie"
        )
    return secret


def cookie_contents(headers: Fields, name: str) -> set[str]:
    """Return the contents of the cookies of this name."""
    pairs = (pair.partition("=") for line in headers.getlist("cookie") for pair in line.split(";"))
    return {content.strip() for key, _, content in pairs if key.strip() == name}


def set_cookie(secret: str, lasts_s: int, *, secure: bool) -> str:
    """Return the `Set-Cookie` with a session's secret.

    Args:
        lasts_s: seconds for which the browser keeps it; the service decides whether it is still valid.
    """
    return f"{_name(COOKIE_NAME, secure)}={secret}; Max-Age={lasts_s}; {_attributes(secure)}"


def delete_cookie(*, secure: bool) -> str:
    """Return the `Set-Cookie` that deletes the session's cookie."""
    return f"{_name(COOKIE_NAME, secure)}=; Max-Age=0; {_attributes(secure)}"


def _name(name: str, secure: bool) -> str:
    return f"{_SECURE_PREFIX}{name}" if secure else name


CHALLENGE_COOKIE_NAME: Final = "deskwire-challenge"
_CHALLENGE: Final = re.compile(r"sic_[A-Za-z0-9_-]{32}")


def challenge_in(headers: Fields, *, secure: bool) -> str | None:
    """Return the secret of the pending challenge in the request's cookies, None without exactly one."""
    name = _name(CHALLENGE_COOKIE_NAME, secure)
    given = cookie_contents(headers, name)
    if len(given) != 1:
        return None
    (secret,) = given
    return secret if _CHALLENGE.fullmatch(secret) else None


def set_challenge_cookie(secret: str, lasts_s: int, *, secure: bool) -> str:
    """Return the `Set-Cookie` with a challenge's secret, for a sign-in that returns by a redirect.

    A URL would keep it in the browser's history.
    """
    return f"{_name(CHALLENGE_COOKIE_NAME, secure)}={secret}; Max-Age={lasts_s}; {_attributes(secure)}"


def delete_challenge_cookie(*, secure: bool) -> str:
    """Return the `Set-Cookie` that deletes the challenge's cookie."""
    return f"{_name(CHALLENGE_COOKIE_NAME, secure)}=; Max-Age=0; {_attributes(secure)}"


def relying_party(headers: Fields, public_url: str | None, *, secure: bool) -> RelyingParty | None:
    """Return the domain and origin for passkeys, None where browsers allow none.

    They are those of the public URL, else of `Host`: a passkey is bound to its domain by the browser, so that a foreign
    name in `Host` finds no passkey. Browsers allow passkeys over TLS and on `localhost`, and never for an IP address.
    """
    hosts = headers.getlist("host")
    if public_url is None and len(hosts) != 1:
        return None
    url = public_url or f"{'https' if secure else 'http'}://{hosts[0].lower()}"
    try:
        parts = urlsplit(url)
        name, origin = parts.hostname or "", origin_of(url)
    except ValueError:  # a malformed port or address in `Host`
        return None
    local = name == "localhost" or name.endswith(".localhost")
    if origin is None or not _DOMAIN.fullmatch(name) or not (local or parts.scheme == "https"):
        return None
    return RelyingParty(name, (origin,))


# A domain, whose last label is no number: that would be an IPv4 address (WHATWG URL 3.5).
_DOMAIN: Final = re.compile(r"(?:[a-z0-9_-]+\.)*[a-z0-9-]*[a-z][a-z0-9-]*")


def _attributes(secure: bool) -> str:
    return f"Path=/; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}"


_SAME: Final = "same-origin"
_OWN_NAVIGATIONS: Final = frozenset({_SAME, "none"})
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@lru_cache(maxsize=16)
def origin_of(url: str | None) -> str | None:
    """Return the origin of a URL in the form that browsers use.

    Returns None for None.
    """
    if url is None:
        return None
    parts = urlsplit(url)
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{shown}{port}"


def is_own(origin: str, headers: Fields, public: str | None, *, secure: bool) -> bool:
    """Return whether an `Origin` is our own.

    Args:
        public: the origin of the public URL, if that is set.
        secure: True if the request came over TLS.
    """
    host = headers.getlist("host")
    here = f"{'https' if secure else 'http'}://{host[0].lower()}" if len(host) == 1 else None
    return origin in (public, here)


def require_own_page(headers: Fields, public: str | None, *, secure: bool) -> None:
    """Raise Forbidden unless one of our own pages sends the request.

    The code is `cross_site_request`. The browser declares the page's origin.
    """
    sites, origins = headers.getlist("sec-fetch-site"), headers.getlist("origin")
    if sites:
        if [*sites] != [_SAME]:
            raise _refusal("`Sec-Fetch-Site` is not `same-origin`.")
    elif len(origins) != 1:
        raise _refusal(
            "It has neither `Sec-Fetch-Site` nor `Origin`; use an access token outside of a browser."
        )
    elif not is_own(origins[0], headers, public, secure=secure):
        raise _refusal("`Origin` is not that of this service; is DESKWIRE_PUBLIC_URL right?")


def began_here(headers: Fields) -> bool:
    """Return whether a navigation began on a page of our own, or with the user: a typed address, a bookmark.

    Browsers name the site that began it, also after redirects. Those that send no `Sec-Fetch-Site` are not refused.
    """
    return {*headers.getlist("sec-fetch-site")} <= _OWN_NAVIGATIONS


def _refusal(reason: str) -> Forbidden:
    return Forbidden(
        f"A cookie changes something only for a page of this very origin. {reason}", code="cross_site_request"
    )
