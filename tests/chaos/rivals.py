"""Consumers that take a channel from each other; each records when it held the channel and which events it received."""

from __future__ import annotations

import random
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Final

import orjson
import trio
from trio_websocket import ConnectionClosed, HandshakeError, WebSocketConnection
from wsproto.utilities import LocalProtocolError

from tests.support.replay.api import Api
from tests.support.replay.frames import (
    FINAL_CODES,
    Established,
    Event,
    Failure,
    Refused,
    Subscribed,
    decode,
    subscribe,
)
from tests.support.replay.websocket import websocket

_BETWEEN_S: Final = (6.5, 10.0)
"""Shortest and longest time between two takeovers; the eleventh within a minute would be refused."""
_AGAIN_S: Final = 0.3


@dataclass(eq=False)
class Hold:
    """A consumer's hold of a channel over one connection.

    Args:
        from_s: when the consumer received the confirmation of its subscription, by the monotonic clock.
        events: ids of the received events, with their times.
    """

    consumer: str
    from_s: float = inf
    events: list[tuple[str, float]] = field(default_factory=list)
    gap: bool = False


class Rivals:
    """A series of consumers of one channel; each new one takes it from its predecessor, which keeps listening."""

    def __init__(self, api: Api, stream_key: str, channel: str, chance: random.Random) -> None:
        self.holds: list[Hold] = []
        self._api = api
        self._channel = channel
        self._chance = chance
        ws = api.base_url.replace("http", "ws", 1)
        self._url = f"{ws}/app/{stream_key}?protocol=7&client=rival&version=1"

    async def run(self, stopping: Callable[[], bool]) -> None:
        """Take over the channel repeatedly; the last consumer keeps it until cancelled."""
        number = 0
        async with trio.open_nursery() as nursery:
            while not stopping():
                number += 1
                nursery.start_soon(self._consume, f"rival-{number}")
                await trio.sleep(self._chance.uniform(*_BETWEEN_S))  # this is how often they fight

    async def _consume(self, consumer: str) -> None:
        """Hold the channel until another consumer takes it."""
        trust = ssl.create_default_context()
        while True:
            hold = Hold(consumer)
            self.holds.append(hold)
            try:
                async with websocket(self._url, trust) as socket:
                    if await self._listen(socket, hold):
                        return
            except* (ConnectionClosed, HandshakeError, LocalProtocolError, OSError, trio.TooSlowError):
                pass
            await trio.sleep(_AGAIN_S)  # until the next attempt

    async def _listen(self, socket: WebSocketConnection, hold: Hold) -> bool:
        """Record the received events; return whether the channel is lost for good."""
        while True:
            text = await socket.get_message()
            match decode(text if isinstance(text, str) else text.decode("latin-1")):
                case Event(_, body):
                    hold.events.append((str(orjson.loads(body)["id"]), trio.current_time()))
                case Established(socket_id):
                    auth = await self._authorize(socket_id, hold.consumer)
                    if auth is None:
                        return False
                    await socket.send_message(subscribe(self._channel, auth))
                case Subscribed(gap):
                    hold.from_s, hold.gap = trio.current_time(), gap
                case Refused(reason):
                    return "ConsumerSuperseded" in reason
                case Failure(code, _) if code in FINAL_CODES:
                    return True
                case _:
                    pass

    async def _authorize(self, socket_id: str, consumer: str) -> str | None:
        body = {"socket_id": socket_id, "channel_name": self._channel, "consumerId": consumer}
        result = await self._api.call("POST", "/s2s/stream/auth", body, repeatable=True)
        return str(result.body["auth"]) if result.outcome == "acknowledged" else None
