"""Failures of a task's work: the exceptions that it may raise, in every form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import trio
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

Failures = Callable[[], Sequence[Any]]


@contextmanager
def failures_logged() -> Iterator[Failures]:
    """Yield a function that returns the failures logged since its last call."""
    with capture_logs(processors=[merge_contextvars]) as entries:

        def since() -> Sequence[Any]:
            found = [entry for entry in entries if entry["log_level"] == "error"]
            entries.clear()
            return found

        yield since


async def cancelled() -> trio.Cancelled:
    """Return a cancellation whose scope has ended, so that no scope catches it when it is raised."""
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as error:
            return error
    raise AssertionError("it was cancelled")


async def a_bug() -> None:
    raise ValueError("planted")


async def a_group() -> None:
    raise ExceptionGroup("planted", [trio.ClosedResourceError()])


async def a_group_in_groups() -> None:
    raise ExceptionGroup(
        "planted", [ExceptionGroup("in", [OSError("x"), ExceptionGroup("in", [KeyError(1)])])]
    )


async def a_group_with_a_cancellation() -> None:
    raise BaseExceptionGroup("planted", [ValueError("x"), await cancelled()])


async def a_group_of_cancellations() -> None:
    raise BaseExceptionGroup("planted", [BaseExceptionGroup("in", [await cancelled()])])


async def a_lone_cancellation() -> None:
    raise await cancelled()


async def a_task_of_its_own() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        nursery.start_soon(a_group)
        nursery.start_soon(a_bug)


BREAKS: Final = (
    a_bug,
    a_group,
    a_group_in_groups,
    a_group_with_a_cancellation,
    a_group_of_cancellations,
    a_lone_cancellation,
    a_task_of_its_own,
)

CANCELLATIONS: Final = (a_group_of_cancellations, a_lone_cancellation)
"""Failures that consist of cancellations only: a nursery that ends anyway logs nothing about them."""
