"""A minimum rate for the body of a request, whatever its length."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

import trio

from deskwire.engine.core.errors import BadRequest


class TimedBody(AsyncIterator[bytes]):
    """The chunks of a body.

    Raises BadRequest (`body_timeout`) if they arrive too slowly.

    Args:
        pause_s: seconds in which `least` bytes must arrive, again and again.
        least: 1 accepts any chunk.
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
    """Return the refusal of a body that arrives too slowly."""
    return BadRequest(f"The body did not arrive within {seconds:g} s.", code="body_timeout")
