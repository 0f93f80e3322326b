"""The process's memory: one heap for all threads, and a garbage collector that runs seldom."""

from __future__ import annotations

import ctypes
import gc
from typing import Final

_M_ARENA_MAX: Final = -8
"""glibc's number of that setting (malloc.h)."""


def share_one_heap() -> None:
    """Have all threads take memory from one heap, where the C library is glibc; to be called before there are any.

    glibc gives each thread a heap of its own, and what SQLite takes in one thread and gives back in another keeps them
    all from shrinking: after an hour at half load four of them held 200 MB of which 2 were in use (docs/testing.md).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)


def loading_collector() -> None:
    """Have the garbage collector look at what is young alone, for as long as the program is loaded.

    Next to nothing of what a start makes is ever garbage, and with Python's own thresholds it is all looked at again and
    again: a seventh of the start. Young garbage, some MB, is what importing leaves.
    """
    gc.set_threshold(20_000, 1_000, 1_000)


def calm_collector() -> None:
    """Keep what the start has made out of garbage collection, and collect less often.

    Measured (docs/performance.md): a quarter to two fifths more requests, and a p99 of a third to a fifth.
    """
    gc.collect(0)  # all of it would take a tenth of a second, and finds nothing more
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
