"""A consumer of the stream that records each frame with its time of arrival, for later checks."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

import httpx
import orjson
import trio
from trio_websocket import ConnectionClosed

from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.replay.frames import Established, Event, Failure, Refused, Subscribed, decode, subscribe
from tests.support.replay.websocket import websocket


@dataclass(eq=False)
class Listening:
    """The events and the end of one connection of a consumer.

    Args:
        from_s: time at which its subscription succeeded.
        events: ids of the events that arrived, with their times.
        code: code of the error or close frame that it received; None before.
        over_s: time of that error or close frame.
        heard: called with each frame.
    """

    consumer: str
    from_s: float = inf
    resumed_after: str | None = None
    gap: bool = False
    events: list[tuple[str, float]] = field(default_factory=list)
    refused: str = ""
    code: int | None = None
    over_s: float = inf
    heard: Callable[[str], None] = lambda _: None
    changed: trio.Event = field(default_factory=trio.Event)

    @property
    def ids(self) -> list[str]:
        """The ids of its events, in order of arrival."""
        return [each for each, _ in self.events]

    def note(self) -> None:
        """Wake the tasks that wait for more."""
        changed, self.changed = self.changed, trio.Event()
        changed.set()

    async def until_it_holds(self) -> None:
        """Return once it has the channel."""
        await self.until(lambda: self.from_s < inf)

    async def until_it_has(self, told: Sequence[str]) -> None:
        """Return once the last of these events has arrived."""
        await self.until(lambda: self.ids[-1:] == [*told[-1:]])

    async def until_it_has_more(self, count: int, within_s: float = HANG_TIMEOUT_S) -> None:
        """Return once it has more than `count` events."""
        await self.until(lambda: len(self.ids) > count, within_s)

    async def until_it_is_over(self) -> None:
        """Return once its connection has ended, or received an error."""
        await self.until(lambda: self.over_s < inf)

    async def until(self, condition: Callable[[], bool], within_s: float = HANG_TIMEOUT_S) -> None:
        """Return once the condition is true."""
        with trio.move_on_after(within_s):
            while not condition():
                await self.changed.wait()
            return
        raise AssertionError(
            f"{self.consumer} waits in vain: has it {self.from_s < inf}, events {len(self.events)}, "
            f"refused {self.refused!r}, told {self.code}, over {self.over_s < inf}"
        )


async def listen(
    url: str, http: httpx.AsyncClient, stream_key: str, channel: str, listening: Listening
) -> None:
    """Subscribe at one node, and record frames until the connection ends.

    Args:
        url: the node's.
        http: client for the authorization.
    """
    address = f"{url.replace('http', 'ws', 1)}/app/{stream_key}?protocol=7&client=judge&version=1"
    try:
        async with websocket(address, ssl.create_default_context()) as socket:
            while True:
                text = await socket.get_message()
                now = trio.current_time()
                assert isinstance(text, str)
                listening.heard(text)
                match decode(text):
                    case Established(socket_id):
                        fields = {"socket_id": socket_id, "channel_name": channel}
                        answer = await http.post(
                            "/s2s/stream/auth", json={**fields, "consumerId": listening.consumer}
                        )
                        assert answer.status_code == 200, answer.text
                        await socket.send_message(subscribe(channel, answer.json()["auth"]))
                    case Subscribed(gap):
                        listening.from_s, listening.gap = now, gap
                        listening.resumed_after = orjson.loads(orjson.loads(text)["data"])["resumedAfter"]
                    case Event(_, body):
                        listening.events.append((str(orjson.loads(body)["id"]), now))
                    case Refused(reason):
                        listening.refused = reason
                    case Failure(code, _):
                        listening.code, listening.over_s = code, now
                    case _:
                        pass
                listening.note()
    except* (ConnectionClosed, OSError):
        listening.over_s = min(listening.over_s, trio.current_time())
    listening.note()
