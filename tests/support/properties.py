"""Hypothesis with Trio: it runs in a thread and calls the service's event loop from there."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio
from hypothesis import HealthCheck, settings

R = TypeVar("R")

_FACTOR: Final = int(os.environ.get("FUZZ_FACTOR", "1"))


def budget(examples: int) -> settings:
    """Return settings for the same examples in every run; `FUZZ_FACTOR=<n>` makes n times as many, different each run."""
    return settings(
        max_examples=examples * _FACTOR,
        derandomize=_FACTOR == 1,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=[*HealthCheck],  # the time of an example depends on the machine's load
    )


async def hold(test: Callable[[], None]) -> None:
    """Run a Hypothesis test in a thread, in which `here` calls back."""
    await trio.to_thread.run_sync(test)


def here(call: Callable[[], Awaitable[R]]) -> R:
    """Run an async call in the loop that called `hold`, and return its result."""
    return trio.from_thread.run(call)
