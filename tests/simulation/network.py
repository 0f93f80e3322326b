"""A network in memory, on Trio's clock: bytes are delayed, stop, trickle, or are lost with their connection."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

import trio

_PIECE_S: Final = 0.5
"""The interval at which a trickling pipe lets bytes through."""


def nothing() -> None:
    """Do nothing."""


@dataclass(slots=True)
class _Chunk:
    data: bytes
    arrives_at: float
    delivered: Callable[[], None]


class Pipe:
    """One direction of a connection.

    Args:
        capacity: maximum of bytes on their way; a writer waits for room, as with a socket's buffers.
        latency_s: the time they are on their way.
    """

    def __init__(self, capacity: int, latency_s: float) -> None:
        self.frozen = False
        self.bytes_per_s = inf
        self._capacity = capacity
        self._latency_s = latency_s
        self._chunks: deque[_Chunk] = deque()
        self._held = 0
        self._ended = False
        self._broken = False
        self._news = trio.Event()

    async def send_all(self, data: bytes, delivered: Callable[[], None] = nothing) -> None:
        """Send; `delivered` is called when the last byte has been read. A cancelled call may send a part."""
        rest = memoryview(data)
        while rest:
            if self._broken or self._ended:
                raise trio.BrokenResourceError("the connection is gone")
            if self._held >= self._capacity:
                await self._news.wait()
                continue
            piece, rest = rest[: self._capacity - self._held], rest[self._capacity - self._held :]
            last = delivered if not rest else nothing
            self._chunks.append(_Chunk(bytes(piece), trio.current_time() + self._latency_s, last))
            self._held += len(piece)
            self.tell()

    def send_now(self, data: bytes) -> int:
        """Send as much as there is room for; return the number of bytes sent."""
        if self._broken or self._ended:
            raise trio.BrokenResourceError("the connection is gone")
        piece = data[: max(0, self._capacity - self._held)]
        if piece:
            self._chunks.append(_Chunk(piece, trio.current_time() + self._latency_s, nothing))
            self._held += len(piece)
            self.tell()
        return len(piece)

    async def receive_some(self, limit: int) -> bytes:
        """Return bytes that have arrived, b"" at the end."""
        while True:
            if self._broken:
                raise trio.BrokenResourceError("the connection was reset")
            if not self.frozen and self._chunks and self._chunks[0].arrives_at <= trio.current_time():
                return self._take(limit)
            if not self.frozen and not self._chunks and self._ended:
                return b""
            arrives_at = self._chunks[0].arrives_at if self._chunks and not self.frozen else inf
            with trio.move_on_at(arrives_at):
                await self._news.wait()

    @property
    def unread(self) -> bool:
        """Whether bytes were sent that have not been read."""
        return bool(self._chunks)

    @property
    def readable(self) -> bool:
        """Whether a read would return immediately."""
        if self.frozen or not self._chunks:
            return self._broken or (self._ended and not self.frozen)
        return self._broken or self._chunks[0].arrives_at <= trio.current_time()

    def end(self) -> None:
        """Deliver the bytes on their way, then the end."""
        self._ended = True
        self.tell()

    def break_off(self) -> None:
        """Lose the bytes on their way, and fail at both ends."""
        self._broken = True
        self.tell()

    def tell(self) -> None:
        """Make both ends check again."""
        self._news.set()
        self._news = trio.Event()

    def _take(self, limit: int) -> bytes:
        chunk = self._chunks[0]
        if self.bytes_per_s < inf:
            limit = min(limit, max(1, int(self.bytes_per_s * _PIECE_S)))
        data, chunk.data = chunk.data[:limit], chunk.data[limit:]
        self._held -= len(data)
        if not chunk.data:
            self._chunks.popleft()
            chunk.delivered()
        if self.bytes_per_s < inf and self._chunks:
            self._chunks[0].arrives_at = max(self._chunks[0].arrives_at, trio.current_time() + _PIECE_S)
        self.tell()
        return data


class End(trio.abc.Stream):
    """One end of a link. `sending` is called with the bytes of each write, before the first is on its way."""

    def __init__(self, outward: Pipe, inward: Pipe) -> None:
        self.sending: Callable[[bytes], None] = lambda _: None
        self._out = outward
        self._in = inward
        self._told = 0
        self.closed = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self.send(bytes(data))

    async def send(self, data: bytes, delivered: Callable[[], None] = nothing) -> None:
        """Send as `send_all` does; `delivered` is called when the other end has read all of it."""
        await trio.lowlevel.checkpoint_if_cancelled()
        if self.closed:
            raise trio.ClosedResourceError
        self._tell(data)  # without a checkpoint before it, as with a socket, which tries to send first
        await self._out.send_all(data, delivered)
        await trio.lowlevel.cancel_shielded_checkpoint()

    def send_now(self, data: bytes) -> bytes:
        """Send as much as there is room for; return the rest."""
        if self.closed:
            raise trio.BrokenResourceError
        self._tell(data)
        rest = data[self._out.send_now(data) :]
        self._told = len(rest)
        return rest

    def _tell(self, data: bytes) -> None:
        """Report the new bytes of this write, which may begin with the rest of the last one."""
        if len(data) > self._told:
            self.sending(data[self._told :])
        self._told = 0

    @property
    def readable(self) -> bool:
        """Whether bytes or the end have arrived."""
        return self._in.readable

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        if self.closed:
            raise trio.ClosedResourceError
        return await self._in.receive_some(max_bytes or 65_536)

    async def aclose(self) -> None:
        self.close()
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """End the connection; as with TCP, unread input resets it."""
        if self.closed:
            return
        self.closed = True
        if self._in.unread:
            self._out.break_off()
        self._out.end()
        self._in.break_off()


class Link:
    """A connection between `client` and `server`."""

    def __init__(self, number: int, capacity: int, latency_s: float) -> None:
        self.number = number
        self._up, self._down = Pipe(4096, latency_s), Pipe(capacity, latency_s)
        self.client = End(self._up, self._down)
        self.server = End(self._down, self._up)

    def cut(self) -> None:
        """Reset it for both ends."""
        for pipe in (self._up, self._down):
            pipe.break_off()

    def freeze(self, *, frozen: bool = True) -> None:
        """Stop all delivery, of bytes and of the end."""
        for pipe in (self._up, self._down):
            pipe.frozen = frozen
            pipe.tell()

    def trickle(self, bytes_per_s: float) -> None:
        """Limit the rate towards the client."""
        self._down.bytes_per_s = bytes_per_s
        self._down.tell()
