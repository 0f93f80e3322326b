"""A TCP proxy in front of the stream that counts connections, and cuts, freezes or slows them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import trio

from tests.support.deadlines import HANG_TIMEOUT_S

_READ: Final = 65_536


@dataclass(eq=False)
class Link:
    """One connection through the proxy."""

    _scope: trio.CancelScope
    _flowing: trio.Event = field(default_factory=trio.Event)

    def cut(self) -> None:
        """End the connection without a message of the protocol."""
        self._scope.cancel()

    def freeze(self) -> None:
        """Stop passing data on; both ends stay open."""
        self._flowing = trio.Event()

    def thaw(self) -> None:
        """Pass on waiting and later data."""
        self._flowing.set()

    async def flowing(self) -> None:
        """Wait while it is frozen."""
        await self._flowing.wait()


@dataclass(eq=False)
class Proxy:
    """A listener that passes bytes on; a connection waits while the upstream port is closed, like at a load balancer.

    Args:
        upstream: the port of this machine that bytes are passed on to.
        connections: the number of accepted connections so far.
        closed: whether connections are closed as soon as they are accepted.
        frozen: whether new connections start frozen.
        trickle: bytes of the server that are passed on each 10 ms, 0 for all at once.
        rewrite: bytes sent by clients, and their replacement.
        hold: bytes sent by clients; the first connection that carries them is frozen before they are passed on.
        links: the connections that are open.
    """

    upstream: int
    port: int = 0
    connections: int = 0
    closed: bool = False
    frozen: bool = False
    trickle: int = 0
    rewrite: tuple[bytes, bytes] = (b"", b"")
    hold: bytes = b""
    links: list[Link] = field(default_factory=list)
    _held: Link | None = None
    _holding: trio.Event = field(default_factory=trio.Event)

    def cut(self) -> None:
        """End every connection."""
        for link in self.links:
            link.cut()

    async def held(self) -> Link:
        """Wait until a connection is frozen because its client has sent `hold`; return it."""
        await self._holding.wait()
        assert self._held is not None
        return self._held

    async def handle(self, client: trio.SocketStream) -> None:
        """Relay one connection."""
        self.connections += 1
        if self.closed:
            return
        with trio.CancelScope() as scope:
            link = Link(scope)
            if not self.frozen:
                link.thaw()
            self.links.append(link)
            try:
                await self._pass_on(client, link)
            except* (trio.TooSlowError, trio.BrokenResourceError):
                pass  # the port is closed, or one end has closed, so the other is closed too
            finally:
                self.links.remove(link)

    async def _pass_on(self, client: trio.SocketStream, link: Link) -> None:
        async with await self._dial() as server:
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._to_server, client, server, link)
                    await self._to_client(server, client, link)
                    nursery.cancel_scope.cancel()
            finally:
                await trio.aclose_forcefully(server)

    async def _dial(self) -> trio.SocketStream:
        with trio.fail_after(HANG_TIMEOUT_S):
            while True:
                try:
                    return await trio.open_tcp_stream("127.0.0.1", self.upstream)
                except OSError:
                    await trio.sleep(0.02)  # poll: there is no notification of an open port

    async def _to_server(self, client: trio.SocketStream, server: trio.SocketStream, link: Link) -> None:
        async for data in client:
            if self.hold and self.hold in data:
                self.hold, self._held = b"", link
                link.freeze()
                self._holding.set()
            await link.flowing()
            await server.send_all(bytes(data).replace(*self.rewrite) if self.rewrite[0] else data)
        await server.send_eof()

    async def _to_client(self, server: trio.SocketStream, client: trio.SocketStream, link: Link) -> None:
        while data := await server.receive_some(self.trickle or _READ):
            await link.flowing()
            await client.send_all(data)
            if self.trickle:
                await trio.sleep(0.01)  # the simulated slowness


@asynccontextmanager
async def proxying(upstream: int) -> AsyncIterator[Proxy]:
    """Run a proxy to a port of this machine, for the block."""
    proxy = Proxy(upstream)
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        proxy.port = listener.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, proxy.handle, [listener])
        yield proxy
        nursery.cancel_scope.cancel()
