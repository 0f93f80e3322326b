"""Tells what failed from what ends a task on purpose, so that a failure ends only what it belongs to (ADR 38)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Final

import structlog
import trio

log: Final = structlog.get_logger(__name__)

RESTART_DELAY_S: Final = 60.0
"""How long what has failed by a bug is left alone before it is tried again: it would most likely fail again at once."""


async def run_with_restarts(name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run a task of the background; if it fails, the log says so, and it is begun anew after a pause.

    Args:
        name: what the log calls it.
    """
    while True:
        with contain_failures(lambda failure: log.error("background.failed", task=name, exc_info=failure)):
            await run()
            return
        await trio.sleep(RESTART_DELAY_S)


@contextmanager
def contain_failures(tell: Callable[[BaseException], object]) -> Iterator[None]:
    """Let what fails within end here; see `report_failure`."""
    try:
        yield
    except BaseException as error:  # noqa: BLE001  # what ends the task on purpose is raised again
        report_failure(error, tell)


def report_failure(error: BaseException, tell: Callable[[BaseException], object]) -> None:
    """Tell once of what failed, be it in a group; raise again what ends the task on purpose, without the rest.

    That is a cancellation, KeyboardInterrupt and SystemExit. A `Cancelled` where nobody is cancelled has come from
    elsewhere, in a group or kept in a variable, and is a failure: let on, it would end the nursery around the task
    without a word.
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
