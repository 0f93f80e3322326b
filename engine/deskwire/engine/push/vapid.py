"""The key by which push services recognise this installation (RFC 8292, VAPID).

It is made once, because a browser binds its subscription to the key, and stored encrypted.
"""

from __future__ import annotations

from typing import Final

import jwt
import structlog
import trio
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    derive_private_key,
    generate_private_key,
)

from deskwire.engine.core.clock import Clock
from deskwire.engine.core.encryption import DecryptionFailed, Encryption
from deskwire.engine.core.store import Store
from deskwire.engine.push.encryption import public_point, to_base64url
from deskwire.engine.push.ports import WebPushReader, WebPushTransaction

log: Final = structlog.get_logger(__name__)

_KEY_BYTES: Final = 32
_TOKEN_LIFETIME_S: Final = 12 * 3600  # at most 24 hours (RFC 8292, 2)
_TOKENS_MAX: Final = 100  # push services whose signature is kept; browsers use four of them


class VapidKey:
    """The key of an installation.

    Args:
        subject: a URL at which the operator can be reached, for the operators of push services; None without one.
    """

    def __init__(
        self,
        store: Store[WebPushReader, WebPushTransaction],
        clock: Clock,
        sealing: Encryption,
        subject: str | None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._sealing = sealing
        self._subject = subject
        self._key: EllipticCurvePrivateKey | None = None
        self._one_at_a_time = trio.Lock()
        self._tokens: dict[str, tuple[str, int]] = {}

    async def public(self) -> str:
        """Return the public key in base64url, as browsers take it. Raises Unavailable."""
        return _shown(await self._loaded())

    async def authorization(self, origin: str) -> str:
        """Return the value of `Authorization` for a push service with this origin. Raises Unavailable."""
        key, now_s = await self._loaded(), self._clock() // 1000
        token, good_until = self._tokens.get(origin, ("", 0))
        if (
            not now_s < good_until <= now_s + _TOKEN_LIFETIME_S
        ):  # a clock that was set back made tokens of the future
            claims: dict[str, str | int] = {"aud": origin, "exp": now_s + _TOKEN_LIFETIME_S}
            if self._subject is not None:
                claims["sub"] = self._subject
            token = jwt.encode(claims, key, algorithm="ES256")
            if len(self._tokens) >= _TOKENS_MAX:
                self._tokens.clear()
            self._tokens[origin] = token, now_s + _TOKEN_LIFETIME_S // 2
        return f"vapid t={token}, k={_shown(key)}"

    async def _loaded(self) -> EllipticCurvePrivateKey:
        async with self._one_at_a_time:
            while self._key is None:
                stored = await self._store.read(lambda reader: reader.push_key())
                try:
                    if stored is not None:
                        self._key = _key_of(self._sealing.open_bytes(stored))
                        break
                except DecryptionFailed:
                    # The endpoints of all subscriptions are unreadable too; the desk subscribes again.
                    log.warning("push.key_replaced", reason="it was stored under another secret")
                made = self._sealing.seal_bytes(_secret_of(generate_private_key(SECP256R1())))
                now = self._clock()
                await self._store.write(
                    lambda tx, made=made, stored=stored, now=now: tx.put_push_key(made, stored, now)  # type: ignore[misc]
                )
            return self._key


def _key_of(secret: bytes) -> EllipticCurvePrivateKey:
    return derive_private_key(int.from_bytes(secret, "big"), SECP256R1())


def _secret_of(key: EllipticCurvePrivateKey) -> bytes:
    return key.private_numbers().private_value.to_bytes(_KEY_BYTES, "big")


def _shown(key: EllipticCurvePrivateKey) -> str:
    return to_base64url(public_point(key.public_key()))
