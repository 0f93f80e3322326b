"""Frames built by hand, read back by a websocket library."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import TextMessage

from deskwire.engine.events import StoredEvent
from deskwire.http.frames import FrameCache, text_frame


def event(number: int, size: int = 10) -> StoredEvent:
    return StoredEvent(number, f"evt_{number}", "message.created", 1, 1, number, b"x" * size)


@given(st.integers(0, 200_000))
@example(125)
@example(126)
@example(0xFFFF)
@example(0x10000)
def test_a_frame_of_any_size_is_read_back_whole(size: int) -> None:
    """RFC 6455 5.2: the shortest form of the length."""
    client = Connection(ConnectionType.CLIENT)
    client.receive_data(text_frame(b"a" * size))
    received = "".join(part.data for part in client.events() if isinstance(part, TextMessage))
    assert len(received) == size


def test_an_events_frame_is_built_once_for_all_sockets() -> None:
    cache = FrameCache()
    assert cache.frame(event(1), "private-x") is cache.frame(event(1), "private-x")
    assert cache.frame(event(1), "private-x") != cache.frame(event(1), "private-y")


def test_the_cache_keeps_to_its_bounds_in_number_and_bytes() -> None:
    few = FrameCache(frames=2)
    first = few.frame(event(1), "private-x")
    few.frame(event(2), "private-x")
    few.frame(event(3), "private-x")
    assert few.frame(event(1), "private-x") is not first
    small = FrameCache(size_bytes=1000)
    large = small.frame(event(4, size=2000), "private-x")
    assert small.frame(event(4, size=2000), "private-x") is not large
