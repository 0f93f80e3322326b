"""The sessions of browsers as requests bring them along, those that were looked up remembered.

What is remembered is by the hash of the secret, and forgotten with the commit that ends any session, before that
commit is answered: who ends a session and hears so can rely on it.
"""

from __future__ import annotations

from typing import Final, Protocol

import structlog
from msgspec import Struct, field

from deskwire.engine.accounts.sessions import (
    BrowserSession,
    SessionCommit,
    SessionLifetime,
    SessionReader,
    SessionTransaction,
    hash_session_secret,
)
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.errors import Forbidden, RefusedCredential, Unauthenticated, Unavailable
from deskwire.engine.core.store import InlineJob, InlineQuery, Store
from deskwire.engine.core.values import replace
from deskwire.http.api.cookies import session_cookie, setting, taking_back
from deskwire.http.api.input.headers import Fields
from deskwire.http.api.origins import is_own, origin_of, require_own_page

log: Final = structlog.get_logger(__name__)

TOUCH_MS: Final = 60_000
"""How old the noted time of a session's last use may be; it saves a write on every call."""

_KEPT_MAX: Final = 10_000
"""Sessions that are remembered, some 5 MB; with more of them in use at once each is looked up now and then."""

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Asking(Protocol):
    """The request, as far as its session is concerned."""

    @property
    def method(self) -> str:
        """The method as in the request line."""

    @property
    def headers(self) -> Fields:
        """The request's headers, all of them."""

    @property
    def secure(self) -> bool:
        """True if the request came by TLS."""


class Sessions(Struct):
    """The sessions of the callers.

    Args:
        public_url: the URL by which clients reach the service, if it is set.
        allowed: whether users sign in here at all.
    """

    store: Store[SessionReader, SessionTransaction]
    life: SessionLifetime
    public_url: str | None = None
    allowed: bool = True
    _known: dict[bytes, BrowserSession] = field(default_factory=dict)

    async def of(self, request: Asking, at: int) -> BrowserSession | None:
        """Return the session in the request's cookie, noted as used; None if there is no cookie.

        Args:
            at: when the request came, in milliseconds.

        Raises:
            Unauthenticated: the session has ended (`session_ended`), or the cookie is none (`bad_session_cookie`).
            Forbidden: the request would change something, and no page of ours makes it (`cross_site_request`).
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
                ) is not None:  # only that, so that nothing is looked up for it
                    refused.of(RefusedCredential("user", known.user_id))
                raise
        return await self._found(hashed, at)

    async def good_for(self, request: Asking, at: int) -> int:
        """Return the milliseconds that the request's session lasts unless it is used, 0 if it has ended; not noted as used."""
        secret = session_cookie(request.headers, secure=self.secure(request))
        hashed = hash_session_secret(secret or "")
        found = await self.store.read(InlineQuery(lambda reader: reader.session(hashed)))
        return 0 if found is None else max(0, self.life.ends_at(found) - at)

    def require_own_page(self, request: Asking) -> None:
        """See `origins.require_own_page`."""
        require_own_page(request.headers, origin_of(self.public_url), secure=request.secure)

    def is_own(self, origin: str, headers: Fields, *, secure: bool) -> bool:
        """See `origins.is_own`."""
        return is_own(origin, headers, origin_of(self.public_url), secure=secure)

    def cookie(self, request: Asking, secret: str) -> str:
        """Return the `Set-Cookie` of a new session."""
        return setting(secret, self.life.longest // 1000, secure=self.secure(request))

    def no_cookie(self, request: Asking) -> str:
        """Return the `Set-Cookie` of a session that has ended."""
        return taking_back(secure=self.secure(request))

    def secure(self, request: Asking) -> bool:
        """Tell whether the browser has come by TLS, be it as far as a proxy."""
        return request.secure or (self.public_url or "").startswith("https:")

    def follow(self, commits: Commits[SessionCommit]) -> None:
        """Forget what commits end from now on."""
        commits.subscribe(lambda _: self.forget(), "sessions")

    def forget(self) -> None:
        """Look all up again: a session has ended."""
        self._known = {}  # a look-up under way remembers what it finds in the old one

    async def _found(self, hashed: bytes, at: int) -> BrowserSession:
        known = self._known
        found = known.get(hashed) or await self.store.read(InlineQuery(lambda reader: reader.session(hashed)))
        if found is None or not self.allowed or at >= self.life.ends_at(found):
            raise Unauthenticated("The session has ended; sign in again.", code="session_ended")
        used = at - found.last_seen_at >= TOUCH_MS
        if used:
            found = replace(found, last_seen_at=at)
        if hashed not in known and len(known) >= _KEPT_MAX:
            known.clear()
        known[hashed] = found
        if used:
            await self._note_use(found)
        return found

    async def _note_use(self, session: BrowserSession) -> None:
        """Record when the session was last used; a full disk does not stop a read."""
        try:
            await self.store.write(InlineJob(lambda tx: tx.touch_session(session.id, session.last_seen_at)))
        except Unavailable as error:
            log.warning("session.use_not_noted", reason=error.reason)
