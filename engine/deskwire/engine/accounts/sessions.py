"""Sessions of people who have signed in with a browser: how they are made, how long they last, who is told of their end.

A session is 32 random bytes, of which the SHA-256 is stored. It ends by itself when it was not used for a while, or is too
old; and for good when its row goes: by sign-out, revocation, a new password, or with its user. Storage notices each
row that goes, whatever the way, and the commit tells: `SessionCommit.sessions`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import User
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import Conflict, NotFound
from deskwire.engine.core.secret import Secrets, derived_key

_BYTES: Final = 32
SESSION_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""The form of a session's secret: 32 bytes in base64url."""

SESSIONS_MAX: Final = 100
"""The sessions that a user may have at once; a further one ends the one that was used longest ago."""

CLIENT_MAX: Final = 120
"""The characters of a browser's name that are kept."""


class BrowserSession(Struct, frozen=True):
    """A session as it is stored. Times are in milliseconds.

    Args:
        id: public and not secret; also what `SessionCommit` tells.
        user_id: the public id of whose it is.
        client: the browser's name for itself, shortened.
        last_seen_at: when it was last used, noted once in a while.
        rowid: its storage key; 0 for one that is not stored yet.
    """

    id: str
    user_id: str
    client: str
    created_at: int
    last_seen_at: int
    rowid: int = 0


class SessionLifetime(Struct, frozen=True):
    """The time that sessions last, in milliseconds: `idle` since they were used, `longest` since their beginning."""

    idle: int
    longest: int

    def ends_at(self, session: BrowserSession) -> int:
        """Return when the session ends unless it is used before (ms)."""
        return min(session.last_seen_at + self.idle, session.created_at + self.longest)

    def over(self, now: int) -> SessionCutoffs:
        """Return what sessions that are over at this time (ms) have in common."""
        return SessionCutoffs(now - self.idle, now - self.longest)


class SessionCutoffs(Struct, frozen=True):
    """The age of sessions that are over: used at `used` or before, or made at `made` or before (ms)."""

    used: int
    made: int


class SessionReader(Protocol):
    """Queries on sessions, ended by their age or not."""

    def session(self, hashed: bytes) -> BrowserSession | None:
        """Return the session whose secret has this SHA-256."""

    def lasts(self, session_id: str) -> bool:
        """Tell whether there is a session with this id, or no access token of this id has ended."""

    def sessions_of(
        self, user: int, over: SessionCutoffs, before: int, limit: int
    ) -> Sequence[BrowserSession]:
        """Return the sessions of a user (storage key) that are not over, newest first, with storage keys below `before`."""


class SessionTransaction(SessionReader, Protocol):
    """Changes of sessions."""

    def user(self, user_id: str) -> User | None:
        """Return the user with this id."""

    def insert_session(self, session: BrowserSession, user: int, hashed: bytes) -> None:
        """Store a new session of the user with this storage key."""

    def touch_session(self, session_id: str, at: int) -> None:
        """Note when a session was last used (ms)."""

    def end_session(self, user: int, session_id: str) -> bool:
        """Delete and record a session of a user (storage key); return whether there was one."""

    def end_sessions(self, user: int, but: str | None) -> int:
        """Delete and record a user's sessions, except the one with this id; return how many there were."""

    def evict_sessions(self, user: int, kept: int) -> None:
        """Delete and record those of a user's sessions that were used longest ago, so that `kept` are left."""

    def prune_sessions(self, over: SessionCutoffs, limit: int) -> int:
        """Delete at most so many sessions that are over; return how many there were."""


class SessionCommit(Protocol):
    """The effect of a commit on sessions. Subscribe with the part `sessions`: `commits.subscribe(receiver, "sessions")`."""

    @property
    def sessions(self) -> Sequence[str]:
        """The ids of sessions and access tokens that have ended, each once in the life of the service."""


def new_session_secret() -> str:
    """Return the secret of a new session, for its cookie."""
    return secrets.token_urlsafe(_BYTES)


def hash_session_secret(secret: str) -> bytes:
    """Return the SHA-256 of a session's secret, which is stored in its place. The secret is random: it needs no salt."""
    return hashlib.sha256(secret.encode()).digest()


def begin_session(tx: SessionTransaction, user: User, session: BrowserSession, hashed: bytes) -> None:
    """Store a session for the user, who has just shown the password.

    Raises Conflict (`password_changed`) if that is another one by now, or the account is gone.
    """
    now = tx.user(user.id)
    if now is None or now.generation != user.generation:
        raise Conflict("The password has just been changed by another call.", code="password_changed")
    tx.evict_sessions(user.rowid, SESSIONS_MAX - 1)
    tx.insert_session(session, user.rowid, hashed)


def end_own_session(tx: SessionTransaction, user: int, session_id: str) -> None:
    """End a session of a user (storage key). Raises NotFound (`browser_session_not_found`) if it is none of theirs."""
    if not tx.end_session(user, session_id):
        raise NotFound("You have no such session; it may have ended.", code="browser_session_not_found")


def session_view(session: BrowserSession, current: str | None) -> dict[str, Any]:
    """Return the session object.

    Args:
        current: the id of the session that asks.
    """
    return {
        "id": session.id,
        "createdAt": iso(session.created_at),
        "lastSeenAt": iso(session.last_seen_at),
        "client": session.client,
        "current": session.id == current,
    }


def client_name(user_agent: str | None) -> str:
    """Return what is kept of a `User-Agent`: printable, in one line, and not longer than CLIENT_MAX."""
    printable = "".join(each if each.isprintable() else " " for each in user_agent or "")
    return " ".join(printable.split())[:CLIENT_MAX]


_LABEL: Final = "browser storage"


def browser_keys(secrets: Secrets, user_id: str) -> Sequence[str]:
    """Return a user's keys as base64url of 32 bytes: the one to seal with, then those of former secrets, which open.

    They are the same for as long as the installation's secret is, so a browser opens what it has kept after the next
    sign-in. They are given only to a session that is valid.
    """
    return [_key(derived_key(secret, _LABEL), user_id) for secret in secrets.known]


def _key(purpose: bytes, user_id: str) -> str:
    digest = hmac.new(purpose, user_id.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
