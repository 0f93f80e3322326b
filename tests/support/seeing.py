"""What a test sees of a store here and now, as nobody else may: who serves waits for each read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from deskwire.engine.ports import Reader

T = TypeVar("T")


class Seen(Protocol):
    """A store that has a reader at hand."""

    @property
    def _here(self) -> Reader: ...


def seen(store: Seen, query: Callable[[Reader], T]) -> T:
    """Return the query's result without waiting for anything."""
    return query(store._here)
