"""Customers' sessions: the cache of their tokens, and the check of the page that calls.

The cache holds hashes of tokens. The commit that ends a session removes it from the cache on every node before it is answered:
after the response, the token is refused everywhere. A visitor without a message has no row and is not cached, because the first
message of another tab would have to invalidate the cache on all nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

import structlog
from msgspec import Struct, field

from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.ports import CallerCommit
from deskwire.engine.accounts.sessions import SessionCommit
from deskwire.engine.channels.channel import Channel
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.encryption import DecryptionFailed, Encryption
from deskwire.engine.core.errors import DomainError, Forbidden, NotFound, Unavailable
from deskwire.engine.core.store import InlineJob, InlineQuery, Store
from deskwire.engine.core.values import replace
from deskwire.engine.customers.session import (
    IDLE_MS,
    CustomerSession,
    CustomerSessionReader,
    CustomerSessionTransaction,
    accepts,
    check_live,
    expiry,
    identity_required,
    session_ended,
)
from deskwire.engine.customers.tokens import VISITOR_PREFIX, Visitor, VisitorTokens, hash_token
from deskwire.http.api.auth.sessions import Sessions
from deskwire.http.api.channel_cache import ChannelCache
from deskwire.http.api.input.headers import Fields

log: Final = structlog.get_logger(__name__)

# The recorded time of a session's last use may be this old; it saves a write on every call.
TOUCH_INTERVAL_MS: Final = 60_000

# Uses of sessions are recorded by one commit at most in this interval: after a restart the panels of a website all come back at once.
USES_INTERVAL_MS: Final = 1_000

# Codes of refused starts of sessions.
START_REFUSALS: Final = (
    "channel_disabled",
    "channel_not_found",
    "identity_expired",
    "identity_invalid",
    "identity_required",
    "merge_under_way",
    "origin_not_allowed",
    "rate_limited",
    "reserved_user_id",
    "session_ended",
)

# Some 10 MB; if more sessions are in use, each is looked up now and then.
_CACHE_SIZE_MAX: Final = 20_000


class PageRequest(Protocol):
    """The parts of a request that concern the page that sends it."""

    @property
    def headers(self) -> Fields:
        """The headers of the request."""

    @property
    def secure(self) -> bool:
        """True if the request came over TLS."""


class SessionCounters(Struct):
    """Counts of starts of sessions since the start of the process, for metrics.

    Args:
        started: by kind: `signed` and `visitor` for new sessions, `resumed` for known ones.
        refused: by code; `other` for codes that are not in `START_REFUSALS`.
    """

    started: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("signed", "visitor", "resumed"), 0)
    )
    refused: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*START_REFUSALS, "other"), 0))

    @contextmanager
    def counting_refusals(self) -> Iterator[None]:
        """Count a refusal that the context raises."""
        try:
            yield
        except DomainError as refusal:
            self.refused[refusal.reason if refusal.reason in self.refused else "other"] += 1
            raise


class CustomerSessions(Struct):
    """The sessions of customers by their tokens.

    Args:
        channels: the channels of visitors without a row.
        tokens: issues and reads the tokens of visitors.
        sealing: encrypts the secrets of channels.
        pages: knows our own origins.
        counters: of starts of sessions.
    """

    store: Store[CustomerSessionReader, CustomerSessionTransaction]
    channels: ChannelCache
    tokens: VisitorTokens
    sealing: Encryption
    pages: Sessions
    counters: SessionCounters = field(default_factory=SessionCounters)
    _known: dict[bytes, CustomerSession] = field(default_factory=dict)
    _hashes: dict[str, bytes] = field(default_factory=dict)  # by the session's id
    _shared: dict[int, tuple[Project, Channel]] = field(default_factory=dict)  # by channel, for its sessions
    _invalidations: int = 0
    _uses: dict[int, tuple[int, int]] = field(
        default_factory=dict
    )  # last use and expiry by the session's key, not recorded yet
    _recorded_at: int = 0

    async def authenticate(self, token: str, now: int) -> CustomerSession:
        """Return the live session of a token, and record its use. `now` is in milliseconds.

        Raises Unauthenticated (`session_ended`, `identity_required`) and Conflict (`channel_disabled`); see `check_live`.
        """
        hashed = hash_token(token)
        session = self._known.get(hashed) or await self._looked_up(token, hashed)
        check_live(session, now)
        if (rowid := session.rowid) is not None and now - session.last_used_at >= TOUCH_INTERVAL_MS:
            session = replace(session, last_used_at=now, expires_at=expiry(session.created_at, now))
            if hashed in self._known:
                self._known[hashed] = session
            self._uses[rowid] = (session.last_used_at, session.expires_at)
        if self._uses and not 0 <= now - self._recorded_at < USES_INTERVAL_MS:
            await self._record_uses(now)
        return session

    def new_visitor(self, project: Project, channel: Channel, now: int) -> tuple[str, CustomerSession]:
        """Return a new visitor's token and session, of which nothing is stored. `now` is in milliseconds.

        Raises Unauthenticated (`identity_required`) if the channel takes no visitors.
        """
        if not accepts(channel, verified=False):
            raise identity_required()
        token = self.tokens.issue(channel.id, now)
        visitor = self.tokens.read(token)
        assert visitor is not None, "the token is of this service"
        return token, visitor_session(visitor, project, channel, hash_token(token))

    def secrets_of(self, channel: Channel, now: int) -> Sequence[str]:
        """Return the secrets of a channel that count at `now` (ms), the current one first.

        Raises Unavailable (`signing_keys_unavailable`) if they can't be decrypted.
        """
        try:
            return [self.sealing.open(each) for each in channel.accepted_secrets(now)]
        except DecryptionFailed as error:
            raise Unavailable(str(error), code="signing_keys_unavailable") from error

    def check_page(self, request: PageRequest, channel: Channel, *, verified: bool) -> None:
        """Raise Forbidden (`origin_not_allowed`) unless this page may use the channel.

        Pages of our own origin may, and those of the origins that the channel names. A call without an `Origin` comes from one of
        our pages, which `Sec-Fetch-Site` proves, or from a native app.

        Args:
            verified: whether the call has a signed identity, which native apps need.
        """
        headers = request.headers
        origins = headers.getlist("origin")
        if not origins:
            if [*headers.getlist("sec-fetch-site")] == ["same-origin"] or (channel.native and verified):
                return
            raise _refused(
                "The call has no `Origin`. Apps outside of a browser need a channel with `native: true`, and a signed identity."
            )
        if len(origins) == 1:
            (origin,) = origins
            if self.pages.is_own(origin, headers, secure=request.secure) or channel.allows_origin(origin):
                return
        raise _refused("The channel does not allow this website: add its origin to the channel's `origins`.")

    def follow(self, commits: Commits[CallerCommit]) -> None:
        """Empty the cache with each commit that changes callers or channels, from now on."""
        commits.subscribe(lambda _: self.invalidate(), "callers")

    def follow_ends(self, commits: Commits[SessionCommit]) -> None:
        """Remove sessions from the cache with the commits that end them, from now on."""
        commits.subscribe(lambda commit: self._remove(commit.sessions), "sessions")

    def invalidate(self) -> None:
        """Empty the cache: sessions, channels or projects have changed."""
        self._invalidations += 1
        self._known, self._hashes, self._shared = {}, {}, {}

    def forget(self, session: CustomerSession) -> None:
        """Remove a session from the cache: it has changed."""
        self._remove((session.id,))

    def _remove(self, ids: Iterable[str]) -> None:
        for each in ids:
            if each.startswith("cse_"):
                self._invalidations += 1
                self._known.pop(self._hashes.pop(each, b""), None)

    async def _looked_up(self, token: str, hashed: bytes) -> CustomerSession:
        """Return the session of a token that is not cached. Raises Unauthenticated."""
        before = self._invalidations
        found = await self.store.read(InlineQuery(lambda reader: reader.customer_session(hashed)))
        if found is None:
            return await self._visitor(token, hashed)
        if found.contact is None:
            raise session_ended()
        if before == self._invalidations:  # else the session may have ended during the look-up
            self._cache(hashed, found)
        return found

    def _cache(self, hashed: bytes, session: CustomerSession) -> None:
        if len(self._known) >= _CACHE_SIZE_MAX:
            self._known, self._hashes = {}, {}
        shared = self._shared.setdefault(session.channel.rowid, (session.project, session.channel))
        self._known[hashed] = replace(session, project=shared[0], channel=shared[1])
        self._hashes[session.id] = hashed

    async def _visitor(self, token: str, hashed: bytes) -> CustomerSession:
        """Return the session of a visitor without a message. Raises Unauthenticated."""
        visitor = self.tokens.read(token) if token.startswith(VISITOR_PREFIX) else None
        if visitor is None:
            raise session_ended(
                "The session has ended, or its token is not of this service; start another one."
            )
        try:
            project, channel = await self.channels.find(visitor.channel_id)
        except NotFound:
            raise session_ended("The channel of the session was removed.") from None
        return visitor_session(visitor, project, channel, hashed)

    async def _record_uses(self, now: int) -> None:
        """Record the last uses of sessions.

        A full disk does not prevent a read.
        """
        uses, self._uses, self._recorded_at = self._uses, {}, now

        def record(tx: CustomerSessionTransaction) -> None:
            for rowid, (at, until) in uses.items():
                tx.touch_customer_session(rowid, at, until)

        try:
            await self.store.write(InlineJob(record) if len(uses) == 1 else record)
        except Unavailable as error:
            log.warning("customer_session.use_not_noted", reason=error.reason)


def visitor_session(visitor: Visitor, project: Project, channel: Channel, hashed: bytes) -> CustomerSession:
    """Return the session of a visitor of whom nothing is stored."""
    issued = visitor.issued_at
    return CustomerSession(
        None,
        visitor.session_id,
        project,
        channel,
        None,
        visitor.user_id,
        verified=False,
        signed=frozenset(),
        created_at=issued,
        expires_at=issued + IDLE_MS,
        last_used_at=issued,
        token_hash=hashed,
    )


def _refused(detail: str) -> Forbidden:
    return Forbidden(detail, code="origin_not_allowed")
