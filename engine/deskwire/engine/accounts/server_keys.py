"""Server keys: how they are made, stored and checked (contract 5, decisions 2)."""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

from deskwire.engine.accounts.people import ServerKey
from deskwire.engine.accounts.ports import OrganisationReader
from deskwire.engine.core.errors import RefusedCredential, Unauthenticated

_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
KEY_PREFIX: Final = "sk_"
"""The beginning of every server key, and of no access token."""

_KEY_BYTES: Final = 32


def random_base62(size: int = _KEY_BYTES) -> str:
    """Return `size` random bytes as base62 text of constant length."""
    number, digits = int.from_bytes(secrets.token_bytes(size)), []
    for _ in range(-(-size * 8 * 1000 // 5954)):  # a base62 digit carries 5.954 bits
        number, digit = divmod(number, 62)
        digits.append(_BASE62[digit])
    return "".join(digits)


def new_server_key() -> str:
    """Return a new server key; it is shown once and stored as its hash only."""
    return f"{KEY_PREFIX}{random_base62()}"


def hash_server_key(key: str) -> bytes:
    """Return the SHA-256 of a server key, which is stored in its place. The key is random, so that needs no salt."""
    return hashlib.sha256(key.encode()).digest()


def authenticate_key(reader: OrganisationReader, hashed: bytes) -> ServerKey:
    """Return the server key with this hash. Raises Unauthenticated if it is unknown or revoked."""
    key = reader.server_key(hashed)
    if key is None:
        raise Unauthenticated("The server key is not known.", code="invalid_server_key")
    if key.revoked_at is not None:
        ended = Unauthenticated("The server key has been revoked.", code="revoked_server_key")
        raise ended.of(RefusedCredential("server_key", key.id, key.project.rowid))
    return key


def key_in_force(reader: OrganisationReader, key_id: str) -> bool:
    """Tell whether there is a server key with this id that is not revoked."""
    key = reader.key(key_id)
    return key is not None and key.revoked_at is None
