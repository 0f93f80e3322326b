"""An identity provider: keys, tokens, and a server for its JWK Set."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal

import jwt
import trio
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

Kind = Literal["RS256", "ES256", "EdDSA"]


class Signer:
    """A private key that signs tokens."""

    def __init__(self, kind: Kind, kid: str | None = None, bits: int = 2_048) -> None:
        self.kind = kind
        self.kid = kid
        self.key: Any = {
            "RS256": lambda: rsa.generate_private_key(65_537, bits),
            "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
            "EdDSA": ed25519.Ed25519PrivateKey.generate,
        }[kind]()

    def token(self, *, typ: object = "JWT", **claims: object) -> str:
        """Return a token that is valid for a minute; a claim that is None is left out, and so is the header `typ`."""
        wanted: dict[str, object] = {"exp": int(time.time()) + 60, **claims}
        named: dict[str, Any] = {"typ": typ, **({"kid": self.kid} if self.kid else {})}
        kept = {name: value for name, value in wanted.items() if value is not None}
        return jwt.encode(kept, self.key, algorithm=self.kind, headers=named)

    def pem(self) -> bytes:
        """The public key in PEM."""
        public: bytes = self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return public

    def jwk(self, **more: Any) -> dict[str, Any]:
        """Return the public key as a JWK."""
        algorithm: Any = {"RS256": RSAAlgorithm, "ES256": ECAlgorithm, "EdDSA": OKPAlgorithm}[self.kind]
        made: dict[str, Any] = json.loads(algorithm.to_jwk(self.key.public_key()))
        return {**made, **({"kid": self.kid} if self.kid else {}), "use": "sig", "alg": self.kind, **more}


def jwks(*signers: Signer) -> bytes:
    """Return the JWK Set of these keys."""
    return json.dumps({"keys": [each.jwk() for each in signers]}).encode()


class Publisher:
    """Answers every request with `answer`, or not at all while that is None; counts requests in `asked`."""

    def __init__(self) -> None:
        self.answer: bytes | None = None
        self.status = 200
        self.asked = 0
        self.url = ""

    async def handle(self, stream: trio.SocketStream) -> None:
        """Answer one connection's request."""
        async with stream:
            await stream.receive_some(65_536)
            self.asked += 1
            if self.answer is None:
                await trio.sleep_forever()
                return
            head = (
                f"HTTP/1.1 {self.status} X\r\nContent-Length: {len(self.answer)}\r\nConnection: close\r\n\r\n"
            )
            await stream.send_all(head.encode() + self.answer)


@asynccontextmanager
async def publishing(content: bytes | None) -> AsyncIterator[Publisher]:
    """Run a server for a JWK Set."""
    publisher = Publisher()
    publisher.answer = content
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, publisher.handle, 0, host="127.0.0.1"))
        publisher.url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/jwks.json"
        yield publisher
        nursery.cancel_scope.cancel()
