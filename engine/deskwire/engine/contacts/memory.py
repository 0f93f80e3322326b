"""What is remembered of a contact: named entries (contract 2.6, 4.7; decisions 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from deskwire.engine.core.clock import iso

ENTRIES_MAX: Final = 200
"""Entries of one contact. Ours: ADR 19."""


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One thing that is remembered, under a name that is unique for its contact. Times in milliseconds."""

    rowid: int
    id: str
    name: str
    content: str
    description: str | None
    created_at: int
    updated_at: int


def memory_view(entry: MemoryEntry) -> dict[str, Any]:
    """The memory entry object."""
    return {
        "id": entry.id,
        "name": entry.name,
        "content": entry.content,
        "description": entry.description,
        "createdAt": iso(entry.created_at),
        "updatedAt": iso(entry.updated_at),
    }


class MemoryReader(Protocol):
    """Queries on memory entries."""

    def memory_entries(self, contact: int, before: int | None, limit: int) -> Sequence[MemoryEntry]:
        """A contact's entries, newest first, with a `rowid` smaller than `before`."""

    def memory_entry(self, contact: int, name: str) -> MemoryEntry | None:
        """The entry of that name."""

    def memory_size(self, contact: int) -> int:
        """How many entries there are."""


class MemoryTransaction(MemoryReader, Protocol):
    """Changes of memory entries."""

    def put_memory_entry(self, contact: int, entry: MemoryEntry) -> MemoryEntry:
        """Store a new entry (`rowid` 0) or a changed one; returns it with its `rowid`."""

    def delete_memory_entry(self, entry: MemoryEntry) -> None:
        """Remove an entry."""

    def clear_memory(self, contact: int) -> int:
        """Remove all entries of a contact; how many there were."""
