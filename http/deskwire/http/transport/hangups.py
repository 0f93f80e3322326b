"""Notices clients that disconnect while nothing is read from their connections: one task for all of them.

A task for each connection would take a third of the memory of an idle event stream. Where the system has no epoll, a write
that fails is the only sign, which the next heartbeat but one is.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import trio

_EVENTS_MAX: Final = 256  # disconnects that are handled before other tasks run


class Hangups:
    """The watched connections; `run` notices their ends."""

    def __init__(self) -> None:
        self._epoll = select.epoll() if hasattr(select, "epoll") else None
        self._calls: dict[int, Callable[[], object]] = {}

    @contextmanager
    def watching(self, descriptor: int, call: Callable[[], object]) -> Iterator[None]:
        """Call `call` if the client disconnects within the context; `descriptor` is the connection's."""
        if self._epoll is None or descriptor < 0:
            yield
            return
        self._calls[descriptor] = call
        self._epoll.register(descriptor, select.EPOLLRDHUP | select.EPOLLONESHOT)
        try:
            yield
        finally:
            if self._calls.get(descriptor) is call:  # else it was closed, and a new connection has its number
                del self._calls[descriptor]
                self._remove(descriptor)

    def _remove(self, descriptor: int) -> None:
        assert self._epoll is not None, "a connection is watched"
        if self._epoll.closed:  # `run` has ended before this connection
            return
        try:
            self._epoll.unregister(descriptor)
        except OSError:
            pass  # the connection is closed, which has removed it

    async def run(self) -> None:
        """Call back for connections whose clients disconnect, until cancelled."""
        if self._epoll is None:
            return
        with self._epoll as epoll:
            while True:
                await trio.lowlevel.wait_readable(epoll.fileno())
                for descriptor, _ in epoll.poll(0, _EVENTS_MAX):
                    if (call := self._calls.get(descriptor)) is not None:
                        call()
