"""Public keys that tokens are verified with, from a PEM file or a JWK Set (RFC 7517)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import jwt
import orjson
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from msgspec import Struct

from deskwire.engine.accounts.identity.algorithms import ALGORITHMS, Algorithm

RSA_BITS_MIN: Final = 2_048
KEYS_MAX: Final = 100
"""The keys of one set that are used at most; identity providers publish a handful."""

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey


class BadKeys(Exception):
    """A source without a key that can be used; the text says why."""


class VerifyingKey(Struct, frozen=True):
    """A public key with the one algorithm that it verifies: no token chooses another (RFC 8725, 3.1)."""

    kid: str | None
    algorithm: Algorithm
    key: PublicKey


class KeySet(Struct, frozen=True):
    """The keys of one source."""

    keys: tuple[VerifyingKey, ...] = ()

    def find(self, kid: str | None, algorithm: str) -> VerifyingKey | None:
        """Return the key that a token names; for one that names none, the only key of its algorithm, if there is one."""
        fitting = [each for each in self.keys if each.algorithm == algorithm]
        if kid is None:
            return fitting[0] if len(fitting) == 1 else None
        named = [each for each in fitting if each.kid == kid]
        if named:
            return named[0]
        return fitting[0] if len(fitting) == 1 and fitting[0].kid is None else None


def parse_pem(content: bytes) -> KeySet:
    """Return the key set of one public key in PEM (`BEGIN PUBLIC KEY`). Raises BadKeys."""
    try:
        key = load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadKeys(f"it is no public key in PEM: {error}") from error
    return _usable([(None, key)])


def parse_jwks(content: bytes) -> KeySet:
    """Return the signing keys of a JWK Set that can be used; others are left out. Raises BadKeys if none can."""
    try:
        document: Any = orjson.loads(content)
        entries = [each for each in document["keys"] if isinstance(each, dict)][:KEYS_MAX]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise BadKeys("it is no JWK Set: an object with a list `keys`") from None
    # A symmetric key (`oct`) in a public document is no secret, so nothing it signs proves anything.
    signing = [each for each in entries if each.get("kty") != "oct" and each.get("use", "sig") == "sig"]
    return _usable((_kid(each), _public(each)) for each in signing)


def _kid(entry: dict[str, Any]) -> str | None:
    kid = entry.get("kid")
    return kid if isinstance(kid, str) else None


def _public(entry: dict[str, Any]) -> object:
    """Return the entry's key, None if it can't be read or is bound to an algorithm that is not supported."""
    if entry.get("alg", ALGORITHMS[0]) not in ALGORITHMS:
        return None
    try:
        return jwt.PyJWK(entry).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None


def _usable(found: Iterable[tuple[str | None, object]]) -> KeySet:
    keys: list[VerifyingKey] = []
    for kid, key in found:
        match key:
            case RSAPublicKey() if key.key_size >= RSA_BITS_MIN:
                keys.append(VerifyingKey(kid, "RS256", key))
            case EllipticCurvePublicKey() if isinstance(key.curve, SECP256R1):
                keys.append(VerifyingKey(kid, "ES256", key))
            case Ed25519PublicKey():
                keys.append(VerifyingKey(kid, "EdDSA", key))
    if not keys:
        raise BadKeys(
            f"it has no public signing key for {', '.join(ALGORITHMS)} (RSA of at least {RSA_BITS_MIN} bits)"
        )
    return KeySet(tuple(keys))
