"""The deadline of tests that wait for real processes, sockets and threads.

A deadline in seconds of the wall clock measures how busy the machine is: with a load of 35, a start took 16 s for 1.9 s of
processor time. So a wait ends only when it must be a hang. A limit by contract is tested with a virtual clock, or against the
limit of the server itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio

HANG_TIMEOUT_S: Final = 120.0
"""A wait that takes longer never ends. Below pytest's own 600 s, so that the failure names the wait."""


class _IdleTime(trio.abc.Instrument):
    """The time that the event loop has waited with nothing to do."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._since = 0.0

    def before_io_wait(self, timeout: float) -> None:
        self._since = time.perf_counter()

    def after_io_wait(self, timeout: float) -> None:
        # A wait that ends late has waited for a processor.
        self.seconds += min(timeout, time.perf_counter() - self._since)


@contextmanager
def fail_after_idle(seconds: float) -> Iterator[None]:
    """Fail if the block waits longer than this for timers and sockets of its own event loop.

    Time in which the loop computes, or in which other processes have the processor, does not count.
    """
    idle = _IdleTime()
    trio.lowlevel.add_instrument(idle)
    try:
        with trio.fail_after(HANG_TIMEOUT_S):
            yield
    finally:
        trio.lowlevel.remove_instrument(idle)
    assert idle.seconds <= seconds, f"waited {idle.seconds:.2f} s with nothing to do, more than {seconds} s"
