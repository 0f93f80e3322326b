"""The registry of issued access tokens, by which a single token can be revoked before it expires (ADR 15).

Tokens are signed, so checking one takes no query. Each node caches the ids of revoked tokens and reloads them after each
commit that revokes one. A token that another party issued is known by a hash of its signed part.
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
"""Maximum number of revoked, unexpired tokens of one user. Every node caches them. A new password revokes any number."""

Source = Literal["sign_in", "password_change", "operator", "elsewhere"]
"""How a token was issued. `elsewhere` means signed by another party."""


class AccessToken(Struct, frozen=True):
    """An issued token. Times are in milliseconds.

    Args:
        id: `tok_…`, the claim `jti`. For a token of another party a hash (`foreign_id`).
        user_id: id of its user.
        client: shortened `User-Agent` of the client.
        generation: the user's `generation` when the token was issued.
        rowid: storage key, 0 before it is stored.
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
        """Return the token with this id, valid or not."""

    def access_tokens_of(self, user: int, now: int, before: int, limit: int) -> Sequence[AccessToken]:
        """Return the valid tokens of a user (storage key), newest first, with storage keys below `before`."""

    def ended_tokens(self, now: int) -> Collection[str]:
        """Return the ids of revoked tokens that have not expired."""

    def count_ended_tokens(self, user: int, now: int) -> int:
        """Return the number of revoked, unexpired tokens of a user (storage key)."""


class AccessTokenTransaction(AccessTokenReader, Protocol):
    """Changes of access tokens."""

    def user(self, user_id: str) -> User | None:
        """Return the user with this id."""

    def insert_access_token(self, token: AccessToken, user: int) -> None:
        """Store a token of the user with this storage key."""

    def end_access_token(self, token_id: str, user: int, at: int) -> None:
        """Revoke a stored token of a user (storage key) and record that in the audit trail."""

    def prune_access_tokens(self, now: int, limit: int) -> int:
        """Delete up to `limit` expired tokens and return the number deleted."""


def new_access_token(user: User, source: Source, client: str, now: int, lifetime_s: int) -> AccessToken:
    """Return a new, unstored token of the user, valid for `lifetime_s` seconds from `now` (ms)."""
    ends = (now // 1000 + lifetime_s) * 1000
    return AccessToken(new_id(ID_PREFIX, now), user.id, source, client, user.generation, now, ends)


def foreign_id(token: str) -> str:
    """Return the id of a token of another party: a hash of its signed part.

    The signature is left out because base64 allows several spellings of it.
    """
    signed, _, _ = token.rpartition(".")
    return f"{ID_PREFIX}_{hashlib.sha256(signed.encode()).hexdigest()}"


def end_token(tx: AccessTokenTransaction, token_id: str, user: int, now: int) -> AccessToken:
    """Revoke a token of a user (storage key), unless it is revoked already.

    Return the token as it was before.

    Raises NotFound (`token_not_found`) if the user has no such unexpired token, TooManyRequests (`too_many_ended_tokens`).
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
    """Revoke the token of the current call, also one that another party issued.

    Raises TooManyRequests.
    """
    if tx.access_token(token.id) is None:
        tx.insert_access_token(token, user.rowid)
    end_token(tx, token.id, user.rowid, now)


def access_token_view(token: AccessToken, current: str | None) -> dict[str, Any]:
    """Return the token object.

    Args:
        current: id of the token of the current call.
    """
    return {
        "id": token.id,
        "createdAt": iso(token.created_at),
        "expiresAt": iso(token.expires_at),
        "source": token.source,
        "client": token.client,
        "current": token.id == current,
    }
