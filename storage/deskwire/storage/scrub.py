"""Leaves no byte of what was erased: neither in the WAL, nor in parts of the file that are not in use.

`secure_delete` zeroes a row where it stands. But when SQLite splits or merges pages it moves rows, and
leaves their old bytes in the part of the page that is not in use. Those parts are found by the file
format (https://www.sqlite.org/fileformat2.html, section 1.6, b-tree pages) and zeroed here, in place. Before that
the search index forgets its words.

In place is safe: only bytes that mean nothing change, so a write that is cut short harms nothing, and
readers need not be told. It is complete because the WAL is emptied first and the writer's cache dropped
afterwards: a newer copy of a page would bring the old bytes back.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from typing import Final

import structlog

from deskwire.storage.ticket_search import SearchMerge

log: Final = structlog.get_logger(__name__)

_INTERIOR: Final = frozenset({2, 5})
_LEAF: Final = frozenset({10, 13})
_FILE_HEADER: Final = 100
_PAGES_MAX: Final = 1 << 25
"""From here on an overflow page can begin like a b-tree page; 128 GiB of pages of 4 KiB."""

SLICE: Final = 500
"""Pages that are looked at in one go; a few milliseconds of the writer's time."""

RETRY_S: Final = 0.25
"""How soon to try again when a reader was in the way."""


class ScrubWish:
    """What a transaction deletes text with that no event or delivery carried."""

    conn: sqlite3.Connection
    scrub_wanted: bool = False

    def want_scrub(self) -> None:
        """Have the unused parts of the file overwritten after this commit."""
        self.conn.execute("UPDATE event_window SET scrub_due = 1")
        self.scrub_wanted = True


class Scrubber:
    """Goes through the database file after erasures, a slice of pages at a time.

    That it has to is stored with the erasure itself, so that a pass which a crash cut short begins anew.
    To be used by the writer, between transactions.

    Args:
        file: a descriptor of the database file, open for as long as any connection to it: closing one
            takes away all locks that this process has on the file (POSIX).
        search: the index that forgets its words first, if the database has one.
    """

    def __init__(self, connection: sqlite3.Connection, file: int, search: SearchMerge | None = None) -> None:
        self._connection = connection
        self._search = search
        self._file = file
        due = connection.execute("SELECT scrub_due FROM event_window").fetchone()[0]
        self._next: int | None = 0 if due else None

    @property
    def due(self) -> bool:
        """Whether there is something to do."""
        return self._next is not None

    def restart(self) -> None:
        """Begin a pass: something was erased."""
        if self._search is not None:
            self._search.restart()
        self._next = 0

    def step(self) -> float:
        """Do a part of the work; how many seconds to wait before the next part."""
        if self._next is None:
            return 0
        try:
            if self._search is not None and not self._search.step():
                return 0
            if not self._empty_wal():
                return RETRY_S
            done = self._scrub(self._next)
            self._connection.execute("PRAGMA shrink_memory")
            if done:
                self._connection.execute("UPDATE event_window SET scrub_due = 0")
        except (OSError, sqlite3.OperationalError) as error:
            log.warning("storage.scrub_delayed", error=str(error))
            return RETRY_S
        self._next = None if done else self._next + SLICE
        return 0

    def _empty_wal(self) -> bool:
        """Fold the WAL into the file and cut it to nothing; False if a reader is in the way."""
        try:
            self._connection.execute("PRAGMA busy_timeout = 0")
            return not self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            self._connection.execute("PRAGMA busy_timeout = 5000")

    def _scrub(self, first: int) -> bool:
        """Look at a slice of pages; whether it was the last one, and everything is on disk."""
        page_size, reserved = _sizes(os.pread(self._file, _FILE_HEADER, 0))
        data = os.pread(self._file, SLICE * page_size, first * page_size)
        if first + SLICE > _PAGES_MAX:
            log.error("storage.scrub_impossible", reason="the file is too large; VACUUM it after erasures")
            return True
        for at in range(0, len(data) - page_size + 1, page_size):
            number = first + at // page_size
            page = data[at : at + page_size]
            clean = scrubbed(page, 0 if number else _FILE_HEADER, page_size - reserved)
            if clean != page:
                os.pwrite(self._file, clean, number * page_size)
        if len(data) == SLICE * page_size:
            return False
        os.fsync(self._file)
        return True


def _sizes(header: bytes) -> tuple[int, int]:
    """Page size, and the bytes at each page's end that are not SQLite's."""
    size = int.from_bytes(header[16:18]) if len(header) == _FILE_HEADER else 0
    return (65_536 if size == 1 else size or 4096), header[20] if header else 0


def scrubbed(page: bytes, header: int, usable: int) -> bytes:
    """The page with its unused parts zeroed; the page itself if it is none of a b-tree.

    Up to three bytes between two rows, which the format does not keep account of, stay.

    Args:
        header: where the page's header begins; behind the file's header on the first page.
        usable: how much of the page is SQLite's, in bytes.
    """
    kind = page[header]
    if kind not in _INTERIOR and kind not in _LEAF:
        return page
    block, cells, content = struct.unpack_from(">HHH", page, header + 1)
    unused = [(header + (12 if kind in _INTERIOR else 8) + 2 * cells, content or 65_536)]
    while block:
        if not unused[0][1] <= block <= usable - 4:
            return page
        following, size = struct.unpack_from(">HH", page, block)
        unused.append((block + 4, block + size))
        if following and following <= block:
            return page
        block = following
    if any(not 0 <= start <= end <= usable for start, end in unused):
        return page
    clean = bytearray(page)
    for start, end in unused:
        clean[start:end] = bytes(end - start)
    return bytes(clean)
