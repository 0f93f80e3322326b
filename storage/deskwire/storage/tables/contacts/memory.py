"""Memory entries of contacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deskwire.engine.contacts.memory import MemoryEntry
from deskwire.engine.core.values import replace
from deskwire.storage.tables.base import Changes, Queries

_COLUMNS: Final = "rowid, id, name, content, description, created_at, updated_at"
_NO_ROW: Final = (1 << 63) - 1


class MemoryReads(Queries):
    """The methods are those of `engine.contacts.memory.MemoryReader`."""

    def memory_entries(self, contact: int, before: int | None, limit: int) -> Sequence[MemoryEntry]:
        rows = self.conn.execute(
            f"SELECT {_COLUMNS} FROM memory WHERE contact = ? AND rowid < ? ORDER BY rowid DESC LIMIT ?",
            (contact, _NO_ROW if before is None else before, limit),
        )
        return [MemoryEntry(*row) for row in rows]

    def memory_entry(self, contact: int, name: str) -> MemoryEntry | None:
        sql = f"SELECT {_COLUMNS} FROM memory WHERE contact = ? AND name = ?"
        row = self.conn.execute(sql, (contact, name)).fetchone()
        return None if row is None else MemoryEntry(*row)

    def memory_size(self, contact: int) -> int:
        row = self.conn.execute("SELECT count(*) FROM memory WHERE contact = ?", (contact,)).fetchone()
        return int(row[0])


class MemoryWrites(Changes):
    """The methods are those of `engine.contacts.memory.MemoryTransaction`."""

    def put_memory_entry(self, contact: int, entry: MemoryEntry) -> MemoryEntry:
        if entry.rowid:
            self.conn.execute(
                "UPDATE memory SET content = ?, description = ?, updated_at = ? WHERE rowid = ?",
                (entry.content, entry.description, entry.updated_at, entry.rowid),
            )
            return entry
        rowid = self.inserted(
            "INSERT INTO memory (id, contact, name, content, description, created_at, updated_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                entry.id,
                contact,
                entry.name,
                entry.content,
                entry.description,
                entry.created_at,
                entry.updated_at,
            ),
        )
        return replace(entry, rowid=rowid)

    def delete_memory_entry(self, entry: MemoryEntry) -> None:
        self.conn.execute("DELETE FROM memory WHERE rowid = ?", (entry.rowid,))
        self.want_scrub()

    def clear_memory(self, contact: int) -> int:
        deleted = self.conn.execute("DELETE FROM memory WHERE contact = ?", (contact,)).rowcount
        if deleted:
            self.want_scrub()
        return deleted
