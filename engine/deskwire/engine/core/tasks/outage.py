"""Work that waits for a store that is away: tried again until it is back, or until a deadline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import uniform
from typing import Final, TypeVar

import trio

from deskwire.engine.core.errors import Unavailable

T = TypeVar("T")

AWAY: Final = frozenset({"storage_failed", "read_timeout", "out_of_touch"})
"""Codes of refusals after which the store may be back in a moment, and nothing has been changed."""
_RETRY_DELAY_S: Final = 0.25


async def outlast(work: Callable[[], Awaitable[T]], until: float) -> T:
    """Return what `work` returns, tried again while the store is away.

    Args:
        work: changes nothing when it raises Unavailable with a code of `AWAY`.
        until: time on Trio's clock after which it is no longer tried.

    Raises:
        Unavailable: the refusal of the last try.
    """
    try:
        return await work()
    except Unavailable as refusal:
        if refusal.reason not in AWAY:
            raise
        last = refusal
    with trio.move_on_at(until):
        while True:
            await trio.sleep(_RETRY_DELAY_S * uniform(0.5, 1))  # many wait, and must not come all at once
            try:
                return await work()
            except Unavailable as refusal:
                if refusal.reason not in AWAY:
                    raise
                last = refusal
    raise last
