"""The way to a receiver through an HTTP proxy: a tunnel for https, absolute URLs for http (RFC 9110, 9.3.6; 9112, 3.2.2).

The proxy resolves names, so their addresses can't be judged here; addresses in a URL still are, in every
spelling. A failure before the receiver's own TLS is the proxy's fault, and the log says so.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import unquote, urlsplit

import trio

from deskwire.engine.core.http1 import Header, phrase
from deskwire.engine.webhooks.http.address import Policy
from deskwire.engine.webhooks.http.connection import Connection, ended_lines, secured
from deskwire.engine.webhooks.http.dialer import dial_first, judge
from deskwire.engine.webhooks.http.failure import WIRE_ERRORS, ProxyFailed, in_words
from deskwire.engine.webhooks.http.resolver import Resolver, spelled_addresses
from deskwire.engine.webhooks.target import Target

_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Proxy:
    """The proxy's address, and the headers that it asks for."""

    tls: bool
    host: str
    port: int
    headers: tuple[Header, ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, url: str) -> Self:
        """Parse `http://` or `https://`, a user and password if need be, host and port."""
        parts = urlsplit(url)
        headers: tuple[Header, ...] = ()
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers = ((b"Proxy-Authorization", b"Basic " + base64.b64encode(pair.encode())),)
        return cls(parts.scheme == "https", parts.hostname or "", parts.port or _PORTS[parts.scheme], headers)


class ProxyDialer:
    """The way to receivers through a proxy, under a policy; see `dialer.Route`.

    Args:
        policy: says which addresses a URL may contain; the proxy's own is the operator's choice.
        resolver: asked for the proxy's addresses, once for each connection.
        ssl_context: verifies the proxy's certificate if it speaks TLS.
    """

    stage: Final = "proxy: "

    def __init__(self, proxy: Proxy, policy: Policy, resolver: Resolver, ssl_context: ssl.SSLContext) -> None:
        self._proxy = proxy
        self._policy = policy
        self._resolver = resolver
        self._ssl_context = ssl_context

    async def reach(self, target: Target) -> trio.abc.Stream:
        """Return a tunnel to the target if that speaks TLS, and else a connection to the proxy.

        Raises AddressRefused, and ProxyFailed with the reason in words.
        """
        judge(self._policy, await spelled_addresses(target.host, target.port))
        try:
            stream = await self._connected()
            return await _tunnel(stream, target, self._proxy.headers) if target.tls else stream
        except ProxyFailed:
            raise
        except WIRE_ERRORS as error:
            raise ProxyFailed(in_words(error)) from error

    def form(self, target: Target) -> tuple[bytes, tuple[Header, ...]]:
        """Return the request target and headers; nothing in them is for the proxy once there is a tunnel."""
        if target.tls:
            return target.path, ()
        return b"http://" + target.authority + target.path, self._proxy.headers

    async def _connected(self) -> trio.abc.Stream:
        proxy = self._proxy
        stream = await dial_first(await self._resolver(proxy.host, proxy.port), proxy.port)
        return await secured(stream, self._ssl_context, proxy.host) if proxy.tls else stream


async def _tunnel(stream: trio.abc.Stream, target: Target, headers: Sequence[Header]) -> trio.abc.Stream:
    connection = Connection(stream)
    with ExitStack() as undo:
        undo.callback(connection.close)
        host = f"[{target.host}]" if ":" in target.host else target.host
        where = f"{host}:{target.port}".encode()
        lines = [b"%s: %s" % header for header in ((b"Host", where), *headers)]
        head = ended_lines(b"CONNECT %s HTTP/1.1" % where, *lines, b"")
        await connection.send(b"CONNECT", head)
        status = (await connection.head()).status
        if not 200 <= status < 300:
            raise ProxyFailed(f"status {status}{_phrase(status)}")
        released = connection.released()
        undo.pop_all()
    return released


def _phrase(status: int) -> str:
    """Return a status's phrase by the standard, not the proxy's own, which could be anything."""
    try:
        return f", {phrase(status).lower()}"
    except ValueError:
        return ""
