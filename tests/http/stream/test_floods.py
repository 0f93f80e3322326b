"""Peers that send more than any client does: each is ended for it, and others have their turns (ADR 41)."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise

import orjson
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, memory_stream_pair
from wsproto.events import CloseConnection, Event, Ping, Pong, TextMessage

from deskwire.http.stream.limits import FRAME_RATE, LARGE_MESSAGES_BURST, MESSAGE_RATE
from deskwire.http.stream.server import RealtimeStream
from deskwire.http.stream.websocket import MessageAssembler, MessageTooLong
from tests.support.sockets.raw_peer import RawPeer, upgrade
from tests.support.streaming import CHANNEL, KEY, JumpStore, Stage, jump_stage, serve_one

_MASK = b"\x00\x00\x00\x00"
_PING = b"\x89\x80" + _MASK
_PONG = b"\x8a\x80" + _MASK
_LARGEST = 65_536


@pytest.fixture
async def stage(store: JumpStore) -> Stage:
    return await jump_stage(store)


@asynccontextmanager
async def peer_of(stage: Stage, request: bytes | None = None) -> AsyncIterator[RawPeer]:
    """Yield a client that has upgraded its connection."""
    stream = RealtimeStream(stage.store, stage.hub, stage.clock, keys=lambda: (KEY,))
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_one, stream, theirs)
        peer = RawPeer(ours)
        await peer.open(request)
        yield peer
        nursery.cancel_scope.cancel()


@pytest.fixture
async def peer(stage: Stage) -> AsyncIterator[RawPeer]:
    """Yield a client that has not sent anything yet."""
    async with peer_of(stage) as peer:
        yield peer


async def subscribed(peer: RawPeer, stage: Stage, *channels: str) -> None:
    """Subscribe to channels, to the project's if none is named, with all that is sent in one go."""
    socket_id = await peer.socket_id()
    for channel in channels or (CHANNEL,):
        await peer.subscribe(socket_id, stage.clock(), channel)
    for _ in channels or (1,):
        assert (await peer.message())["event"] == "pusher_internal:subscription_succeeded"


async def told(peer: RawPeer) -> tuple[list[Event], int, str]:
    """Return what comes up to the end: the events before the goodbye, its code, and its text."""
    before: list[Event] = []
    while not isinstance(event := await peer.event(), CloseConnection):
        assert event is not None, before
        before.append(event)
    assert isinstance(last := before.pop(), TextMessage)
    assert orjson.loads(last.data) == {
        "event": "pusher:error",
        "data": {"code": event.code, "message": event.reason},
    }
    return before, int(event.code), str(event.reason)


FLOODS = [
    (b"", _PING, "frames", FRAME_RATE.burst),
    (b"", _PONG, "frames", FRAME_RATE.burst),
    (b"\x01\x81" + _MASK + b"x", b"\x00\x81" + _MASK + b"x", "frames", FRAME_RATE.burst),
    (b"\x01\x80" + _MASK, b"\x00\x80" + _MASK, "frames", FRAME_RATE.burst),
    (b"", b"\x81\x82" + _MASK + b"{}", "messages", MESSAGE_RATE.burst),
    (b"", b"\x81\xfe\x60\x00" + _MASK + b"[" * 0x6000, "bytes", LARGE_MESSAGES_BURST * _LARGEST // 0x6000),
]


@pytest.mark.parametrize(
    ("first", "frame", "what", "most"),
    FLOODS,
    ids=["pings", "pongs", "fragments", "empty fragments", "messages", "bytes"],
)
async def test_flooding_client_is_ended_with_a_reconnect_code_and_reason(
    autojump_clock: MockClock, stage: Stage, peer: RawPeer, first: bytes, frame: bytes, what: str, most: int
) -> None:
    await subscribed(peer, stage)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(flood, peer, first + frame * (3 * most))
        answers, code, text = await told(peer)
        assert (code, what in text.split()) == (4100, True)
        assert len(answers) <= most + 1
        nursery.cancel_scope.cancel()


async def flood(peer: RawPeer, data: bytes) -> None:
    with suppress(trio.BrokenResourceError):
        await peer.stream.send_all(data)


async def test_client_that_sends_single_bytes_is_ended(
    autojump_clock: MockClock, stage: Stage, peer: RawPeer
) -> None:
    """Count each byte as a frame: it is a read, which costs as much."""
    await subscribed(peer, stage)
    with suppress(trio.BrokenResourceError):
        for byte in b"\x81\xfe\x60\x00" + b"x" * FRAME_RATE.burst:
            await peer.stream.send_all(bytes((byte,)))
            await trio.testing.wait_all_tasks_blocked()
    assert (await told(peer))[1] == 4100


async def test_the_allowance_comes_back_with_time(
    autojump_clock: MockClock, stage: Stage, peer: RawPeer
) -> None:
    await subscribed(peer, stage)
    for _ in range(5):
        await peer.stream.send_all(_PING * (FRAME_RATE.burst - 20))
        for _ in range(FRAME_RATE.burst - 20):
            assert isinstance(await peer.until(Pong), Pong)
        await trio.sleep(
            FRAME_RATE.burst / (FRAME_RATE.per_minute / 60)
        )  # virtual time: the mock clock jumps


async def test_the_most_that_a_real_client_sends_at_once_is_taken(
    autojump_clock: MockClock, stage: Stage, peer: RawPeer
) -> None:
    """Take all channels at once, leave them and take them again, with typing clients and pings of all kinds."""
    channels = [f"private-contact-u{number}" for number in range(100)]
    await subscribed(peer, stage, *channels)
    for channel in channels[:50]:
        await peer.say("pusher:unsubscribe", {"channel": channel})
    for _ in range(60):
        await peer.say("client-typing", {})
        await peer.send(Ping(b"lively"))
        assert (await peer.message())["data"]["code"] == 4301
        await trio.sleep(0.1)  # virtual time: the mock clock jumps
    await peer.say("pusher:ping")
    assert (await peer.message())["event"] == "pusher:pong"


@pytest.mark.parametrize("of_a_subscriber", [True, False])
async def test_a_read_full_of_frames_leaves_turns_to_others(
    autojump_clock: MockClock, stage: Stage, peer: RawPeer, of_a_subscriber: bool
) -> None:
    """Pongs have no answer, so that nothing else is waited for."""
    turns, frames = 0, FRAME_RATE.burst // 2
    if of_a_subscriber:
        await subscribed(peer, stage)
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def other() -> None:
            nonlocal turns
            while True:
                await trio.sleep(0 if of_a_subscriber else 0.01)  # virtual time: the mock clock jumps
                turns += 1

        await peer.stream.send_all(_PONG * frames + _PING)
        await peer.until(Pong)
        nursery.cancel_scope.cancel()
    assert turns >= frames // 16


async def test_unsubscribed_connection_is_read_slowly(autojump_clock: MockClock, peer: RawPeer) -> None:
    """Clients send one or two before they subscribe; with the full rate, each new connection could send a burst."""
    await peer.message()
    start = trio.current_time()
    await peer.stream.send_all(_PING * 160)
    for _ in range(160):
        await peer.until(Pong)
    assert trio.current_time() - start >= 2


async def sent_before_the_end(peer: RawPeer) -> int:
    """Return how many bytes can be sent, each part once the one before has been read."""
    sent = 0
    with suppress(trio.BrokenResourceError):
        while sent < 10 << 20:
            await peer.stream.send_all(_PING * 2_700)
            await trio.testing.wait_all_tasks_blocked()
            sent += 6 * 2_700
    return sent


async def test_request_in_single_bytes_has_a_limit(autojump_clock: MockClock, stage: Stage) -> None:
    """Bound the reads of a head, which may have 16 KB."""
    stream = RealtimeStream(stage.store, stage.hub, stage.clock, keys=lambda: (KEY,))
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_one, stream, theirs)
        start, sent = trio.current_time(), 0
        with suppress(trio.BrokenResourceError):
            for byte in upgrade("?protocol=7&x=" + "x" * 4_000):
                await ours.send_all(bytes((byte,)))
                await trio.testing.wait_all_tasks_blocked()
                sent += 1
        assert 1_000 < sent < 4_000
        assert trio.current_time() == start
        nursery.cancel_scope.cancel()


REFUSED = [(upgrade(key="unknown"), 4001), (upgrade("?protocol=3"), 4007)]


@pytest.mark.parametrize(("request_", "code"), REFUSED, ids=["app key", "protocol"])
async def test_data_of_a_refused_client_is_not_parsed_and_its_read_limited(
    autojump_clock: MockClock, stage: Stage, request_: bytes, code: int
) -> None:
    async with peer_of(stage, request_ + _PING * 2) as peer:
        start = trio.current_time()
        assert (await told(peer))[:2] == ([], code)
        assert await sent_before_the_end(peer) <= 2 << 20
        assert trio.current_time() == start


@pytest.mark.parametrize(("request_", "code"), REFUSED, ids=["app key", "protocol"])
async def test_refused_client_that_closes_ends_at_once(
    autojump_clock: MockClock, stage: Stage, request_: bytes, code: int
) -> None:
    """Clients wait for the server to end the connection after the two close frames (RFC 6455 7.1.1)."""
    async with peer_of(stage, request_) as peer:
        start = trio.current_time()
        assert (await told(peer))[1] == code
        await peer.send(CloseConnection(code, "").response())
        assert await peer.event() is None
        assert trio.current_time() == start


async def test_silent_refused_client_ends_after_the_close_timeout(
    autojump_clock: MockClock, stage: Stage
) -> None:
    async with peer_of(stage, upgrade(key="unknown")) as peer:
        start = trio.current_time()
        assert (await told(peer))[1] == 4001
        assert await peer.event() is None
        assert trio.current_time() - start == 5


async def test_reading_after_a_violation_is_limited(
    autojump_clock: MockClock, stage: Stage, peer: RawPeer
) -> None:
    await subscribed(peer, stage)
    await peer.stream.send_all(b"\x82\x80" + _MASK)
    start = trio.current_time()
    assert await sent_before_the_end(peer) <= 2 << 20
    assert trio.current_time() == start
    assert await peer.close_code() == 1003


async def test_a_message_of_very_many_fragments_takes_one_buffer() -> None:
    texts = MessageAssembler(_LARGEST)
    tracemalloc.start()
    try:
        for _ in range(_LARGEST - 1):
            assert texts.add(TextMessage("x", message_finished=False)) is None
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2 * _LARGEST
    assert texts.add(TextMessage("y")) == "x" * (_LARGEST - 1) + "y"


@given(st.text(max_size=60), st.lists(st.integers(0, 60), max_size=8))
def test_a_message_is_the_same_however_it_is_cut(text: str, marks: list[int]) -> None:
    edges = [0, *sorted(min(mark, len(text)) for mark in marks), len(text)]
    parts = [text[first:last] for first, last in pairwise(edges)]
    for limit in (len(text.encode()), len(text.encode()) - 1):
        texts = MessageAssembler(limit)
        try:
            found = [texts.add(TextMessage(part, message_finished=False)) for part in parts]
            assert [*found, texts.add(TextMessage(""))] == [None] * len(parts) + [text]
        except MessageTooLong:
            assert limit < len(text.encode())
