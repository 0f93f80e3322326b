"""The network between clients, nodes and databases: TCP relays that can cut, delay and silence connections."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import trio

_READ: Final = 65_536
_DIAL_S: Final = 2.0
_LOOK_S: Final = 0.05
_BACKLOG: Final = 128
_FILLERS: Final = 4
"""More connections than a queue of length 0 and one `accept` take."""
_STEADY: Final = (10_000, 32_000)
"""Below the ephemeral ports of common systems."""
_RESET: Final = struct.pack("ii", 1, 0)


@dataclass(eq=False)
class Wire:
    """One connection through a relay, to the port `upstream`."""

    upstream: int
    scope: trio.CancelScope

    def cut(self) -> None:
        """End it with a reset on both sides."""
        self.scope.cancel()


@dataclass(eq=False)
class Relay:
    """A listener that passes bytes on to the port that `choose` returns for each connection, or None for no port.

    Args:
        patience_s: how long a connection waits for a port that accepts it, before it is closed.
        delay_s: the delay of each piece of data.
        wires: the connections that are open.
    """

    choose: Callable[[], int | None]
    patience_s: float = 0.0
    port: int = 0
    delay_s: float = 0.0
    wires: list[Wire] = field(default_factory=list)
    _listener: trio.SocketListener | None = None
    _fillers: list[socket.socket] = field(default_factory=list)
    _silent: bool = False
    _flowing: trio.Event = field(default_factory=trio.Event)

    def cut(self, upstream: int | None = None) -> None:
        """End all connections, or those to one port."""
        for wire in self.wires:
            if upstream in (None, wire.upstream):
                wire.cut()

    def silence(self) -> None:
        """Pass nothing on: no bytes, no ends, no connections. Neither side notices (half-open connections)."""
        self._silent, self._flowing = True, trio.Event()

    def speak(self) -> None:
        """Pass on the data that has waited, and all that follows."""
        self._silent = False
        self._flowing.set()

    def vanish(self) -> None:
        """End all connections and leave each new one unanswered, as if the upstream host had lost its power.

        The listener's backlog is full then, and Linux drops the SYN of each further connection.
        """
        assert self._listener is not None
        self.silence()
        self.cut()
        self._listener.socket.listen(0)
        for _ in range(_FILLERS):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", self.port))
            self._fillers.append(filler)

    def appear(self) -> None:
        """Accept connections again after `vanish`."""
        assert self._listener is not None
        if not self._fillers:
            return
        for filler in self._fillers:
            filler.close()
        self._fillers.clear()
        self._listener.socket.listen(_BACKLOG)
        self.speak()

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Listen on a port of its own, until cancelled."""
        (self._listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1", backlog=_BACKLOG)
        self.port = self._listener.socket.getsockname()[1]
        async with trio.open_nursery() as nursery, self._listener:
            task_status.started()
            while True:
                client = await self._listener.accept()
                nursery.start_soon(self.handle, client)
                while self._fillers:
                    await self._flowing.wait()  # a host that is gone accepts nothing

    async def _flow(self) -> None:
        if self.delay_s:
            await trio.sleep(self.delay_s)  # the simulated delay
        while self._silent:
            await self._flowing.wait()

    async def handle(self, client: trio.SocketStream) -> None:
        """Relay one connection until either end closes."""
        _reset_at_close(client)
        try:
            await self._flow()
            dialled = await self._dial()
            if dialled is not None:
                await self._connected(client, *dialled)
        finally:
            await trio.aclose_forcefully(client)

    async def _connected(self, client: trio.SocketStream, server: trio.SocketStream, upstream: int) -> None:
        _reset_at_close(server)
        with trio.CancelScope() as scope:
            wire = Wire(upstream, scope)
            self.wires.append(wire)
            try:
                await self._between(client, server)
            except* (OSError, trio.BrokenResourceError):
                pass  # one end has closed, so the other is closed too
            finally:
                self.wires.remove(wire)

    async def _dial(self) -> tuple[trio.SocketStream, int] | None:
        end = trio.current_time() + self.patience_s
        while True:
            upstream = self.choose()
            try:
                if upstream is not None:
                    with trio.fail_after(_DIAL_S):
                        return await trio.open_tcp_stream("127.0.0.1", upstream), upstream
            except (OSError, trio.TooSlowError):
                pass  # this port has no listener; the next one may have
            if trio.current_time() >= end:
                return None
            await trio.sleep(_LOOK_S)  # poll: there is no notification

    async def _between(self, client: trio.SocketStream, server: trio.SocketStream) -> None:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._pass, client, server, nursery.cancel_scope)
                await self._pass(server, client, nursery.cancel_scope)
        finally:
            await trio.aclose_forcefully(server)

    async def _pass(self, source: trio.SocketStream, sink: trio.SocketStream, both: trio.CancelScope) -> None:
        while data := await source.receive_some(_READ):
            await self._flow()
            await sink.send_all(data)
        await self._flow()
        both.cancel()


def _reset_at_close(stream: trio.SocketStream) -> None:
    stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


@asynccontextmanager
async def relaying(*relays: Relay) -> AsyncIterator[None]:
    """Run relays, each on its own port, for the block."""
    async with trio.open_nursery() as nursery:
        for relay in relays:
            await nursery.start(relay.serve)
        yield
        nursery.cancel_scope.cancel()


def steady_port() -> int:
    """Return a port that stays free while its server is down, because it is not an ephemeral port."""
    while True:
        port = random.SystemRandom().randrange(*_STEADY)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
