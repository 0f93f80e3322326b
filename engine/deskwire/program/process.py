"""Settings of the process: heap, garbage collector, file descriptors, and imports of terminal libraries."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from types import ModuleType
from typing import Final, cast

_M_ARENA_MAX: Final = -8  # glibc's constant (malloc.h)


def share_one_heap() -> None:
    """Let all threads allocate from one heap, with glibc. Call it before threads start.

    Otherwise glibc gives each thread its own heap, and memory that SQLite allocates in one thread and frees in another
    keeps them from shrinking: after an hour at half load, four heaps held 200 MB with 2 MB in use (docs/testing.md).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)


def tune_collector_for_loading() -> None:
    """Limit garbage collection to young objects while the program loads.

    A start creates almost no garbage except while importing, but Python's default thresholds would scan all objects
    repeatedly, which takes a seventh of the start.
    """
    gc.set_threshold(20_000, 1_000, 1_000)


def tune_collector_for_serving() -> None:
    """Exclude objects created at startup from garbage collection, and collect less often.

    Measured (docs/performance.md): 25 to 40 % more requests, and a p99 three to five times lower.
    """
    gc.collect(0)  # a full collection would take a tenth of a second and find nothing more
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


DESCRIPTOR_RESERVE: Final = 256
"""Descriptors for other uses than clients: database, uploads, webhooks. At most a quarter of the limit."""


def raise_descriptor_limit() -> int:
    """Raise this process's limit to its hard limit. Return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):  # some systems report a limit that they do not grant
        return soft
    return hard


def connections_max(limit: int, wanted: int) -> int:
    """Return the maximum number of clients: `wanted`, or as many as the limit of descriptors allows.

    Args:
        limit: the process's; RLIM_INFINITY for none.
    """
    if limit == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, limit - min(DESCRIPTOR_RESERVE, limit // 4)))


_FOR_TERMINALS: Final = ("pygments", "rich")
"""Loaded by structlog for coloured tracebacks and by httpx for its command line, if installed: 75 modules, 5 MB."""


@contextmanager
def without_terminal_libraries() -> Iterator[None]:
    """Hide these libraries from imports in the context, unless they are loaded already.

    An import of a module that is None in `sys.modules` fails (https://docs.python.org/3/reference/import.html#the-module-cache).
    """
    modules = cast(MutableMapping[str, ModuleType | None], sys.modules)
    hidden = [name for name in _FOR_TERMINALS if name not in modules]
    modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del modules[name]
