"""Server keys: creation, hashing and authentication (contract 5, decisions 2)."""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

from deskwire.engine.accounts.people import ServerKey
from deskwire.engine.accounts.ports import OrganisationReader
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import RefusedCredential, Unauthenticated

_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
KEY_PREFIX: Final = "sk_"
"""Prefix of server keys, which distinguishes them from other credentials."""

_KEY_BYTES: Final = 32


def random_base62(size: int = _KEY_BYTES) -> str:
    """Return `size` random bytes as base62 text of constant length."""
    number, digits = int.from_bytes(secrets.token_bytes(size)), []
    for _ in range(-(-size * 8 * 1000 // 5954)):  # a base62 digit carries 5.954 bits
        number, digit = divmod(number, 62)
        digits.append(_BASE62[digit])
    return "".join(digits)


def new_server_key() -> str:
    """Return a new server key. It is shown once, and only its hash is stored."""
    return f"{KEY_PREFIX}{random_base62()}"


def hash_server_key(key: str) -> bytes:
    """Return the SHA-256 of a server key, which is stored.

    It needs no salt because the key is random.
    """
    return hashlib.sha256(key.encode()).digest()


def authenticate_key(reader: OrganisationReader, hashed: bytes) -> ServerKey:
    """Return the server key with this hash.

    Raises Unauthenticated if it is unknown or revoked. The cache checks its expiry with each call.
    """
    key = reader.server_key(hashed)
    if key is None:
        raise Unauthenticated("The server key is not known.", code="invalid_server_key")
    if key.revoked_at is not None:
        ended = Unauthenticated("The server key has been revoked.", code="revoked_server_key")
        raise ended.of(_shown(key))
    return key


def expired(key: ServerKey, at: int) -> Unauthenticated:
    """Return the refusal (`key_expired`) of a key that expired at `at` (ms)."""
    detail = f"The server key expired at {iso(at)}."
    refusal = Unauthenticated(detail, code="key_expired")
    refusal.of(_shown(key))
    return refusal


def _shown(key: ServerKey) -> RefusedCredential:
    return RefusedCredential("server_key", key.id, key.project.rowid)


def key_in_force(reader: OrganisationReader, key_id: str) -> bool:
    """Return whether there is an unrevoked server key with this id.

    The expiry of a key ends no stream that it has authorized, so that a backend without a new key still receives events.
    """
    key = reader.key(key_id)
    return key is not None and key.revoked_at is None
