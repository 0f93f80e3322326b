"""The dialling of a receiver: public addresses only, whatever its name resolves to at the moment.

Each connection resolves its host anew, judges every address, and dials exactly those that were apply_catch_up: a
name that changes its meaning between check and connection (DNS rebinding) gains nothing (decisions 6).
"""

from __future__ import annotations

import base64
import socket
import ssl
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final, Protocol, Self
from urllib.parse import unquote, urlsplit

import trio

from deskwire.engine.core.http1 import Header, phrase
from deskwire.engine.webhooks.http.address import (
    AddressPolicy,
    IPAddress,
    Resolver,
    check_addresses,
    literal_addresses,
)
from deskwire.engine.webhooks.http.connection import HttpConnection, header_lines, start_tls
from deskwire.engine.webhooks.http.failure import WIRE_ERRORS, ProxyFailed, describe_error
from deskwire.engine.webhooks.http.streams import direct
from deskwire.engine.webhooks.url import WebhookUrl


class Connector(Protocol):
    """A way of making connections to receivers: straight, or through a proxy."""

    @property
    def stage(self) -> str:
        """The one at fault if `connect` does not end, such as "proxy: "; "" for the receiver."""

    async def connect(self, target: WebhookUrl) -> trio.abc.Stream:
        """Return a stream that ends at the target, still without the target's own TLS.

        Raises one of `failure.WIRE_ERRORS`.
        """

    def request_target(self, target: WebhookUrl) -> tuple[bytes, tuple[Header, ...]]:
        """Return the request target for the first line, and headers for a proxy in between."""


class DirectConnector:
    """The straight way to a receiver, under a policy.

    Args:
        policy: says which addresses may be dialled.
        resolver: asked once for each connection.
    """

    stage: Final = ""

    def __init__(self, policy: AddressPolicy, resolver: Resolver) -> None:
        self._policy = policy
        self._resolver = resolver

    async def connect(self, target: WebhookUrl) -> trio.abc.Stream:
        """Return a connection to the first of the host's addresses that takes one.

        Raises:
            AddressRefused: one of the addresses is not allowed; none is dialled then.
            ResolutionFailed: there is no address.
            OSError: the last address did not take it.
        """
        addresses = await self._resolver(target.host, target.port)
        check_addresses(self._policy, addresses)
        return await dial_first(addresses, target.port)

    def request_target(self, target: WebhookUrl) -> tuple[bytes, tuple[Header, ...]]:
        """Return the path, and no headers; see `Connector.form`."""
        return target.path, ()


async def dial_first(addresses: Sequence[IPAddress], port: int) -> trio.abc.Stream:
    """Dial in order; each address but the last gets its share of the time that is left. Raises OSError."""
    for left in range(len(addresses), 1, -1):
        now = trio.current_time()
        share_s = (trio.current_effective_deadline() - now) / left
        with trio.move_on_after(share_s):
            try:
                return await _dial(addresses[len(addresses) - left], port)
            except OSError:
                continue
    return await _dial(addresses[-1], port)


async def _dial(address: IPAddress, port: int) -> trio.abc.Stream:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    sock = trio.socket.socket(family, socket.SOCK_STREAM)
    with ExitStack() as undo:
        undo.callback(sock.close)
        await sock.connect((str(address), port))
        undo.pop_all()
    return direct(trio.SocketStream(sock))


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


class ProxyConnector:
    """The way to receivers through a proxy, under a policy; see `dialer.Route`.

    Args:
        policy: says which addresses a URL may contain; the proxy's own is the operator's choice.
        resolver: asked for the proxy's addresses, once for each connection.
        ssl_context: verifies the proxy's certificate if it speaks TLS.
    """

    stage: Final = "proxy: "

    def __init__(
        self, proxy: Proxy, policy: AddressPolicy, resolver: Resolver, ssl_context: ssl.SSLContext
    ) -> None:
        self._proxy = proxy
        self._policy = policy
        self._resolver = resolver
        self._ssl_context = ssl_context

    async def connect(self, target: WebhookUrl) -> trio.abc.Stream:
        """Return a tunnel to the target if that speaks TLS, and else a connection to the proxy.

        Raises AddressRefused, and ProxyFailed with the reason in words.
        """
        check_addresses(self._policy, await literal_addresses(target.host, target.port))
        try:
            stream = await self._connect_to_proxy()
            return await _tunnel(stream, target, self._proxy.headers) if target.tls else stream
        except ProxyFailed:
            raise
        except WIRE_ERRORS as error:
            raise ProxyFailed(describe_error(error)) from error

    def request_target(self, target: WebhookUrl) -> tuple[bytes, tuple[Header, ...]]:
        """Return the request target and headers; nothing in them is for the proxy once there is a tunnel."""
        if target.tls:
            return target.path, ()
        return b"http://" + target.authority + target.path, self._proxy.headers

    async def _connect_to_proxy(self) -> trio.abc.Stream:
        proxy = self._proxy
        stream = await dial_first(await self._resolver(proxy.host, proxy.port), proxy.port)
        return await start_tls(stream, self._ssl_context, proxy.host) if proxy.tls else stream


async def _tunnel(stream: trio.abc.Stream, target: WebhookUrl, headers: Sequence[Header]) -> trio.abc.Stream:
    connection = HttpConnection(stream)
    with ExitStack() as undo:
        undo.callback(connection.close)
        host = f"[{target.host}]" if ":" in target.host else target.host
        where = f"{host}:{target.port}".encode()
        lines = [b"%s: %s" % header for header in ((b"Host", where), *headers)]
        head = header_lines(b"CONNECT %s HTTP/1.1" % where, *lines, b"")
        await connection.send(b"CONNECT", head)
        status = (await connection.head()).status
        if not 200 <= status < 300:
            raise ProxyFailed(f"status {status}{_phrase(status)}")
        released = connection.detach_stream()
        undo.pop_all()
    return released


def _phrase(status: int) -> str:
    """Return a status's phrase by the standard, not the proxy's own, which could be anything."""
    try:
        return f", {phrase(status).lower()}"
    except ValueError:
        return ""
