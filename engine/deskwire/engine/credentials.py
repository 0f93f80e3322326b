"""Server keys, access tokens and passwords: made and checked (contract 5, decisions 2)."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any, Final

import argon2
import jwt

from deskwire.engine.errors import Unauthenticated
from deskwire.engine.people import Project, Role, ServerKey, User
from deskwire.engine.ports import Reader

_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
KEY_PREFIX: Final = "sk_"
"""What every server key begins with, and no access token does."""

_KEY_BYTES: Final = 32
_ALGORITHM: Final = "HS256"
TOKEN_S: Final = 3_600
"""Lifetime of a token from `POST /v3/auth/token`, in seconds."""


def random_base62(size: int = _KEY_BYTES) -> str:
    """`size` random bytes as base62 text of constant length."""
    number, digits = int.from_bytes(secrets.token_bytes(size)), []
    for _ in range(-(-size * 8 * 1000 // 5954)):  # a base62 digit carries 5.954 bits
        number, digit = divmod(number, 62)
        digits.append(_BASE62[digit])
    return "".join(digits)


def new_server_key() -> str:
    """A fresh server key; it is shown once and stored as its hash only."""
    return f"{KEY_PREFIX}{random_base62()}"


def hash_server_key(key: str) -> bytes:
    """What is stored of a server key: its SHA-256. The key is random, so that needs no salt."""
    return hashlib.sha256(key.encode()).digest()


def authenticate_key(reader: Reader, key: str) -> ServerKey:
    """The server key that `key` is. Raises Unauthenticated if it is unknown or revoked."""
    found = reader.server_key(hash_server_key(key))
    if found is None:
        raise Unauthenticated("The server key is not known.", code="invalid_server_key")
    if found.revoked_at is not None:
        raise Unauthenticated("The server key has been revoked.", code="revoked_server_key")
    return found


class Tokens:
    """Access tokens: JWTs signed with the installation's secret.

    Args:
        secret: at least 32 characters; used as UTF-8 bytes, so that others can sign tokens, too.
    """

    def __init__(self, secret: str) -> None:
        self._key = secret.encode()

    def issue(self, user_id: str, now_ms: int, lifetime_s: int = TOKEN_S) -> str:
        """A token for the user, valid for `lifetime_s` seconds."""
        now = now_ms // 1000
        claims = {"sub": user_id, "iat": now, "exp": now + lifetime_s}
        return jwt.encode(claims, self._key, algorithm=_ALGORITHM)

    def subject(self, token: str) -> str:
        """The user id in a valid token.

        Raises Unauthenticated if it is expired, altered, unsigned, signed in any other way, or lacks
        `sub` or `exp`. A token of another audience, such as the stream's, is refused, too.
        """
        try:
            claims: dict[str, Any] = jwt.decode(
                token, self._key, algorithms=[_ALGORITHM], options={"require": ["exp", "sub"]}
            )
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("The access token has expired.", code="token_expired") from None
        except jwt.InvalidTokenError:
            raise Unauthenticated("The access token is not valid.", code="invalid_token") from None
        return str(claims["sub"])


class Passwords:
    """Password hashes by argon2id (RFC 9106). Hashing and checking take tens of milliseconds: use a thread."""

    def __init__(self, memory_kib: int) -> None:
        self._hasher = argon2.PasswordHasher(memory_cost=memory_kib)
        self._nobody = self._hasher.hash(secrets.token_urlsafe())

    def hash(self, password: str) -> str:
        """The hash to store."""
        return self._hasher.hash(password)

    def check(self, user: User | None, password: str) -> User:
        """The user, if that is the password; the same work is done for an unknown one.

        Raises Unauthenticated if user or password are wrong, without saying which.
        """
        stored = self._nobody if user is None or user.password_hash is None else user.password_hash
        try:
            self._hasher.verify(stored, password)
        except (argon2.exceptions.VerifyMismatchError, argon2.exceptions.InvalidHashError):
            user = None
        if user is None or user.password_hash is None:
            raise Unauthenticated("E-mail address or password are wrong.", code="invalid_login")
        return user


def role_in(reader: Reader, project: Project, user: User) -> Role | None:
    """The user's role in the organisation that owns the project."""
    return reader.role(project.organisation, user.rowid)
