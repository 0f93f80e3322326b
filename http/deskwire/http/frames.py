"""Websocket frames as bytes, built once and written to every consumer (RFC 6455 5.2; ADR 8).

A server's frames are not masked, so an event's frame is the same for all who hold its channel.
"""

from __future__ import annotations

from typing import Final

from deskwire.engine.events import StoredEvent
from deskwire.http import pusher

_TEXT: Final = 0x81
_SHORT: Final = 125
_TWO_BYTES: Final = 0xFFFF


def text_frame(payload: bytes) -> bytes:
    """`payload`, which is UTF-8, as one unmasked, unfragmented text frame."""
    size = len(payload)
    if size <= _SHORT:
        return bytes((_TEXT, size)) + payload
    if size <= _TWO_BYTES:
        return bytes((_TEXT, 126)) + size.to_bytes(2) + payload
    return bytes((_TEXT, 127)) + size.to_bytes(8) + payload


class FrameCache:
    """The newest event frames, shared by all sockets.

    Args:
        frames, size_bytes: how many to keep, and how many bytes of them; the oldest go first.
    """

    def __init__(self, *, frames: int = 2048, size_bytes: int = 8 * 1024 * 1024) -> None:
        self._limit = frames
        self._size_limit = size_bytes
        self._size = 0
        self._frames: dict[tuple[str, str], bytes] = {}

    def frame(self, event: StoredEvent, channel: str) -> bytes:
        """The frame of `event` on `channel`."""
        key = (event.id, channel)
        frame = self._frames.get(key)
        if frame is None:
            frame = text_frame(pusher.event(event.type, channel, event.body))
            self._keep(key, frame)
        return frame

    def _keep(self, key: tuple[str, str], frame: bytes) -> None:
        self._frames[key] = frame
        self._size += len(frame)
        while len(self._frames) > self._limit or self._size > self._size_limit:
            self._size -= len(self._frames.pop(next(iter(self._frames))))
