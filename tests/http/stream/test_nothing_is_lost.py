"""Random histories of a channel with cuts, takeovers and slow readers: no event is missed."""

from __future__ import annotations

import random

import orjson
import pytest
import trio
from trio.testing import MockClock, memory_stream_pair
from wsproto.events import Ping, TextMessage

from deskwire.http.stream.server import RealtimeStream
from tests.support.sockets.raw_peer import RawPeer
from tests.support.streaming import KEY, JumpStore, Stage, jump_stage, serve_one


class Life:
    """One consumer at a time, which reads or not, answers or not, until its end."""

    def __init__(self, stage: Stage, dice: random.Random) -> None:
        self.stage = stage
        self.dice = dice
        self.stream = RealtimeStream(stage.store, stage.hub, stage.clock, keys=lambda: (KEY,))
        self.received: list[list[int]] = []
        self.careless = True

    async def spend(self, consumer_id: str, seconds: float) -> None:
        """Connect, subscribe, live that long, and be cut off."""
        ours, theirs = memory_stream_pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_one, self.stream, theirs)
            peer = RawPeer(ours)
            await peer.open()
            await peer.subscribe(await peer.socket_id(), self.stage.clock(), consumer_id=consumer_id)
            assert orjson.loads((await peer.message())["data"])["gap"] is False
            with trio.move_on_after(seconds):
                await self.listen(peer)
            await trio.aclose_forcefully(ours)

    async def listen(self, peer: RawPeer) -> None:
        """Take events in order, and answer some of the pings."""
        got: list[int] = []
        self.received.append(got)
        while (event := await peer.event()) is not None:
            if isinstance(event, Ping) and not (self.careless and self.dice.random() < 0.3):
                await peer.send(event.response())
            elif isinstance(event, TextMessage):
                message = orjson.loads(event.data)
                if message["event"] == "contact.updated":
                    got.append(orjson.loads(message["data"])["data"]["n"])
            if self.careless and self.dice.random() < 0.1:
                await trio.sleep(self.dice.random() * 3)  # virtual time: the mock clock jumps


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(10))
async def test_every_event_reaches_some_holder_in_order(
    autojump_clock: MockClock, store: JumpStore, seed: int
) -> None:
    """Decisions 5: every event at least once, in order, over reconnects, takeovers and restarts."""
    dice = random.Random(seed)
    stage = await jump_stage(store)
    life = Life(stage, dice)
    await life.spend("c0", 0)

    async def produce() -> None:
        while True:
            await stage.emit(dice.randrange(1, 20))
            await trio.sleep(dice.random())  # virtual time: the mock clock jumps

    async with trio.open_nursery() as nursery:
        nursery.start_soon(produce)
        for number in range(15):
            await life.spend(
                f"c{number // dice.randrange(1, 4) if number else 0}-{number}", dice.random() * 6
            )
            await trio.sleep(dice.random() * 20)  # virtual time: the mock clock jumps
        nursery.cancel_scope.cancel()
    life.careless = False
    await life.spend("last", 200)

    seen = -1
    for got in life.received:
        assert got == list(range(got[0], got[0] + len(got))) if got else True
        assert not got or got[0] <= seen + 1
        seen = max(seen, got[-1] if got else -1)
    assert seen == stage.numbers - 1


async def test_event_during_a_read_from_the_disk_needs_no_later_one(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    """The read shows the state at its start, and its batch must not cancel the wake-up of an event published during it."""
    before = await jump_stage(store)
    (await before.hold("c1")).close()
    await before.emit(3)
    stage = await jump_stage(store)  # a restart: memory has no event yet
    stage.numbers = before.numbers
    stream = RealtimeStream(stage.store, stage.hub, stage.clock, keys=lambda: (KEY,))
    store.read_takes_s = 2.0
    ours, theirs = memory_stream_pair()
    numbers: list[int] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_one, stream, theirs)
        peer = RawPeer(ours)
        await peer.open()
        await peer.subscribe(await peer.socket_id(), stage.clock(), consumer_id="c1")
        assert orjson.loads((await peer.message())["data"])["gap"] is False
        await trio.sleep(1)  # virtual time: the mock clock jumps
        await stage.emit()
        with trio.fail_after(15):
            while len(numbers) < 4:
                numbers.append(orjson.loads((await peer.message())["data"])["data"]["n"])
        await trio.aclose_forcefully(ours)
        nursery.cancel_scope.cancel()
    assert numbers == [0, 1, 2, 3]
