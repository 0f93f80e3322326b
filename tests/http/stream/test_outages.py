"""Stream connections while the database is unavailable, and after an authorization that was refused for now (ADR 60)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson
import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from deskwire.engine.core.errors import Unavailable
from deskwire.http.stream.pusher import RESTARTING
from deskwire.http.stream.server import RealtimeStream
from tests.support.sockets.raw_peer import RawPeer
from tests.support.stream_nodes import NodeStage, node_stages
from tests.support.streaming import CHANNEL, KEY, JumpStore, Stage, jump_stage, number, serve_one

OTHER = "private-contact-u1"
AWAY = Unavailable("The database could not be read.", code="storage_failed")


@pytest.fixture
async def stage(store: JumpStore) -> Stage:
    return await jump_stage(store)


@pytest.fixture
async def nursery() -> AsyncIterator[trio.Nursery]:
    async with trio.open_nursery() as nursery:
        yield nursery
        nursery.cancel_scope.cancel()


async def dialled(stream: RealtimeStream, nursery: trio.Nursery) -> RawPeer:
    """A client that has had no message yet."""
    ours, theirs = memory_stream_pair()
    nursery.start_soon(serve_one, stream, theirs)
    peer = RawPeer(ours)
    await peer.open()
    return peer


async def connected(stream: RealtimeStream, nursery: trio.Nursery) -> tuple[RawPeer, str]:
    """A client with its socket id."""
    peer = await dialled(stream, nursery)
    return peer, await peer.socket_id()


async def event_of(peer: RawPeer) -> str:
    return str((await peer.message())["event"])


async def test_new_connection_is_greeted_when_the_database_is_back(
    autojump_clock: MockClock, store: JumpStore, stream: RealtimeStream, nursery: trio.Nursery
) -> None:
    store.read_failure = AWAY
    peer = await dialled(stream, nursery)
    await trio.sleep(4)  # virtual time: the mock clock jumps
    store.read_failure = None
    assert await event_of(peer) == "pusher:connection_established"
    assert trio.current_time() < 4.6


async def test_new_connection_is_asked_to_reconnect_after_eight_seconds(
    autojump_clock: MockClock, store: JumpStore, stream: RealtimeStream, nursery: trio.Nursery
) -> None:
    """pusher-js calls its connection unavailable after ten."""
    store.read_failure = AWAY
    peer = await dialled(stream, nursery)
    assert (await peer.message())["data"]["code"] == 4100
    assert trio.current_time() == 8


async def test_stop_does_not_wait_for_connections_that_wait_for_the_database(
    autojump_clock: MockClock, store: JumpStore, stream: RealtimeStream, nursery: trio.Nursery
) -> None:
    store.read_failure = AWAY
    peer = await dialled(stream, nursery)
    await trio.sleep(1)  # virtual time: the mock clock jumps
    stream.close_all(RESTARTING)
    assert (await peer.message())["data"]["code"] == RESTARTING.code
    assert trio.current_time() == 1


async def test_subscription_is_made_when_the_database_is_back(
    autojump_clock: MockClock, store: JumpStore, stage: Stage, stream: RealtimeStream, nursery: trio.Nursery
) -> None:
    peer, socket_id = await connected(stream, nursery)
    store.read_failure = AWAY
    await peer.subscribe(socket_id, stage.clock())
    await trio.sleep(4)  # virtual time: the mock clock jumps
    store.read_failure = None
    assert await event_of(peer) == "pusher_internal:subscription_succeeded"
    assert trio.current_time() < 4.6


async def test_client_with_a_temporarily_refused_authorization_reconnects(
    autojump_clock: MockClock, stream: RealtimeStream, nursery: trio.Nursery
) -> None:
    peer, socket_id = await connected(stream, nursery)
    stream.authorization_refused("1.1", CHANNEL, 0, False)
    stream.authorization_refused(socket_id, CHANNEL, 0, False)
    stream.authorization_refused(socket_id, CHANNEL, 0, False)
    goodbye = (await peer.message())["data"]
    assert goodbye["code"] == 4100
    assert goodbye["message"] == "The authorization of a channel was refused for now; connect again."
    assert trio.current_time() == 1
    assert stream.traffic.unauthorized == 1


async def test_client_reconnects_at_the_time_of_retry_after(
    autojump_clock: MockClock, stream: RealtimeStream, nursery: trio.Nursery
) -> None:
    peer, socket_id = await connected(stream, nursery)
    stream.authorization_refused(socket_id, CHANNEL, 20, False)
    assert (await peer.message())["data"]["code"] == 4100
    assert trio.current_time() == 20


async def test_client_that_subscribes_in_time_stays(
    autojump_clock: MockClock, stage: Stage, stream: RealtimeStream, nursery: trio.Nursery
) -> None:
    """By code of its own that asks again."""
    peer, socket_id = await connected(stream, nursery)
    stream.authorization_refused(socket_id, CHANNEL, 1, False)
    await peer.subscribe(socket_id, stage.clock())
    assert await event_of(peer) == "pusher_internal:subscription_succeeded"
    await trio.sleep(5)  # virtual time: the mock clock jumps
    await stage.emit(1)
    assert await event_of(peer) == "contact.updated"


async def test_client_with_other_channels_connects_again_for_the_one_it_lacks(
    autojump_clock: MockClock, stage: Stage, stream: RealtimeStream, nursery: trio.Nursery
) -> None:
    peer, socket_id = await connected(stream, nursery)
    await peer.subscribe(socket_id, stage.clock())
    assert await event_of(peer) == "pusher_internal:subscription_succeeded"
    stream.authorization_refused(socket_id, OTHER, 1, False)
    assert (await peer.message())["data"]["code"] == 4100


class OneBus:
    """A bus that hands over at once."""

    def __init__(self) -> None:
        self.receivers: list[Callable[[bytes], None]] = []
        self.sent: list[bytes] = []
        self.listening = True

    def connected(self, receiver: Callable[[], None]) -> None:
        """See `Bus.connected`."""

    def send(self, kind: str, payload: bytes) -> None:
        assert len(payload) <= 4_000
        self.sent.append(payload)
        for receiver in self.receivers:
            receiver(payload)

    def receive(self, kind: str, receiver: Callable[[bytes], None]) -> None:
        self.receivers.append(receiver)


@pytest.mark.parametrize("known", [True, False])
async def test_connection_of_another_node_ends_if_the_caller_is_known(
    known: bool, autojump_clock: MockClock, stage: Stage, nursery: trio.Nursery
) -> None:
    bus: Any = OneBus()
    here, there = (
        RealtimeStream(stage.store, stage.hub, stage.clock, keys=lambda: (KEY,), bus=bus) for _ in range(2)
    )
    nursery.start_soon(there.run)
    peer, socket_id = await connected(here, nursery)
    there.authorization_refused(socket_id, CHANNEL, 1, known)
    with trio.move_on_after(10) as waiting:
        assert (await peer.message())["data"]["code"] == 4100
    assert waiting.cancelled_caught is not known


async def test_many_refusals_are_few_messages_to_other_nodes(
    autojump_clock: MockClock, stage: Stage, nursery: trio.Nursery
) -> None:
    bus: Any = OneBus()
    stream = RealtimeStream(stage.store, stage.hub, stage.clock, keys=lambda: (KEY,), bus=bus)
    nursery.start_soon(stream.run)
    for turn in range(10):
        for n in range(1_000):
            longest = f"private-{'x' * 156}"
            stream.authorization_refused(f"{10**9 + turn}.{10**9 + n}", longest, 1, True)
        await trio.sleep(0.1)  # virtual time: the mock clock jumps
    assert 1 <= len(bus.sent) <= 3


async def test_deaf_connections_are_counted(
    autojump_clock: MockClock, stage: Stage, stream: RealtimeStream, nursery: trio.Nursery
) -> None:
    _, _ = await connected(stream, nursery)
    peer, socket_id = await connected(stream, nursery)
    await peer.subscribe(socket_id, stage.clock())
    await trio.sleep(4)  # virtual time: the mock clock jumps
    assert stream.count_unsubscribed() == 0
    await trio.sleep(2)  # virtual time: the mock clock jumps
    assert stream.count_unsubscribed() == 1


async def test_connection_is_silent_without_a_lease_and_goes_on_where_it_was(
    autojump_clock: MockClock, store: JumpStore, nursery: trio.Nursery
) -> None:
    """ADR 60: no event goes out in between, none is lost, and the client notices nothing."""
    stages: list[NodeStage] = await node_stages(store, nursery)
    a, b = stages
    stream = RealtimeStream(a.store, a.hub, a.clock, keys=lambda: (KEY,))
    peer, socket_id = await connected(stream, nursery)
    await peer.subscribe(socket_id, a.clock())
    assert await event_of(peer) == "pusher_internal:subscription_succeeded"
    (first,) = await b.emit(1)
    assert (await peer.message())["data"] == first.body.decode()
    a.cluster.stop()
    await trio.sleep(6)  # virtual time: the mock clock jumps
    missed = await b.emit(150)  # more than the log has in memory
    with trio.move_on_after(1) as silence:
        await peer.message()
    assert silence.cancelled_caught
    assert a.hub.count_paused() == 1
    a.cluster.go_on()
    came = [number_of(await peer.message()) for _ in range(150)]
    assert came == [number(event) for event in missed]
    assert a.hub.count_paused() == 0
    assert (a.hub.counters.kept, a.hub.counters.lapsed) == (1, 0)


def number_of(message: dict[str, Any]) -> int:
    return int(orjson.loads(message["data"])["data"]["n"])
