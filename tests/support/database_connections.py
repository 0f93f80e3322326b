"""Finds database connections that a test has left open. Python itself warns only from 3.13 on, and late."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, wraps
from itertools import count
from types import FrameType
from typing import Any

_open: dict[int, str] = {}
"""The place where each open connection was opened, by its number."""


@cache
def _noted(kind: Any) -> Any:
    """Return a subclass of this connection type that is tracked until it is closed, even if it is no longer used."""

    class Noted(kind):  # type: ignore[misc]
        number: int

        def close(self) -> None:
            super().close()
            _open.pop(self.number, None)

    return Noted


def note_connections() -> None:
    """Track every connection that this process opens from now on."""
    numbers, connect = count(), sqlite3.connect

    @wraps(connect)
    def noted(*given: Any, factory: Any = sqlite3.Connection, **named: Any) -> Any:
        connection = connect(*given, factory=_noted(factory), **named)
        connection.number = next(numbers)
        _open[connection.number] = _place(sys._getframe(1))
        return connection

    sqlite3.connect = noted


def _place(frame: FrameType) -> str:
    """Return the caller's place, past libraries."""
    while frame.f_back is not None and "site-packages" in frame.f_code.co_filename:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


@contextmanager
def all_closed() -> Iterator[None]:
    """Fail if the block leaves a connection open."""
    before = set(_open)
    yield
    left = sorted(_open.pop(number) for number in set(_open) - before)
    assert not left, f"nobody has closed the connections that were opened at {', '.join(left)}"
