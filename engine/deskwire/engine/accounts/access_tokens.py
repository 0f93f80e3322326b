"""Access tokens one by one: which were issued, and which of them have ended before their time (ADR 15).

A token is signed, so that checking it takes no query. A node keeps the ids of those that have ended in memory, and reads
them again after each commit that ends one. What the installation has not issued itself is known by a hash of what was signed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import User
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import NotFound, TooManyRequests
from deskwire.engine.core.ids import new_id

ID_PREFIX: Final = "tok"

ENDED_MAX: Final = 1_000
"""Ended tokens of one user that have not expired yet: every node keeps them in memory. A new password ends any number."""

Source = Literal["sign_in", "password_change", "operator", "elsewhere"]
"""The way in which a token was issued; those from `elsewhere` were signed by another party."""


class AccessToken(Struct, frozen=True):
    """A token as it is stored. Times are in milliseconds.

    Args:
        id: `tok_…`, the claim `jti`; of one from elsewhere a hash.
        user_id: whose it is.
        client: the client's name for itself, shortened.
        generation: that of the user's password when the token was issued.
        rowid: its storage key; 0 for one that is not stored yet.
    """

    id: str
    user_id: str
    source: Source
    client: str
    generation: int
    created_at: int
    expires_at: int
    ended_at: int | None = None
    rowid: int = 0


class AccessTokenReader(Protocol):
    """Queries on access tokens."""

    def access_token(self, token_id: str) -> AccessToken | None:
        """Return the token with this id, in force or not."""

    def access_tokens_of(self, user: int, now: int, before: int, limit: int) -> Sequence[AccessToken]:
        """Return the tokens of a user (storage key) that are in force, newest first, with storage keys below `before`."""

    def ended_tokens(self, now: int) -> Collection[str]:
        """Return the ids of the tokens that were ended and have not expired."""

    def count_ended_tokens(self, user: int, now: int) -> int:
        """Return the number of these of a user (storage key)."""


class AccessTokenTransaction(AccessTokenReader, Protocol):
    """Changes of access tokens."""

    def user(self, user_id: str) -> User | None:
        """Return the user with this id."""

    def insert_access_token(self, token: AccessToken, user: int) -> None:
        """Store a token of the user with this storage key."""

    def end_access_token(self, token_id: str, user: int, at: int) -> None:
        """Note and record that a stored token of a user (storage key) has ended."""

    def prune_access_tokens(self, now: int, limit: int) -> int:
        """Delete at most so many tokens that have expired; return how many there were."""


def new_access_token(user: User, source: Source, client: str, now: int, lifetime_s: int) -> AccessToken:
    """Return a token of the user that is not stored yet, valid for `lifetime_s` seconds from `now` (ms)."""
    ends = (now // 1000 + lifetime_s) * 1000
    return AccessToken(new_id(ID_PREFIX, now), user.id, source, client, user.generation, now, ends)


def foreign_id(token: str) -> str:
    """Return the id of a token that was issued elsewhere: a hash of what its signature covers.

    The signature itself may be written in several ways.
    """
    signed, _, _ = token.rpartition(".")
    return f"{ID_PREFIX}_{hashlib.sha256(signed.encode()).hexdigest()}"


def end_token(tx: AccessTokenTransaction, token_id: str, user: int, now: int) -> AccessToken:
    """End a token of a user (storage key); return it as it was. One that has ended already stays so.

    Raises NotFound (`token_not_found`) for what is no token of theirs in force, TooManyRequests (`too_many_ended_tokens`).
    """
    token = tx.access_token(token_id)
    owner = None if token is None else tx.user(token.user_id)
    if token is None or owner is None or owner.rowid != user or token.expires_at <= now:
        raise NotFound("There is no such access token; it may have expired.", code="token_not_found")
    if token.ended_at is None:
        if tx.count_ended_tokens(user, now) >= ENDED_MAX:
            raise TooManyRequests(
                f"{ENDED_MAX:,} access tokens of this user have been ended and not expired. A new password ends all of them.",
                code="too_many_ended_tokens",
                retry_after_s=60,
            )
        tx.end_access_token(token_id, user, now)
    return token


def end_shown_token(tx: AccessTokenTransaction, token: AccessToken, user: User, now: int) -> None:
    """End the token that a call was made with, also one that was issued elsewhere. Raises TooManyRequests."""
    if tx.access_token(token.id) is None:
        tx.insert_access_token(token, user.rowid)
    end_token(tx, token.id, user.rowid, now)


def access_token_view(token: AccessToken, current: str | None) -> dict[str, Any]:
    """Return the token object.

    Args:
        current: the id of the token that asks.
    """
    return {
        "id": token.id,
        "createdAt": iso(token.created_at),
        "expiresAt": iso(token.expires_at),
        "source": token.source,
        "client": token.client,
        "current": token.id == current,
    }
