"""A body that has to go on coming, however long it is."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

import trio

from deskwire.engine.core.errors import BadRequest


class TimedBody(AsyncIterator[bytes]):
    """The pieces of a body. Raises BadRequest (`body_timeout`) if too little of it comes in a time.

    Args:
        pause_s: seconds in which `least` bytes must have come; then the next ones begin.
        least: 1 asks for some piece only.
    """

    def __init__(self, body: AsyncIterable[bytes], pause_s: float, least: int = 1) -> None:
        self._pieces = aiter(body)
        self._pause_s = pause_s
        self._least = least
        self._come = 0
        self._deadline: float | None = None

    async def __anext__(self) -> bytes:
        if self._deadline is None:
            self._deadline = trio.current_time() + self._pause_s
        with trio.move_on_at(self._deadline):
            piece = await anext(self._pieces)
            self._come += len(piece)
            if self._come >= self._least:
                self._come, self._deadline = 0, None
            return piece
        raise body_timeout_error(self._pause_s)


def body_timeout_error(seconds: float) -> BadRequest:
    """The refusal of a body that takes too long."""
    return BadRequest(f"The body did not arrive within {seconds:g} s.", code="body_timeout")
