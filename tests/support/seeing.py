"""Reads a store synchronously in a test; the service itself must await each read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from deskwire.engine.ports import Reader
from deskwire.storage.postgres.store import PostgresStore
from tests.support.stores import look_at

T = TypeVar("T")


def seen(store: Any, query: Callable[[Reader], T]) -> T:
    """Return the query's result without waiting for anything."""
    return query(look_at(store) if isinstance(store, PostgresStore) else store._here)
