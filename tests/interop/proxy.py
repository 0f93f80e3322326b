"""A TCP proxy in front of the stream that counts connections, and cuts, freezes or slows them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import trio

_READ: Final = 65_536
_DIAL_S: Final = 20.0
"""How long a restart may take."""


@dataclass(eq=False)
class Link:
    """One connection through the proxy."""

    _scope: trio.CancelScope
    _flowing: trio.Event = field(default_factory=trio.Event)

    def cut(self) -> None:
        """End it without a word of the protocol."""
        self._scope.cancel()

    def freeze(self) -> None:
        """Pass nothing on any more; both ends stay open."""
        self._flowing = trio.Event()

    def thaw(self) -> None:
        """Pass on what waits, and what comes."""
        self._flowing.set()

    async def flowing(self) -> None:
        """Wait while it is frozen."""
        await self._flowing.wait()


@dataclass(eq=False)
class Proxy:
    """A listener that passes bytes on; a connection waits while nobody listens upstream, as behind a load balancer.

    Args:
        upstream: the port of this machine that bytes are passed on to.
        connections: how many came so far, whatever became of them.
        closed: whether connections are ended as soon as they come.
        frozen: whether connections begin frozen.
        trickle: bytes of the server that are passed on each 10 ms, 0 for all at once.
        rewrite: bytes in what clients send, and what to put in their place.
        hold: bytes in what clients send; the first connection that brings them is frozen with them.
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
        """Wait until a connection is frozen for what its client has sent; return it."""
        await self._holding.wait()
        assert self._held is not None
        return self._held

    async def handle(self, client: trio.SocketStream) -> None:
        """Pass one connection on."""
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
                pass  # nobody listens, or one end has gone: so must the other
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
        with trio.fail_after(_DIAL_S):
            while True:
                try:
                    return await trio.open_tcp_stream("127.0.0.1", self.upstream)
                except OSError:
                    await trio.sleep(0.02)  # a port that opens rings no bell

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
                await trio.sleep(0.01)  # this is the slowness, nobody waits for it


@asynccontextmanager
async def proxying(upstream: int) -> AsyncIterator[Proxy]:
    """A proxy to a port of this machine."""
    proxy = Proxy(upstream)
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        proxy.port = listener.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, proxy.handle, [listener])
        yield proxy
        nursery.cancel_scope.cancel()
