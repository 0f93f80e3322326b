"""Retries: until work is done, or while the store is unavailable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import uniform
from typing import Final, TypeVar

import trio

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.tasks.failure import RESTART_DELAY_S, contain_failures

_RETRY_S: Final = 1.0


async def retry_until_done(
    attempt: Callable[[], Awaitable[bool]], tell: Callable[[BaseException], object]
) -> None:
    """Make attempts until one returns True; one that fails by a bug is told of, and the next one comes later.

    Such a bug ends no other work of the nursery.
    """
    while True:
        failed = True
        with contain_failures(tell):
            if await attempt():
                return
            failed = False
        await trio.sleep(_RETRY_S + (RESTART_DELAY_S if failed else 0))


T = TypeVar("T")

RETRYABLE_CODES: Final = frozenset({"storage_failed", "read_timeout", "out_of_touch"})
"""Codes of refusals that have changed nothing, and after which the store may soon be back."""
_RETRY_DELAY_S: Final = 0.25


async def retry_until_available(
    work: Callable[[], Awaitable[T]], until: float, refusal: Unavailable | None = None
) -> T:
    """Return the result of `work`, which is tried again while the store is away.

    Args:
        work: changes nothing when it raises Unavailable with a code of `RETRYABLE_CODES`.
        until: time on Trio's clock after which it is not tried again.
        refusal: the outcome of a try that the caller has just made; the next try waits.

    Raises:
        Unavailable: the refusal of the last try.
    """
    with trio.CancelScope() as scope:
        while True:
            if refusal is not None:
                scope.deadline = until  # not before: the first try takes its own time
                await trio.sleep(_RETRY_DELAY_S * uniform(0.5, 1))  # spread, because many callers wait
            try:
                return await work()
            except Unavailable as error:
                if error.reason not in RETRYABLE_CODES:
                    raise
                refusal = error
    assert refusal is not None, "only its deadline ends the loop"
    raise refusal
