"""A scripted consumer: the process of a client, and faults that can happen to it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson
import trio
from wsproto.connection import ConnectionState
from wsproto.events import CloseConnection, Ping, TextMessage

from deskwire.engine.stream.token import Grant, issue
from tests.simulation.ledger import HELD_S
from tests.simulation.network import Link
from tests.support.sockets.raw_peer import RawPeer
from tests.support.streaming import KEY, KEY_ID, STREAM_KEY

if TYPE_CHECKING:
    from tests.simulation.world import World

Kind = Literal["js", "net"]
"""Its reaction to the end of a connection: like pusher-js by the close code, or like .NET, which always reconnects."""
Pongs = Literal["prompt", "late", "some", "never"]

SILENCE_S: Final = 30.0
"""After this much silence it sends a ping, and after as much again it gives the connection up."""
_RETRY_S: Final = 1.0
_OPENING_S: Final = 10.0
_LATE_S: Final = 40.0


class Consumer:
    """A process with one consumer id; `run` is its life. The network of a `steady` one never fails."""

    def __init__(
        self,
        world: World,
        consumer_id: str,
        channels: Sequence[str],
        kind: Kind,
        pongs: Pongs,
        resume: str = "auto",
        *,
        steady: bool = False,
    ) -> None:
        self.consumer_id = consumer_id
        self.channels = channels
        self.pongs = pongs
        self.link: Link | None = None
        self.alive = True
        self._world = world
        self._dice: random.Random = world.dice
        self._kind = kind
        self._resume = resume
        self._steady = steady
        self._scope = trio.CancelScope()
        self._awake = trio.Event()
        self._awake.set()
        self._peer: RawPeer | None = None
        self._nursery: trio.Nursery | None = None
        self._got: dict[str, int] = {}
        self._socket_id = ""

    async def run(self) -> None:
        """Connect, and reconnect after each end unless its code forbids that."""
        with self._scope:
            while self.alive:
                code = await self._connection()
                self._world.judge.note(f"{self.consumer_id} sees its connection end with {code}")
                if self._kind == "js" and code is not None and (4000 <= code < 4100 or code >= 4300):
                    self.alive = False
                elif self._kind == "net" or code is None or not 4200 <= code < 4300:
                    await trio.sleep(_RETRY_S)  # virtual time: the mock clock jumps
        self.alive = False

    def kill(self) -> None:
        """End the process; its connections are closed if the network delivers that."""
        self._scope.cancel()

    def stall(self) -> None:
        """Stop the process where it is (SIGSTOP)."""
        self._awake = trio.Event()

    def go_on(self) -> None:
        """Resume the process."""
        self._awake.set()

    async def disconnect(self) -> None:
        """End its connection with a close frame of its own, and then the process."""
        self.alive = False
        peer = self._peer
        if peer is not None and peer.wire.state is ConnectionState.OPEN:
            await self._send(peer.wire.send(CloseConnection(1000)))

    async def unsubscribe(self) -> None:
        """Unsubscribe from its first channel."""
        await self._say("pusher:unsubscribe", {"channel": self.channels[0]})

    async def _connection(self) -> int | None:
        """Run one connection to its end; return its close code, None if it broke off."""
        link = await self._world.dial(steady=self._steady)
        if link is None:
            return None
        self.link, self._peer, self._got = link, RawPeer(link.client), {}
        try:
            async with trio.open_nursery() as self._nursery:
                code = await self._converse(self._peer)
                self._nursery.cancel_scope.cancel()
            return code
        finally:
            link.client.close()

    async def _converse(self, peer: RawPeer) -> int | None:
        try:
            with trio.fail_after(_OPENING_S):
                await peer.open()
            while (event := await self._next(peer)) is not None:
                await self._awake.wait()
                match event:
                    case Ping():
                        self._answer(event)
                    case CloseConnection():
                        if peer.wire.state is ConnectionState.REMOTE_CLOSING:
                            await self._send(peer.wire.send(event.response()))
                        return int(event.code)
                    case TextMessage() if self.alive:  # a closing process ignores messages
                        await self._hear(orjson.loads(event.data))
        except (trio.BrokenResourceError, trio.TooSlowError):
            pass
        return None

    async def _next(self, peer: RawPeer) -> Any:
        with trio.move_on_after(SILENCE_S):
            return await peer.event()
        await self._say("pusher:ping", {})
        with trio.fail_after(SILENCE_S):
            return await peer.event()

    async def _hear(self, message: dict[str, Any]) -> None:
        name, data = message["event"], message["data"]
        if name == "pusher:connection_established":
            self._socket_id = orjson.loads(data)["socket_id"]
            for channel in self.channels:
                await trio.sleep(self._dice.random() * 0.2)  # the time of the authorization call
                await self._subscribe(channel)
        elif not name.startswith("pusher"):
            channel, event_id = message["channel"], orjson.loads(data)["id"]
            assert self.link is not None
            self._got[channel] = self._world.judge.received(self.link, channel, event_id)
            self._world.ledger.check_body(event_id, data.encode(), f"a frame on {channel}", HELD_S)

    async def _subscribe(self, channel: str) -> None:
        grant = Grant(
            self._world.project.id, KEY_ID, self._socket_id, channel, self.consumer_id, resume=self._resume
        )
        auth = f"{STREAM_KEY}:{issue(KEY, grant, now_ms=self._world.clock())}"
        link, judge, resume = self.link, self._world.judge, self._resume
        assert link is not None
        await self._say(
            "pusher:subscribe",
            {"channel": channel, "auth": auth},
            lambda: judge.asked(link, channel, resume),
        )

    def _answer(self, ping: Ping) -> None:
        """Answer the ping, or not, or later."""
        upto, link, peer = dict(self._got), self.link, self._peer
        late = self.pongs == "late" or (self.pongs == "some" and self._dice.random() < 0.3)
        assert link is not None
        assert peer is not None
        assert self._nursery is not None

        async def pong() -> None:
            await trio.sleep(self._dice.random() * _LATE_S if late else 0)  # virtual time
            await self._awake.wait()
            if peer.wire.state is ConnectionState.OPEN:
                judge = self._world.judge
                await self._send(peer.wire.send(ping.response()), lambda: judge.confirmed(link, upto))

        if self.pongs != "never" and not (self.pongs == "some" and self._dice.random() < 0.3):
            self._nursery.start_soon(pong)

    async def _say(self, name: str, data: object, delivered: Any = lambda: None) -> None:
        text = orjson.dumps({"event": name, "data": data}).decode()
        peer = self._peer
        if peer is not None and peer.wire.state is ConnectionState.OPEN:
            await self._send(peer.wire.send(TextMessage(text)), delivered)

    async def _send(self, data: bytes, delivered: Any = lambda: None) -> None:
        """Send whole frames; a failure is ignored, because the next read fails as well."""
        assert self.link is not None
        try:
            await self.link.client.send(data, delivered)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return
