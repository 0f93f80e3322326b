"""Frames built by hand, read back by a websocket library."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import TextMessage

from deskwire.http.stream.websocket import text_frame


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
