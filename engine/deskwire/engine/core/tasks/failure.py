"""Failure containment: exceptions of a task stop only that task, while cancellation and shutdown pass through (ADR 38)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Final

import structlog
import trio

log: Final = structlog.get_logger(__name__)

RESTART_DELAY_S: Final = 60.0
"""Delay before work that failed because of a bug is tried again. An immediate retry would most likely fail, too."""


async def run_with_restarts(name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run a background task.

    If it raises, log the exception and restart it after RESTART_DELAY_S.

    Args:
        name: name of the task in the log.
    """
    while True:
        with contain_failures(lambda failure: log.error("background.failed", task=name, exc_info=failure)):
            await run()
            return
        await trio.sleep(RESTART_DELAY_S)


@contextmanager
def contain_failures(tell: Callable[[BaseException], object]) -> Iterator[None]:
    """Catch failures of the block and pass them to `tell`; see `report_failure`."""
    try:
        yield
    except BaseException as error:  # noqa: BLE001  # cancellation and shutdown are raised again
        report_failure(error, tell)


def report_failure(error: BaseException, tell: Callable[[BaseException], object]) -> None:
    """Pass failures to `tell` once, also from within a group.

    Raise cancellation and shutdown again, without the failures.

    Shutdown is KeyboardInterrupt, SystemExit and GeneratorExit. A `Cancelled` in a task that is not cancelled is a failure:
    it was kept from another scope, and if it passed through, it would silently end the surrounding nursery.
    """
    failure, purpose = _parted(error)
    if failure is not None:
        tell(failure)
    if purpose is not None:
        raise purpose


def _parted(error: BaseException) -> tuple[BaseException | None, BaseException | None]:
    if isinstance(error, BaseExceptionGroup):
        purpose, failure = error.split(_on_purpose)
        return failure, purpose
    return (None, error) if _on_purpose(error) else (error, None)


def _on_purpose(error: BaseException) -> bool:
    if isinstance(error, trio.Cancelled):
        return trio.current_effective_deadline() == -inf
    return isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit)
