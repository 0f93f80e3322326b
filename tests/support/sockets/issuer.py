"""An OpenID provider that follows a script: it answers well, badly, slowly or without an end."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import parse_qs

import trio

from tests.support.sockets.identity_provider import Signer, jwks

DISCOVERY = "/.well-known/openid-configuration"
Behaviour = Callable[[trio.SocketStream], Awaitable[None]]


@dataclass
class Request:
    """A request that the provider got."""

    path: str
    headers: dict[str, str]
    form: dict[str, str]


@dataclass
class Issuer:
    """A provider on a loopback port.

    Args:
        answers: the answer of each path: a document, raw bytes of a whole response, or a behaviour.
        claims: further claims of ID tokens; a claim that is None is left out.
        nonce: the nonce of the next ID token.
    """

    url: str = ""
    signer: Signer = field(default_factory=lambda: Signer("RS256", "k1"))
    answers: dict[str, Any] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    nonce: str = ""
    requests: list[Request] = field(default_factory=list)

    def id_token(self, client_id: str, **claims: Any) -> str:
        """Return an ID token."""
        now = int(time.time())
        given = {
            "iss": self.url,
            "aud": client_id,
            "sub": "u1",
            "iat": now,
            "exp": now + 60,
            "nonce": self.nonce,
            **self.claims,
            **claims,
        }
        return self.signer.token(**given)

    def asked(self, path: str) -> list[Request]:
        """Return the requests to a path."""
        return [each for each in self.requests if each.path == path]

    def _answer(self, path: str) -> Any:
        if path in self.answers:
            return self.answers[path]
        if path == DISCOVERY:
            return {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/jwks",
                **self.metadata,
            }
        if path == "/jwks":
            return json.loads(jwks(self.signer))
        return {"error": "not_found"}

    async def handle(self, stream: trio.SocketStream) -> None:
        """Answer one connection's request."""
        async with stream:
            request = await _read(stream)
            self.requests.append(request)
            answer = self._answer(request.path)
            try:
                if callable(answer):
                    await answer(stream)
                elif isinstance(answer, bytes):
                    await stream.send_all(answer)
                else:
                    await stream.send_all(response(json.dumps(answer).encode()))
            except trio.BrokenResourceError:
                return  # the client has had enough


def response(body: bytes, status: int = 200, *headers: str) -> bytes:
    """Return a response."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


async def silent(stream: trio.SocketStream) -> None:
    """Never answer."""
    await trio.sleep_forever()


async def endless(stream: trio.SocketStream) -> None:
    """Send a body without an end."""
    await stream.send_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await stream.send_all(b"400\r\n" + b"x" * 1024 + b"\r\n")


async def dripping(stream: trio.SocketStream) -> None:
    """Send a header line a second, without an end."""
    await stream.send_all(b"HTTP/1.1 200 OK\r\n")
    while True:
        await trio.sleep(1)
        await stream.send_all(b"X: y\r\n")


async def _read(stream: trio.SocketStream) -> Request:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive_some(65_536)
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += await stream.receive_some(65_536)
    form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
    return Request(first.split()[1], headers, form)


@asynccontextmanager
async def issuing() -> AsyncIterator[Issuer]:
    """Run a provider that follows a script."""
    issuer = Issuer()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, issuer.handle, 0, host="127.0.0.1"))
        issuer.url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        yield issuer
        nursery.cancel_scope.cancel()
