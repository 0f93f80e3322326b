"""Text messages put together from their fragments (RFC 6455 5.4)."""

from __future__ import annotations

from wsproto.events import TextMessage


class TooLong(Exception):
    """A message has more bytes than it may."""


class MessageAssembler:
    """The inbound messages of one connection. Nothing is kept between two, and one buffer of one that is under way.

    Args:
        limit: largest number of bytes of a whole message.
    """

    __slots__ = ("_buffer", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer: bytearray | None = None

    def add(self, event: TextMessage) -> str | None:
        """Return the whole message, if this is its last part. Raises TooLong."""
        if self._buffer is None and event.message_finished:
            self._check(len(event.data.encode()))
            return event.data
        buffer = self._buffer = bytearray() if self._buffer is None else self._buffer
        buffer += event.data.encode()
        self._check(len(buffer))
        if not event.message_finished:
            return None
        self._buffer = None
        return buffer.decode()

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise TooLong
