"""A stream consumer whose process dies now and then, with events that it was sent and has not read."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

import trio
from trio_websocket import WebSocketConnection

from deskwire.commands.demo.checks.journal import Journal
from deskwire.commands.demo.clients.api import Api
from deskwire.commands.demo.clients.consumer import Consumer

_LIFE_S: Final = (0.2, 2.0)
"""How long a connection lasts before its consumer stops reading, at least and at most."""
_STILL_S: Final = (0.1, 1.6)
"""How long the service goes on writing to one that reads nothing more; a ping follows events after a second or so."""


class DyingConsumer(Consumer):
    """The project's consumer; its connections end with events and pings on their way that its process never reads.

    An event that was sent and not read must come again: only a pong confirms a position. A server that is killed in the
    meantime finds its consumer in the same state.

    Args:
        over: whether it is to live on from now on.

    Attributes:
        deaths: connections that it cut without having read them to their end.
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

    async def _consume(self, socket: WebSocketConnection, task_status: trio.TaskStatus[None]) -> None:
        """Consume over one connection for a while, stop reading, and cut it."""
        with trio.move_on_after(self._chance.uniform(*_LIFE_S)):
            await super()._consume(socket, task_status)
        if not self._over():
            await trio.sleep(
                self._chance.uniform(*_STILL_S)
            )  # real time, in which the service goes on writing
            self.deaths += 1
            await trio.aclose_forcefully(socket._stream)
        # Without the cut this goes on for good. With it, these are the messages that the websocket's own task had taken
        # from the connection, and whose pings it has answered: they arrived.
        await super()._consume(socket, task_status)
