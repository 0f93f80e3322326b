"""File descriptors: as many as the system allows, and how many connections those are enough for."""

from __future__ import annotations

import resource
from typing import Final

RESERVE: Final = 256
"""Descriptors for everything but clients: the database, uploads, webhooks. Of a low limit, a fourth."""


def take_all() -> int:
    """Raise this process's limit as far as it may do that itself; returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):  # some systems name a limit that they do not grant
        return soft
    return hard


def connections(limit: int, wanted: int) -> int:
    """Return the number of clients that may be connected under a limit of descriptors: `wanted`, or as many as fit.

    Args:
        limit: of the process; RLIM_INFINITY for none.
    """
    if limit == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, limit - min(RESERVE, limit // 4)))
