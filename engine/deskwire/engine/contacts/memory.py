"""Memory entries: named notes about a contact (contract 2.6, 4.7; decisions 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from deskwire.engine.core.clock import iso

ENTRIES_MAX: Final = 200
"""Maximum number of entries of a contact. This limit is our own choice (ADR 19)."""


class MemoryEntry(Struct, frozen=True):
    """A memory entry. Its name is unique for its contact. Times are in milliseconds."""

    rowid: int
    id: str
    name: str
    content: str
    description: str | None
    created_at: int
    updated_at: int


def memory_view(entry: MemoryEntry) -> dict[str, Any]:
    """Return the memory entry object."""
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
        """Return a contact's entries, newest first, with a `rowid` smaller than `before`."""

    def memory_entry(self, contact: int, name: str) -> MemoryEntry | None:
        """Return the entry of that name."""

    def memory_size(self, contact: int) -> int:
        """Count a contact's entries."""


class MemoryTransaction(MemoryReader, Protocol):
    """Changes of memory entries."""

    def put_memory_entry(self, contact: int, entry: MemoryEntry) -> MemoryEntry:
        """Store a new entry (`rowid` 0) or a changed one. Return it with its `rowid`."""

    def delete_memory_entry(self, entry: MemoryEntry) -> None:
        """Remove an entry."""

    def clear_memory(self, contact: int) -> int:
        """Delete all entries of a contact. Return the number of deleted ones."""
