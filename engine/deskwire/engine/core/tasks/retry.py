"""Retries: until work is done, or while the store is unavailable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import uniform
from typing import Final, TypeVar

import trio

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.tasks.failure import RESTART_DELAY_S, contain_failures

_ATTEMPT_INTERVAL_S: Final = 1.0


async def retry_until_done(
    attempt: Callable[[], Awaitable[bool]], tell: Callable[[BaseException], object]
) -> None:
    """Call `attempt` until it returns True.

    An exception is a bug: it is passed to `tell`, the next attempt waits longer, and other tasks of the nursery go on.
    """
    while True:
        failed = True
        with contain_failures(tell):
            if await attempt():
                return
            failed = False
        await trio.sleep(_ATTEMPT_INTERVAL_S + (RESTART_DELAY_S if failed else 0))


T = TypeVar("T")

RETRYABLE_CODES: Final = frozenset({"storage_failed", "read_timeout", "out_of_touch"})
"""Codes of `Unavailable` errors that left nothing changed and after which the store may soon be available again."""
_RETRY_DELAY_S: Final = 0.25


async def retry_until_available(
    work: Callable[[], Awaitable[T]], until: float, refusal: Unavailable | None = None
) -> T:
    """Return the result of `work`, retrying it while the store is unavailable.

    Args:
        work: must have changed nothing when it raises Unavailable with a code in RETRYABLE_CODES.
        until: time on Trio's clock after which `work` is not retried.
        refusal: error of an attempt that the caller has just made. Then the first attempt here waits.

    Raises:
        Unavailable: error of the last attempt.
    """
    with trio.CancelScope() as scope:
        while True:
            if refusal is not None:
                scope.deadline = until  # set here because the first attempt has no time limit
                await trio.sleep(_RETRY_DELAY_S * uniform(0.5, 1))  # jitter, because many callers wait
            try:
                return await work()
            except Unavailable as error:
                if error.reason not in RETRYABLE_CODES:
                    raise
                refusal = error
    assert refusal is not None, "only its deadline ends the loop"
    raise refusal
