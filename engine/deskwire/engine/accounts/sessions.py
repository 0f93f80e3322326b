"""Browser sessions: creation, lifetime, end, and the keys for data that the browser stores.

The secret of a session is 32 random bytes. Only its SHA-256 is stored. A session expires after a time without use, or at a
maximum age. It ends immediately when its row is deleted: by sign-out, revocation, a new password, or with its user. The commit
of each deletion publishes the id (`SessionCommit.sessions`).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import User
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import Conflict, NotFound
from deskwire.engine.core.secret import Secrets, derived_key

_BYTES: Final = 32
SESSION_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""Pattern of a session's secret: 32 bytes in base64url."""

SESSIONS_MAX: Final = 100
"""Maximum number of sessions per user. A sign-in beyond it evicts the least recently used session."""

CLIENT_MAX: Final = 120
"""Maximum length of the stored `User-Agent`."""


SignInMethod = Literal["password", "passkey", "oidc", "invitation"]
"""A way to sign in with a browser. `invitation`: a one-time link, by which the user also chose a password."""


class BrowserSessionLimits(Struct, frozen=True):
    """The limits that organisations set for the sessions of their members, in seconds: `idle_s` since the last use, `longest_s`
    since the start.

    None leaves the limit of the installation.
    """

    idle_s: int | None = None
    longest_s: int | None = None


NO_LIMITS: Final = BrowserSessionLimits()

IDLE_MIN_S: Final = 300
LONGEST_MIN_S: Final = 900
"""The shortest limits that an organisation can set. With shorter ones, agents would sign in again during one conversation."""


class BrowserSession(Struct, frozen=True):
    """A browser session. Times are in milliseconds.

    Args:
        id: public id, published by `SessionCommit` when the session ends.
        user_id: public id of its user.
        client: shortened `User-Agent` of the browser.
        last_seen_at: time of the last use, updated at intervals.
        rowid: storage key, 0 before it is stored.
        method: the way in which the user signed in.
        proved_at: time at which the user last proved who uses the session: at the sign-in, or by a step-up.
        second_factor: whether the user proved a second factor, or an identity provider vouches for one.
        provider: the identity provider that signed the user in, with its own id of the session (`sid`), if it gave one.
        limits: the strictest limits of the user's organisations at the time of the query.
        vouched: whether it is the identity provider that vouches for the second factor.
    """

    id: str
    user_id: str
    client: str
    created_at: int
    last_seen_at: int
    rowid: int = 0
    method: SignInMethod = "password"
    proved_at: int = 0
    second_factor: bool = False
    provider: str | None = None
    provider_sid: str | None = None
    limits: BrowserSessionLimits = NO_LIMITS
    vouched: bool = False


class SessionLifetime(Struct, frozen=True):
    """The lifetime of sessions in milliseconds: `idle` since the last use, `longest` since their start."""

    idle: int
    longest: int

    def ends_at(self, session: BrowserSession) -> int:
        """Return the time (ms) at which the session expires unless it is used before then."""
        life = self.within(session.limits)
        return min(session.last_seen_at + life.idle, session.created_at + life.longest)

    def within(self, limits: BrowserSessionLimits) -> SessionLifetime:
        """Return the lifetime of a user's sessions: the installation's, or what organisations allow if that is shorter."""
        return SessionLifetime(_shorter(self.idle, limits.idle_s), _shorter(self.longest, limits.longest_s))

    def over(self, now: int) -> SessionCutoffs:
        """Return the cutoffs of sessions that have expired at `now` (ms)."""
        return SessionCutoffs(now - self.idle, now - self.longest)


def _shorter(installation: int, limit_s: int | None) -> int:
    return installation if limit_s is None else min(installation, limit_s * 1000)


class SessionCutoffs(Struct, frozen=True):
    """The cutoffs of expired sessions: last used at or before `used`, or started at or before `made` (ms)."""

    used: int
    made: int


class SessionReader(Protocol):
    """Queries on sessions.

    They include expired ones that are not deleted yet, unless said otherwise.
    """

    def session(self, hashed: bytes) -> BrowserSession | None:
        """Return the session with this SHA-256 of its secret."""

    def proved_at(self, session_id: str) -> int | None:
        """Return the time (ms) of the last proof in the session with this id.

        A cached session may have an older time.
        """

    def session_with(self, session_id: str) -> BrowserSession | None:
        """Return the session with this id."""

    def lasts(self, session_id: str) -> bool:
        """Return whether a session with this id exists.

        For an access token's id: whether it is not revoked.
        """

    def session_limits(self, user: int) -> BrowserSessionLimits:
        """Return the strictest limits of the organisations of a user (storage key)."""

    def sessions_of(
        self, user: int, over: SessionCutoffs, before: int, limit: int
    ) -> Sequence[BrowserSession]:
        """Return the unexpired sessions of a user (storage key), newest first, with storage keys below `before`."""


class SessionTransaction(SessionReader, Protocol):
    """Changes of sessions."""

    def user(self, user_id: str) -> User | None:
        """Return the user with this id."""

    def insert_session(self, session: BrowserSession, user: int, hashed: bytes) -> None:
        """Store a new session of the user with this storage key."""

    def touch_session(self, session_id: str, at: int) -> None:
        """Store the time (ms) at which a session was last used."""

    def prove_session(self, session_id: str, at: int, provider_sid: str | None = None) -> bool:
        """Store the time (ms) at which the user proved who uses the session, and the provider's session in which that was.

        Return whether the session exists.
        """

    def end_session(self, user: int, session_id: str) -> bool:
        """Delete and record a session of a user (storage key). Return whether it existed."""

    def end_sessions(self, user: int, but: str | None) -> int:
        """Delete and record a user's sessions, except the one with the id `but`.

        Return the number of sessions deleted.
        """

    def evict_sessions(self, user: int, kept: int) -> None:
        """Delete and record the least recently used sessions of a user, so that `kept` remain."""

    def prune_sessions(self, over: SessionCutoffs, now: int, limit: int) -> int:
        """Delete up to `limit` sessions that have expired by the installation's limits, and as many by their organisations'.

        Return the number deleted.
        """

    def end_sessions_over_limits(self, organisation: int, now: int) -> int:
        """Delete and record the sessions of an organisation's members that have passed its limits at `now` (ms).

        Return the number deleted.
        """


class SessionCommit(Protocol):
    """The effect of a commit on sessions.

    Subscribe with the part `sessions`: `commits.subscribe(receiver, "sessions")`.
    """

    @property
    def sessions(self) -> Sequence[str]:
        """The ids of sessions and access tokens that have ended. Each id is published once."""


def new_session_secret() -> str:
    """Return a secret for the cookie of a new session."""
    return secrets.token_urlsafe(_BYTES)


def hash_session_secret(secret: str) -> bytes:
    """Return the SHA-256 of a session's secret, which is stored.

    It needs no salt because the secret is random.
    """
    return hashlib.sha256(secret.encode()).digest()


def begin_session(tx: SessionTransaction, user: User, session: BrowserSession, hashed: bytes) -> None:
    """Store a session for a user whose password was just verified.

    Raises Conflict (`password_changed`) if the password has changed since, or the account is gone.
    """
    now = tx.user(user.id)
    if now is None or now.generation != user.generation:
        raise Conflict("The password has just been changed by another call.", code="password_changed")
    tx.evict_sessions(user.rowid, SESSIONS_MAX - 1)
    tx.insert_session(session, user.rowid, hashed)


def end_one_session(tx: SessionTransaction, user: int, session_id: str) -> None:
    """End a session of a user (storage key).

    Raises NotFound (`browser_session_not_found`) if the user has no such session.
    """
    if not tx.end_session(user, session_id):
        raise NotFound("There is no such session; it may have ended.", code="browser_session_not_found")


def session_view(session: BrowserSession, current: str | None) -> dict[str, Any]:
    """Return the session object.

    Args:
        current: id of the session of the current call.
    """
    return {
        "id": session.id,
        "createdAt": iso(session.created_at),
        "lastSeenAt": iso(session.last_seen_at),
        "client": session.client,
        "current": session.id == current,
        "signedInBy": session.method,
        "secondFactor": session.second_factor,
        "provider": session.provider,
    }


def client_name(user_agent: str | None) -> str:
    """Return a `User-Agent` in its stored form: printable, on one line, at most CLIENT_MAX characters."""
    printable = "".join(each if each.isprintable() else " " for each in user_agent or "")
    return " ".join(printable.split())[:CLIENT_MAX]


_LABEL: Final = "browser storage"


def browser_keys(secrets: Secrets, user_id: str) -> Sequence[str]:
    """Return the keys with which a browser encrypts its user's unsent texts: 32 bytes each, in base64url.

    The first key encrypts. The others, from previous secrets, only decrypt. Keys change only with the secret of the
    installation, so the browser can decrypt its data after the next sign-in. Only a valid session gets them.
    """
    return [_key(derived_key(secret, _LABEL), user_id) for secret in secrets.known]


def _key(purpose: bytes, user_id: str) -> str:
    digest = hmac.new(purpose, user_id.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
