"""A stream consumer whose process dies occasionally, with unread events in flight."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

import trio
from trio_websocket import WebSocketConnection

from tests.support.replay.api import Api
from tests.support.replay.consumer import Consumer
from tests.support.replay.journal import Journal

_LIVES_S: Final = ((0.01, 0.2), (0.01, 0.2), (0.2, 2.0))
"""Shortest and longest time that a consumer reads after its authorization: two of three die with their first events."""
_STILL_S: Final = (0.05, 1.3)
"""How long the service continues to write to a consumer that has stopped reading; a ping follows events after about a second."""


class DyingConsumer(Consumer):
    """The project's consumer; its connections end with events and pings in flight that its process never reads.

    An event that was sent and not read must come again: only a pong confirms a position. A server that is killed in the
    meantime finds its consumer in the same state.

    Args:
        over: returns whether the consumer should no longer die.

    Attributes:
        deaths: the number of subscriptions that it cut without reading them to their end.
    """

    def __init__(
        self,
        api: Api,
        project_id: str,
        stream_key: str,
        journal: Journal,
        chance: random.Random,
        over: Callable[[], bool],
    ) -> None:
        super().__init__(api, project_id, stream_key, journal)
        self.deaths = 0
        self._chance = chance
        self._over = over
        self._life = trio.CancelScope()

    async def _authorize(self, socket_id: str) -> str:
        token = await super()._authorize(socket_id)
        if not self._over():
            self._life.deadline = trio.current_time() + self._chance.uniform(*self._chance.choice(_LIVES_S))
        return token

    async def _consume(self, socket: WebSocketConnection, task_status: trio.TaskStatus[None]) -> None:
        """Consume over one connection for a while, stop reading, and cut it."""
        stream, before = socket._stream, self.connections
        socket._stream = reading = _Reading(stream)
        with trio.CancelScope() as self._life:
            await super()._consume(socket, task_status)
        reading.over = True
        await trio.sleep(
            self._chance.uniform(*_STILL_S)
        )  # real time, in which the service continues to write
        self.deaths += self.connections > before
        await trio.aclose_forcefully(stream)
        await super()._consume(
            socket, task_status
        )  # the messages that its websocket had read by then, whose pings it has answered


class _Reading(trio.abc.Stream):
    """A stream that stops reading once it is `over`; later bytes are lost with the process."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.over = False
        self._stream = stream

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = b"" if self.over else await self._stream.receive_some(max_bytes)
        if self.over:
            raise trio.ClosedResourceError
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()
