"""Hypothesis beside Trio: it runs in a thread of its own and calls the service's run from there."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio
from hypothesis import HealthCheck, settings

R = TypeVar("R")

_FACTOR: Final = int(os.environ.get("FUZZ_FACTOR", "1"))


def budget(examples: int) -> settings:
    """The same examples in every run; with `FUZZ_FACTOR=<n>` that many times as many, others in each run."""
    return settings(
        max_examples=examples * _FACTOR,
        derandomize=_FACTOR == 1,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=[*HealthCheck],  # what an example takes depends on what else the machine does
    )


async def hold(test: Callable[[], None]) -> None:
    """Run a Hypothesis test in a thread. There `here` calls back."""
    await trio.to_thread.run_sync(test)


def here(call: Callable[[], Awaitable[R]]) -> R:
    """What an async call gives in the run that `hold` was called in."""
    return trio.from_thread.run(call)
