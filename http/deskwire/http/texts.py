"""Text messages put together from their fragments (RFC 6455 5.4)."""

from __future__ import annotations

from wsproto.events import TextMessage


class TooLong(Exception):
    """A message has more bytes than it may."""


class Texts:
    """One connection's inbound text; nothing is kept between messages.

    Args:
        limit: bytes of a whole message.
    """

    __slots__ = ("_limit", "_parts", "_size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[str] = []
        self._size = 0

    def add(self, event: TextMessage) -> str | None:
        """The whole message, if this is its last part. Raises TooLong."""
        if event.data:
            self._parts.append(event.data)
            self._size += len(event.data.encode())
        if self._size > self._limit:
            raise TooLong
        if not event.message_finished:
            return None
        text = "".join(self._parts)
        self._parts, self._size = [], 0
        return text
