"""The way from the server to its webhooks' receivers: names, addresses and sockets, all in memory.

The service dials with `trio.socket`, in which a test can replace sockets; so the real dialer, connections and clients
are at work. TLS is not simulated.
"""

from __future__ import annotations

import errno
import os
import random
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

import trio

from deskwire.engine.webhooks.http.address import IPAddress, ResolutionFailed
from tests.simulation.network import End, Link

if TYPE_CHECKING:
    from tests.simulation.peers.receiver import Receiver

_NETWORK: Final = "192.0.2."
"""RFC 5737; addresses are dialled in memory only."""
_LATENCY_S: Final = 0.1
_CAPACITY: Final = 64 * 1024


async def _open() -> None:
    """Return immediately: the gate is open."""


class Internet:
    """All receivers, by name and address.

    Args:
        serve: runs a receiver's side of a connection in a nursery.
        posting: called with the bytes of each write on a receiver's connection, before they are on their way.
    """

    def __init__(
        self,
        dice: random.Random,
        serve: Callable[[Callable[[Link], Awaitable[None]], Link], None],
        posting: Callable[[Receiver, Link, bytes], None],
    ) -> None:
        self.receivers: list[Receiver] = []
        self._dice = dice
        self._serve = serve
        self._posting = posting
        self.gate: Callable[[], Awaitable[None]] = _open
        """Waits while the process that dials and sends is stopped; raises OSError if that broke its connections."""
        self._links: list[tuple[Receiver, Link]] = []
        self._dialled = 0

    async def resolve(self, host: str, port: int) -> Sequence[IPAddress]:
        """See `Resolver`."""
        await trio.sleep(self._dice.random() * _LATENCY_S)  # virtual time: the mock clock jumps
        for number, receiver in enumerate(self.receivers):
            if receiver.host == host:
                if receiver.manner == "unknown":
                    raise ResolutionFailed("host not found: it has no address now")
                return [ip_address(f"{_NETWORK}{number + 1}")]
        raise ResolutionFailed("host not found: nobody has this name")

    async def connect(self, address: str) -> End:
        """Return the server's end of a new connection. Raises OSError if the receiver does not accept it."""
        await self.gate()
        receiver = self.receivers[int(address.removeprefix(_NETWORK)) - 1]
        await trio.sleep(self._dice.random() * _LATENCY_S)  # virtual time: the mock clock jumps
        if receiver.manner == "refusing":
            raise OSError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        if receiver.manner == "unreachable":
            await trio.sleep_forever()
        self._dialled += 1
        link = Link(self._dialled, _CAPACITY, self._dice.random() * _LATENCY_S)
        link.client.sending = lambda data: self._posting(receiver, link, data)
        self._links = [(to, each) for to, each in self._links if not each.client.closed]
        self._links.append((receiver, link))
        self._serve(receiver.take, link)
        return link.client

    def break_off(self) -> None:
        """End all connections, because the process that dialled them has ended."""
        for _, link in self._links:
            link.client.close()
        self._links.clear()

    def cut(self) -> None:
        """Reset one connection, but none to a receiver that is always healthy."""
        links = [link for receiver, link in self._links if not receiver.healthy]
        if links:
            self._dice.choice(links).cut()


class Socket(trio.socket.SocketType):
    """A TCP socket on this internet, with the methods that `trio.SocketStream` and the dialer use."""

    def __init__(self, internet: Internet) -> None:
        super().__init__()
        self._internet = internet
        self._end: End | None = None
        self._closed = False

    @property
    def type(self) -> socket.SocketKind:
        return socket.SOCK_STREAM

    @property
    def did_shutdown_SHUT_WR(self) -> bool:
        return False

    def setsockopt(self, *_: Any) -> None:
        """Do nothing."""

    def fileno(self) -> int:
        return -1

    def is_readable(self) -> bool:
        return self._end is not None and self._end.readable

    async def connect(self, address: Any) -> None:
        self._end = await self._internet.connect(address[0])
        if self._closed:
            self._end.close()

    async def send(self, data: Any, flags: int = 0) -> int:
        await self._internet.gate()
        await self._connected.send(bytes(data))
        return len(data)

    def recv(self, bufsize: int, flags: int = 0, /) -> Awaitable[bytes]:
        return self._connected.receive_some(bufsize)

    def close(self) -> None:
        self._closed = True
        if self._end is not None:
            self._end.close()

    @property
    def _connected(self) -> End:
        assert self._end is not None, "it is connected first"
        return self._end


class Sockets(trio.abc.SocketFactory):
    """Creates sockets on this internet."""

    def __init__(self, internet: Internet) -> None:
        self._internet = internet

    def socket(self, *_: Any, **__: Any) -> Socket:
        return Socket(self._internet)
