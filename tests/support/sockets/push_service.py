"""A push service on a real socket with TLS, and browsers that subscribe to it and decrypt as browsers do.

The decryption is written from RFC 8291 and RFC 8188 with HMAC alone, apart from the code that encrypts.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import jwt
import trio
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support.sockets.certificates import AUTHORITY
from tests.support.sockets.receivers import Behaviour, Receiver, Request, answering

ACCEPTED: Final = answering("201 Created")


def text_of(data: bytes) -> str:
    """Return bytes in base64url."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def bytes_of(text: str) -> bytes:
    """Return the bytes of a text in base64url."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _hkdf(salt: bytes, material: bytes, info: bytes, size: int) -> bytes:
    """Return at most 32 bytes (RFC 5869)."""
    pseudorandom = hmac.new(salt, material, hashlib.sha256).digest()
    return hmac.new(pseudorandom, info + b"\x01", hashlib.sha256).digest()[:size]


@dataclass
class PushBrowser:
    """A browser: its keys, and its subscription at a push service."""

    url: str
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    auth: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def point(self) -> bytes:
        return self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    @property
    def subscription(self) -> dict[str, Any]:
        """The subscription as `PushSubscription.toJSON()` has it."""
        return {"endpoint": self.url, "keys": {"p256dh": text_of(self.point), "auth": text_of(self.auth)}}

    def decrypted(self, body: bytes) -> bytes:
        """Return the payload in the body of a push."""
        salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        sender, record = body[21 : 21 + length], body[21 + length :]
        assert len(record) <= size, "one record has the whole payload"
        shared = self.key.exchange(
            ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        )
        material = _hkdf(self.auth, shared, b"WebPush: info\x00" + self.point + sender, 32)
        key = _hkdf(salt, material, b"Content-Encoding: aes128gcm\x00", 16)
        nonce = _hkdf(salt, material, b"Content-Encoding: nonce\x00", 12)
        padded = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\x00")
        assert padded.endswith(b"\x02"), "it is the last record"
        return padded[:-1]

    def read(self, request: Request) -> dict[str, Any]:
        """Return the payload of a push to this browser."""
        payload: dict[str, Any] = json.loads(self.decrypted(request.body))
        return payload


@dataclass
class PushService:
    """A push service. `receiver.behaviour` may be changed at any time."""

    receiver: Receiver
    trust: ssl.SSLContext

    @property
    def origin(self) -> str:
        return f"https://localhost:{self.receiver.port}"

    def browser(self, name: str = "one") -> PushBrowser:
        """Return a new browser that is subscribed here."""
        return PushBrowser(f"{self.origin}/push/{name}")

    async def pushes(self, count: int) -> list[Request]:
        """Wait until this number of requests has come, and return all."""
        await self.receiver.wait(count)
        return self.receiver.requests

    def claims(self, request: Request, public_key: str) -> dict[str, Any]:
        """Verify the signature of a request by the key of an installation, and return its claims."""
        scheme, _, values = request.headers["Authorization"].partition(" ")
        parts = dict(each.strip().split("=", 1) for each in values.split(","))
        assert (scheme, parts["k"]) == ("vapid", public_key)
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), bytes_of(public_key))
        claims: dict[str, Any] = jwt.decode(parts["t"], key, algorithms=["ES256"], audience=self.origin)
        return claims


@asynccontextmanager
async def push_service(behaviour: Behaviour = ACCEPTED) -> AsyncIterator[PushService]:
    """Run a push service until the context ends."""
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert("localhost").configure_cert(served)
    trust = ssl.create_default_context()
    AUTHORITY.configure_trust(trust)
    receiver = Receiver(behaviour, tls=True)
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        receiver.port = listener.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, receiver.serve, [trio.SSLListener(listener, served)])
        yield PushService(receiver, trust)
        nursery.cancel_scope.cancel()


def closing() -> Behaviour:
    """Return a behaviour that reads a request, and closes the connection without an answer."""

    async def close(stream: trio.abc.Stream, _: Request) -> None:
        await trio.aclose_forcefully(stream)

    return close


def one_by_one(*behaviours: Behaviour) -> Behaviour:
    """Return a behaviour that uses these in order, and the last one from then on."""
    left = [*behaviours]

    async def next_one(stream: trio.abc.Stream, request: Request) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(stream, request)

    return next_one
