"""Public keys of identity providers, from a PEM file, a JWK Set file or a JWK Set URL (RFC 7517).

A file is read again when it changes, a URL is fetched periodically. The last good set stays in use while its source fails, so
that an outage of the provider or a half-written file does not sign out all users.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Protocol

import httpx
import jwt
import orjson
import structlog
import trio
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from msgspec import Struct

from deskwire.engine.accounts.identity.algorithms import ALGORITHMS, Algorithm
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.tasks.failure import contain_failures

log: Final = structlog.get_logger(__name__)

FETCH_TIMEOUT_S: Final = 5.0
"""Timeout of a fetch, from the DNS lookup to the last byte."""

FETCH_INTERVAL_MIN_S: Final = 30.0
"""Minimum interval between fetches. It bounds the load that tokens with unknown key ids cause at the provider."""

JWKS_BYTES_MAX: Final = 256 * 1024
_FILE_CHECK_INTERVAL_S: Final = 1.0
"""Minimum interval between checks of a file for changes."""


class KeySource(Protocol):
    """A source of keys by key id and algorithm."""

    async def find(self, kid: str | None, algorithm: str) -> VerifyingKey | None:
        """Return the key for a token, None if there is none.

        Raises Unavailable (`signing_keys_unavailable`) while the source has no keys at all.
        """

    async def find_replaced(self, key: VerifyingKey) -> VerifyingKey | None:
        """Return the replacement of a key that did not match a signature.

        None if the key is unchanged.

        Reads the source again, with the same minimum interval as for unknown key ids.
        """

    async def run(self) -> None:
        """Refresh the keys until cancelled."""


class FileKeys:
    """Keys from a file.

    The constructor raises BadKeys if the file can't be used. Later failures are logged.
    """

    def __init__(self, path: Path, parse: Callable[[bytes], KeySet]) -> None:
        self._path = path
        self._parse = parse
        self._checked_at = trio.current_time()
        self._stamp: tuple[int, int, int] | None = None
        self._keys = KeySet()
        self._read()

    async def find(self, kid: str | None, algorithm: str) -> VerifyingKey | None:
        """See `KeySource.find`."""
        now = trio.current_time()
        if now - self._checked_at >= _FILE_CHECK_INTERVAL_S:
            self._checked_at = now
            try:
                self._read()
            except BadKeys as error:
                log.warning("identity.keys_not_read", file=str(self._path), reason=str(error))
        return self._keys.find(kid, algorithm)

    async def find_replaced(self, key: VerifyingKey) -> VerifyingKey | None:
        """See `KeySource.find_replaced`."""
        return _if_replaced(key, await self.find(key.kid, key.algorithm))

    async def run(self) -> None:
        """Wait until cancelled. `find` refreshes the keys."""
        await trio.sleep_forever()

    def _read(self) -> None:
        """Load the keys if the file has changed. Raises BadKeys once per change of a bad file."""
        try:
            seen = os.stat(self._path)
            stamp = (seen.st_mtime_ns, seen.st_size, seen.st_ino)
            if stamp == self._stamp:
                return
            self._stamp = stamp
            with self._path.open("rb") as file:
                content = file.read(JWKS_BYTES_MAX + 1)
        except OSError as error:
            raise BadKeys(f"it can't be read: {error}") from error
        if len(content) > JWKS_BYTES_MAX:
            raise BadKeys(f"it has more than {JWKS_BYTES_MAX:,} bytes")
        self._keys = self._parse(content)


class UrlKeys:
    """A JWK Set from a URL.

    Args:
        refresh_s: interval between fetches in seconds.
        keep_s: seconds that the last good set stays in use while fetches fail.
        client: HTTP client, closed when `run` ends.
    """

    def __init__(self, url: str, *, refresh_s: float, keep_s: float, client: httpx.AsyncClient) -> None:
        self.url: Final = url
        self._refresh_s = refresh_s
        self._keep_s = keep_s
        self._client = client
        self._keys = KeySet()
        self._fetched: float | None = None
        self._tried: float | None = None
        self._wanted = trio.Event()
        self._done = trio.Event()

    async def find(self, kid: str | None, algorithm: str) -> VerifyingKey | None:
        """See `KeySource.find`. If the key is unknown, waits for a fetch, up to FETCH_TIMEOUT_S."""
        key = self._in_force().find(kid, algorithm)
        if key is None:
            await self._fetched_again()
            key = self._in_force().find(kid, algorithm)
        if key is None and not self._in_force().keys:
            raise Unavailable(
                "The identity provider's keys can't be fetched at the moment.",
                code="signing_keys_unavailable",
                retry_after_s=int(FETCH_INTERVAL_MIN_S),
            )
        return key

    async def find_replaced(self, key: VerifyingKey) -> VerifyingKey | None:
        """See `KeySource.find_replaced`. Waits as `find` does."""
        await self._fetched_again()
        return _if_replaced(key, self._in_force().find(key.kid, key.algorithm))

    async def _fetched_again(self) -> None:
        """Request a fetch and wait for it, unless the last fetch was too recent."""
        if not self._may_fetch():
            return
        self._wanted.set()
        done = self._done
        with trio.move_on_after(FETCH_TIMEOUT_S):
            await done.wait()

    async def run(self) -> None:
        """Fetch at the start, periodically, and when a token has an unknown key id or a signature that does not match."""
        async with self._client:
            while True:
                with contain_failures(
                    lambda failure: log.error("identity.keys_not_fetched", exc_info=failure)
                ):
                    await self._refresh()
                self._wanted = trio.Event()
                await trio.sleep(FETCH_INTERVAL_MIN_S)
                with trio.move_on_after(self._rest_s()):
                    await self._wanted.wait()

    def _rest_s(self) -> float:
        """Return the seconds until the next fetch, beyond FETCH_INTERVAL_MIN_S. 0 after a failure."""
        if self._fetched is None or self._fetched != self._tried:
            return 0
        return max(0.0, self._refresh_s - FETCH_INTERVAL_MIN_S)

    def _may_fetch(self) -> bool:
        return self._tried is None or trio.current_time() - self._tried >= FETCH_INTERVAL_MIN_S

    def _in_force(self) -> KeySet:
        if self._fetched is not None and trio.current_time() - self._fetched > self._keep_s:
            return KeySet()
        return self._keys

    async def _refresh(self) -> None:
        began = trio.current_time()
        try:
            with trio.fail_after(FETCH_TIMEOUT_S):
                self._keys = parse_jwks(await self._fetch())
            self._fetched = began
        except (httpx.HTTPError, BadKeys, trio.TooSlowError) as error:
            reason = str(error) or type(error).__name__
            log.warning("identity.keys_not_fetched", url=self.url, reason=reason)
        self._tried = began
        self._done.set()
        self._done = trio.Event()

    async def _fetch(self) -> bytes:
        content = bytearray()
        # `identity` because the size limit counts bytes on the wire: a small compressed response could expand to a large one.
        async with self._client.stream("GET", self.url, headers={"Accept-Encoding": "identity"}) as response:
            response.raise_for_status()
            async for chunk in response.aiter_raw():
                if len(content) <= JWKS_BYTES_MAX:  # further bytes are discarded, for at most FETCH_TIMEOUT_S
                    content += chunk
        if len(content) > JWKS_BYTES_MAX:
            raise BadKeys(f"it has more than {JWKS_BYTES_MAX:,} bytes")
        return bytes(content)


def _if_replaced(key: VerifyingKey, found: VerifyingKey | None) -> VerifyingKey | None:
    return found if found is not None and found.key != key.key else None


RSA_BITS_MIN: Final = 2_048
KEYS_MAX: Final = 100
"""Maximum number of keys used from one set. Identity providers publish a handful."""

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey


class BadKeys(Exception):
    """A source without a usable key. The text says why."""


class VerifyingKey(Struct, frozen=True):
    """A public key with its only algorithm, so that a token cannot choose another one (RFC 8725, 3.1)."""

    kid: str | None
    algorithm: Algorithm
    key: PublicKey


class KeySet(Struct, frozen=True):
    """The keys of one source."""

    keys: tuple[VerifyingKey, ...] = ()

    def find(self, kid: str | None, algorithm: str) -> VerifyingKey | None:
        """Return the key with this id.

        Without an id, return the key of the algorithm if there is exactly one.
        """
        fitting = [each for each in self.keys if each.algorithm == algorithm]
        if kid is None:
            return fitting[0] if len(fitting) == 1 else None
        named = [each for each in fitting if each.kid == kid]
        if named:
            return named[0]
        return fitting[0] if len(fitting) == 1 and fitting[0].kid is None else None


def parse_pem(content: bytes) -> KeySet:
    """Parse one public key in PEM format (`BEGIN PUBLIC KEY`). Raises BadKeys."""
    try:
        key = load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadKeys(f"it is no public key in PEM: {error}") from error
    return _usable([(None, key)])


def parse_jwks(content: bytes) -> KeySet:
    """Parse the usable signing keys of a JWK Set.

    Other keys are ignored. Raises BadKeys if no key is usable.
    """
    try:
        document: Any = orjson.loads(content)
        entries = [each for each in document["keys"] if isinstance(each, dict)][:KEYS_MAX]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise BadKeys("it is no JWK Set: an object with a list `keys`") from None
    # A symmetric key (`oct`) in a public document is not secret, so its signatures prove nothing.
    signing = [each for each in entries if each.get("kty") != "oct" and each.get("use", "sig") == "sig"]
    return _usable((_kid(each), _public(each)) for each in signing)


def _kid(entry: dict[str, Any]) -> str | None:
    kid = entry.get("kid")
    return kid if isinstance(kid, str) else None


def _public(entry: dict[str, Any]) -> object:
    """Return the key of an entry, None if it can't be parsed or its algorithm is not supported."""
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
