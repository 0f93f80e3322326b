"""Connections to checked addresses only.

Each connection resolves its host anew, judges every address, and dials exactly those that were judged: a
name that changes its meaning between check and connection (DNS rebinding) gains nothing (decisions 6).
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Sequence
from typing import Any, Final

import httpcore
import trio

from deskwire.engine.delivery.address import IPAddress, Policy
from deskwire.engine.delivery.resolver import Resolver

SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


class AddressRefused(httpcore.ConnectError):
    """A host resolves to an address that webhooks may not go to; the text is the reason."""


class Dialer(httpcore.AsyncNetworkBackend):
    """httpcore's way to the network, under a policy.

    Args:
        policy: which addresses may be dialled.
        resolver: asked once for each connection.
    """

    def __init__(self, policy: Policy, resolver: Resolver) -> None:
        self._policy = policy
        self._resolver = resolver
        self._network: Final = httpcore.TrioBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore's interface
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to the first of the host's addresses that takes one.

        Raises:
            AddressRefused: one of the addresses is not allowed; none is dialled then.
            ResolutionFailed: there is no address.
            httpcore.ConnectError, httpcore.ConnectTimeout: the last address did not take it.
        """
        addresses = await self._resolver(host, port)
        for address in addresses:
            refusal = self._policy.refusal(address)
            if refusal is not None:
                raise AddressRefused(refusal)
        return await self._first_of(addresses, port, socket_options)

    async def _first_of(
        self, addresses: Sequence[IPAddress], port: int, options: Iterable[SocketOption] | None
    ) -> httpcore.AsyncNetworkStream:
        """Dial in order; each address but the last gets its share of the time that is left."""
        for left in range(len(addresses), 1, -1):
            now = trio.current_time()
            share_s = (trio.current_effective_deadline() - now) / left
            address = addresses[len(addresses) - left]
            with trio.move_on_after(share_s):
                try:
                    return await self._dial(address, port, options)
                except httpcore.ConnectError:
                    continue
        return await self._dial(addresses[-1], port, options)

    async def _dial(
        self, address: IPAddress, port: int, options: Iterable[SocketOption] | None
    ) -> httpcore.AsyncNetworkStream:
        return _Plain(await self._network.connect_tcp(str(address), port, socket_options=options))


class _Plain(httpcore.AsyncNetworkStream):
    """A TCP stream that is closed when its TLS handshake is cancelled; httpcore's own is left open then."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore's interface
    ) -> httpcore.AsyncNetworkStream:
        try:
            return await self._stream.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            with trio.CancelScope(shield=True):
                await self.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
