"""Connections to receivers: direct, or through an HTTP proxy.

A direct connection resolves its host again each time, checks every address against the policy, and dials
exactly the checked addresses. A name that changes its address between check and connection (DNS rebinding)
gains nothing (decisions 6).

A proxy opens a tunnel for https and gets absolute URLs for http (RFC 9110, 9.3.6; RFC 9112, 3.2.2). It
resolves names itself, so their addresses can't be checked here. Addresses in a URL are checked in every
spelling. A failure before the receiver's TLS handshake is attributed to the proxy, and the log says so.
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
    """A way of connecting to receivers: direct, or through a proxy."""

    @property
    def stage(self) -> str:
        """Prefix for error messages if `connect` times out, such as "proxy: ".

        Empty if the receiver is at fault.
        """

    async def connect(self, target: WebhookUrl) -> trio.abc.Stream:
        """Return a stream to the receiver, without the receiver's TLS.

        Raises one of `failure.WIRE_ERRORS`.
        """

    def request_target(self, target: WebhookUrl) -> tuple[bytes, tuple[Header, ...]]:
        """Return the target for the request line, and headers for a proxy in between."""


class DirectConnector:
    """Connects to receivers directly, under a policy.

    Args:
        policy: which addresses may be dialled.
        resolver: called once for each connection.
    """

    stage: Final = ""

    def __init__(self, policy: AddressPolicy, resolver: Resolver) -> None:
        self._policy = policy
        self._resolver = resolver

    async def connect(self, target: WebhookUrl) -> trio.abc.Stream:
        """Return a connection to the first of the host's addresses that accepts one.

        Raises:
            AddressRefused: one of the addresses is not allowed; none is dialled then.
            ResolutionFailed: the host has no address.
            OSError: the last address did not accept the connection.
        """
        addresses = await self._resolver(target.host, target.port)
        check_addresses(self._policy, addresses)
        return await dial_first(addresses, target.port)

    def request_target(self, target: WebhookUrl) -> tuple[bytes, tuple[Header, ...]]:
        """Return the path without headers; see `Connector.request_target`."""
        return target.path, ()


async def dial_first(addresses: Sequence[IPAddress], port: int) -> trio.abc.Stream:
    """Dial the addresses in order. Raises OSError.

    Each address but the last gets an equal share of the remaining time.
    """
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
    """A proxy's address, and the headers that it requires."""

    tls: bool
    host: str
    port: int
    headers: tuple[Header, ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, url: str) -> Self:
        """Parse an `http://` or `https://` URL with host, port and optional credentials."""
        parts = urlsplit(url)
        headers: tuple[Header, ...] = ()
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers = ((b"Proxy-Authorization", b"Basic " + base64.b64encode(pair.encode())),)
        return cls(parts.scheme == "https", parts.hostname or "", parts.port or _PORTS[parts.scheme], headers)


class ProxyConnector:
    """Connects to receivers through a proxy, under a policy; see `Connector`.

    Args:
        policy: which addresses a URL may contain. The proxy's own address is the operator's choice.
        resolver: resolves the proxy's name, once for each connection.
        ssl_context: verifies the proxy's certificate if it uses TLS.
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
        """Return a tunnel for an https receiver, else a connection to the proxy.

        Raises AddressRefused, and ProxyFailed with the reason.
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
        """Return the request target, and headers for the proxy unless there is a tunnel."""
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
    """Return a status's standard phrase. The proxy's own phrase could be any text."""
    try:
        return f", {phrase(status).lower()}"
    except ValueError:
        return ""
