"""The times of a connection: heartbeats and timeouts, in time that jumps."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock, memory_stream_pair
from wsproto.events import CloseConnection, Ping, Pong, TextMessage

from deskwire.engine.core.errors import Unavailable
from deskwire.http.stream.pusher import RESTARTING, REVOKED, UNKNOWN_APP
from deskwire.http.stream.server import RealtimeStream
from tests.support.sockets.raw_peer import RawPeer
from tests.support.streaming import KEY_ID, JumpStore, Stage, jump_stage, serve_one


@pytest.fixture
async def stage(store: JumpStore) -> Stage:
    return await jump_stage(store)


@pytest.fixture
async def peer(stream: RealtimeStream) -> AsyncIterator[RawPeer]:
    """Yield a client that has its socket id; the server's end is `stream`."""
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_one, stream, theirs)
        peer = RawPeer(ours)
        await peer.open()
        yield peer
        nursery.cancel_scope.cancel()


async def subscribe(peer: RawPeer, stage: Stage, consumer_id: str = "c1") -> None:
    await peer.subscribe(await peer.socket_id(), stage.clock(), consumer_id=consumer_id)
    assert (await peer.message())["event"] == "pusher_internal:subscription_succeeded"


async def test_a_peer_that_answers_no_ping_is_dropped_after_two(
    autojump_clock: MockClock, stage: Stage, peer: RawPeer
) -> None:
    """Decisions 5: a websocket ping every 25 s, dropped after two unanswered, with 4201."""
    await subscribe(peer, stage)
    start = trio.current_time()
    assert isinstance(await peer.until(Ping), Ping)
    assert trio.current_time() - start == 25
    assert await peer.close_code() == 4201
    assert trio.current_time() - start == 75
    assert await peer.event() is None
    assert trio.current_time() - start == 80


@pytest.mark.thorough
async def test_a_peer_that_answers_pings_stays_for_days(
    autojump_clock: MockClock, stage: Stage, peer: RawPeer
) -> None:
    await subscribe(peer, stage)
    with trio.move_on_after(80_000) as living:
        await peer.answer_pings()
    assert living.cancelled_caught


async def test_a_connection_that_never_subscribes_is_closed_after_two_minutes(
    autojump_clock: MockClock, peer: RawPeer
) -> None:
    """Pusher protocol, authorization: clients then reconnect, authorize and subscribe again."""
    start = trio.current_time()
    while not isinstance(event := await peer.event(), CloseConnection):
        if isinstance(event, Ping):
            await peer.send(event.response())
    assert (int(event.code), trio.current_time() - start) == (4100, 120)


async def test_pong_confirms_the_frames_written_before_its_ping(
    autojump_clock: MockClock, stage: Stage, peer: RawPeer
) -> None:
    """Decisions 5.5."""
    await subscribe(peer, stage)
    events = await stage.emit(2)
    ping = await peer.until(Ping)
    late = await stage.emit(1)
    await peer.until(TextMessage)
    assert await confirmed(stage) is None
    await peer.send(ping.response())
    await trio.testing.wait_all_tasks_blocked()
    assert await confirmed(stage) == events[-1].id
    await peer.send((await peer.until(Ping)).response())
    await trio.testing.wait_all_tasks_blocked()
    assert await confirmed(stage) == late[-1].id


async def test_a_pong_confirms_nothing_that_was_not_pinged_for(
    autojump_clock: MockClock, stage: Stage, peer: RawPeer
) -> None:
    await subscribe(peer, stage)
    await stage.emit(1)
    await peer.until(TextMessage)
    for payload in (b"", b"x", b"\xff", b"0", b"9" * 100):
        await peer.send(Pong(payload))
    await trio.testing.wait_all_tasks_blocked()
    assert await confirmed(stage) is None


async def test_confirmations_are_requested_at_most_once_a_second(
    autojump_clock: MockClock, stage: Stage, peer: RawPeer
) -> None:
    await subscribe(peer, stage)
    pings: list[float] = []

    async def count() -> None:
        while True:
            ping = await peer.until(Ping)
            pings.append(trio.current_time())
            await peer.send(ping.response())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        for _ in range(50):
            await stage.emit(1)
            await trio.sleep(0.1)  # virtual time: the mock clock jumps
        nursery.cancel_scope.cancel()
    assert 5 <= len(pings) <= 6


async def test_peers_close_frame_confirms_the_frames_written_before_ours(
    autojump_clock: MockClock, stage: Stage, stream: RealtimeStream, peer: RawPeer
) -> None:
    """Repeat nothing after a restart in good order."""
    await subscribe(peer, stage)
    (event,) = await stage.emit(1)
    await peer.until(TextMessage)
    stream.close_all()
    closed = await peer.until(CloseConnection)
    assert closed.code == 4200
    await peer.send(closed.response())
    assert await peer.event() is None
    assert await confirmed(stage) == event.id


async def test_a_close_frame_that_crosses_ours_confirms_nothing(
    autojump_clock: MockClock, stage: Stage, stream: RealtimeStream, peer: RawPeer
) -> None:
    """Decisions 5.6: a peer that has begun to close may ignore data on its way."""
    await subscribe(peer, stage)
    (event,) = await stage.emit(1)
    await trio.testing.wait_all_tasks_blocked()  # it is written,
    stream.close_all()
    await trio.testing.wait_all_tasks_blocked()  # and so is our close frame
    await peer.send(CloseConnection(1000))
    assert await peer.until(CloseConnection) is not None
    assert await peer.event() is None
    assert await confirmed(stage) != event.id


async def test_close_frame_confirms_no_unannounced_gap(
    autojump_clock: MockClock, stage: Stage, store: JumpStore, stream: RealtimeStream
) -> None:
    """The connection ends during the takeover, so its answer is not written: the next one must report the gap."""
    stage.hub.leave(await stage.hold("c1"), for_good=False)
    await stage.emit(1)
    await trio.sleep(7_201)  # virtual time: the mock clock jumps
    ours, theirs = memory_stream_pair()
    peer = RawPeer(ours)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_one, stream, theirs)
        await peer.open()
        socket_id = await peer.socket_id()
        store.publish = lambda _: stream.close_all()  # while the takeover is being stored
        await peer.subscribe(socket_id, stage.clock())
        closed = await peer.until(CloseConnection)
        await peer.send(closed.response())
    assert (await stage.hold("c1")).start.gap


async def test_peer_that_never_reads_is_dropped_by_the_first_blocked_write(
    autojump_clock: MockClock, stage: Stage, stream: RealtimeStream
) -> None:
    """Decisions 5: a write that takes longer than 20 s ends the connection."""
    ours, theirs = trio.testing.lockstep_stream_pair()  # each write waits for its reader
    peer = RawPeer(ours)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_one, stream, theirs)
        await peer.open()
        await subscribe(peer, stage)
        await stage.emit(1)
        start = trio.current_time()
    assert trio.current_time() - start == 20


async def test_a_superseded_peer_that_never_reads_gets_nothing_more_and_is_dropped(
    autojump_clock: MockClock, stage: Stage, stream: RealtimeStream
) -> None:
    """Decisions 5: after the swap the older generation receives nothing, whatever its socket does."""
    ours, theirs = trio.testing.lockstep_stream_pair()
    peer = RawPeer(ours)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_one, stream, theirs)
        await peer.open()
        await subscribe(peer, stage)
        await stage.hold("c2")
        await stage.emit(5)
        start = trio.current_time()
    assert trio.current_time() - start == 5
    assert (await peer.message())["event"] == "pusher:error"
    assert await peer.until(TextMessage) is None


async def test_fenced_peer_stays_until_the_channel_is_free(
    autojump_clock: MockClock, stage: Stage, peer: RawPeer
) -> None:
    """Pusher protocol, takeover: left open, then 4100, so that it comes back as a standby."""
    await stage.hold("c1")
    successor = await stage.hold("c2")
    await peer.subscribe(await peer.socket_id(), stage.clock())
    assert (await peer.message())["event"] == "pusher:subscription_error"
    with trio.move_on_after(600):
        await peer.answer_pings()
    stage.hub.leave(successor, for_good=False)
    start = trio.current_time()
    while not isinstance(event := await peer.event(), CloseConnection):
        if isinstance(event, Ping):
            await peer.send(event.response())
    assert (int(event.code), trio.current_time() - start) == (4100, 60)


async def test_a_takeover_that_cannot_be_stored_sends_the_client_round_again(
    autojump_clock: MockClock, stage: Stage, store: JumpStore, peer: RawPeer
) -> None:
    """4100: clients reconnect, authorize and subscribe again; an open connection would stay unsubscribed."""
    socket_id = await peer.socket_id()
    store.write_failure = Unavailable("The disk is full.")
    await peer.subscribe(socket_id, stage.clock())
    assert await peer.close_code() == 4100


async def confirmed(stage: Stage) -> str | None:
    (status,) = await stage.hub.consumers(stage.project)
    return status.confirmed


async def test_key_revoked_while_its_subscription_is_being_stored_gets_no_channel(
    autojump_clock: MockClock, stage: Stage, store: JumpStore, stream: RealtimeStream, peer: RawPeer
) -> None:
    """The right was there when it was asked for; the revocation comes during the takeover's commit."""
    socket_id = await peer.socket_id()
    store.write_takes_s = 2.0
    await peer.subscribe(socket_id, stage.clock())
    await trio.testing.wait_all_tasks_blocked()
    store.revoke(KEY_ID)
    stream.rights_changed_nowait()
    assert (await peer.message())["data"]["code"] == 4009
    store.write_takes_s = 0.0
    await trio.sleep(3)  # virtual time: the mock clock jumps
    await stage.emit(1)
    assert await peer.until(TextMessage, CloseConnection) == CloseConnection(4009, REVOKED.message)
    assert await peer.until(TextMessage) is None


async def test_key_revoked_during_its_lookup_gets_no_channel(
    autojump_clock: MockClock, stage: Stage, store: JumpStore, stream: RealtimeStream, peer: RawPeer
) -> None:
    """The look-up still finds it in force: the revocation has to find the connection instead."""
    socket_id = await peer.socket_id()
    store.read_takes_s = 2.0
    store.write_takes_s = 2.0  # so that the takeover is under way when the revocation has been read
    await peer.subscribe(socket_id, stage.clock())
    await trio.testing.wait_all_tasks_blocked()
    store.revoke(KEY_ID)
    stream.rights_changed_nowait()
    await trio.sleep(7)  # virtual time: the mock clock jumps
    store.write_takes_s = 0.0
    await stage.emit(1)
    assert (await peer.message())["data"]["code"] == 4009
    assert await peer.until(TextMessage, CloseConnection) == CloseConnection(4009, REVOKED.message)


async def test_project_removed_during_its_look_up_admits_no_connection(
    autojump_clock: MockClock, store: JumpStore, stream: RealtimeStream
) -> None:
    ours, theirs = memory_stream_pair()
    store.read_takes_s = 2.0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_one, stream, theirs)
        peer = RawPeer(ours)
        await peer.open()
        await trio.sleep(1)  # virtual time: the mock clock jumps
        store.remove_project()
        stream.rights_changed_nowait()
        assert (await peer.message())["data"]["code"] == UNKNOWN_APP.code
        nursery.cancel_scope.cancel()


async def test_stop_during_the_project_look_up_asks_the_client_to_reconnect(
    autojump_clock: MockClock, store: JumpStore, stream: RealtimeStream
) -> None:
    ours, theirs = memory_stream_pair()
    store.read_takes_s = 2.0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_one, stream, theirs)
        peer = RawPeer(ours)
        await peer.open()
        await trio.sleep(1)  # virtual time: the mock clock jumps
        stream.close_all(RESTARTING)
        assert (await peer.message())["data"]["code"] == RESTARTING.code
        nursery.cancel_scope.cancel()


async def test_client_reconnects_if_its_events_cannot_be_read(
    autojump_clock: MockClock, stage: Stage, store: JumpStore, peer: RawPeer
) -> None:
    await subscribe(peer, stage)
    store.read_failure = Unavailable("It can't be read.", code="storage_failed")
    with capture_logs() as logged, trio.fail_after(1):
        await stage.emit(200)  # more than the log has in memory
        goodbye = (await peer.message())["data"]
    assert (goodbye["code"], goodbye["message"]) == (4100, "The events can't be read now; connect again.")
    told = [(each["event"], each["log_level"], each["reason"]) for each in logged]
    assert told == [("stream.cut_off", "warning", "storage_failed")]


async def test_unreadable_database_delays_a_revocation_by_a_moment(
    autojump_clock: MockClock, stage: Stage, store: JumpStore, stream: RealtimeStream, peer: RawPeer
) -> None:
    await subscribe(peer, stage)
    store.revoke(KEY_ID)
    store.read_failure = Unavailable("it can't be read")
    stream.rights_changed_nowait()
    await trio.sleep(0.5)  # virtual time: the mock clock jumps
    assert stream.connections == 1
    store.read_failure = None
    with trio.fail_after(1):
        assert (await peer.message())["data"]["code"] == 4009
