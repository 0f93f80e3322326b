"""The process's memory: one heap for all threads, and a garbage collector that runs seldom."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from types import ModuleType
from typing import Final, cast

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


def tune_collector_for_loading() -> None:
    """Have the garbage collector look at what is young alone, for as long as the program is loaded.

    Next to nothing of what a start makes is ever garbage, and with Python's own thresholds it is all looked at again and
    again: a seventh of the start. Young garbage, some MB, is what importing leaves.
    """
    gc.set_threshold(20_000, 1_000, 1_000)


def tune_collector_for_serving() -> None:
    """Keep what the start has made out of garbage collection, and collect less often.

    Measured (docs/performance.md): a quarter to two fifths more requests, and a p99 of a third to a fifth.
    """
    gc.collect(0)  # all of it would take a tenth of a second, and finds nothing more
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


DESCRIPTOR_RESERVE: Final = 256
"""Descriptors for everything but clients: the database, uploads, webhooks. Of a low limit, a fourth."""


def raise_descriptor_limit() -> int:
    """Raise this process's limit as far as it may do that itself; returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):  # some systems name a limit that they do not grant
        return soft
    return hard


def connections_max(limit: int, wanted: int) -> int:
    """Return the number of clients that may be connected under a limit of descriptors: `wanted`, or as many as fit.

    Args:
        limit: of the process; RLIM_INFINITY for none.
    """
    if limit == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, limit - min(DESCRIPTOR_RESERVE, limit // 4)))


_FOR_TERMINALS: Final = ("pygments", "rich")
"""What structlog loads for coloured tracebacks and httpx for its command line, if it is there: 75 modules, 5 MB."""


@contextmanager
def without_terminal_libraries() -> Iterator[None]:
    """Have those libraries not be found by what is imported inside, except one that is loaded already.

    A module that is None is not found (https://docs.python.org/3/reference/import.html#the-module-cache).
    """
    modules = cast(MutableMapping[str, ModuleType | None], sys.modules)
    hidden = [name for name in _FOR_TERMINALS if name not in modules]
    modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del modules[name]
