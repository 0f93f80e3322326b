"""Overwrites the remains of erased rows in the WAL and in unused parts of the database file.

`secure_delete` zeroes a deleted row in its place. But when SQLite splits or merges pages it moves rows, and leaves their
old bytes in the unused part of the page. The scrubber finds these parts by the file format
(https://www.sqlite.org/fileformat2.html, section 1.6, b-tree pages) and zeroes them in place. Before that, the search
index drops the words of erased rows.

The scrubber cycles through the file in slices of pages. Remains may be on any page, so each deletion requires one full
round from the current page. A deletion during a round only extends the round by the pages passed before it; therefore
every deletion is completed, no matter how many follow.

Writing in place is safe: only unused bytes change, so an interrupted write and concurrent readers do no harm. It is
complete because the WAL is truncated before, and the writer's cache is dropped afterwards if a page changed: a newer copy
of a page would restore the old bytes.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

import structlog

from deskwire.storage.sqlite.ticket_search import SearchMerge

log: Final = structlog.get_logger(__name__)

_INTERIOR: Final = frozenset({2, 5})
_LEAF: Final = frozenset({10, 13})
_FILE_HEADER: Final = 100
_PAGES_MAX: Final = 1 << 25
"""From this page on an overflow page may start like a b-tree page: 128 GiB with pages of 4 KiB."""

SLICE: Final = 500
"""Pages of one step, a few milliseconds of the writer's time."""

RETRY_DELAY_S: Final = 0.25
"""Delay before the next attempt if a reader prevented the checkpoint."""


class _ScrubPosition(NamedTuple):
    """The position of the scrubber: completed rounds and the next page."""

    round: int
    page: int


class Scrubber:
    """Scrubs the database file after erasures, one slice of pages at a time.

    The flag `scrub_due` is stored with the erasure, so that scrubbing starts again after a crash. Used by the writer,
    between transactions.

    Args:
        file: a descriptor of the database file. It must stay open as long as any connection, because closing it would
            release all locks of this process on the file (POSIX).
        now: a clock, in seconds.
        search: the search index that drops words first, if the database has one.
        noted_in: the table, with one row, of the flag `scrub_due`.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        file: int,
        now: Callable[[], float],
        search: SearchMerge | None = None,
        noted_in: str = "event_window",
    ) -> None:
        self._connection = connection
        self._file = file
        self._now = now
        self._search = search
        self._noted_in = noted_in
        self._place = _ScrubPosition(0, 0)
        self._asked: float | None = None  # start of the wait for the next merge of the index
        self._merging: float | None = None  # the same, for deletions of the current merge
        self._owed: deque[tuple[_ScrubPosition, float]] = (
            deque()
        )  # ends of pending rounds, and times of their deletions
        if connection.execute(f"SELECT scrub_due FROM {noted_in}").fetchone()[0]:
            self.want()

    @property
    def since(self) -> float | None:
        """The time of the oldest deletion that is not overwritten yet; None if there is none."""
        owed = self._owed[0][1] if self._owed else None
        return next((at for at in (owed, self._merging, self._asked) if at is not None), None)

    @property
    def due(self) -> bool:
        """True if there is work to do."""
        return self.since is not None

    def want(self) -> None:
        """Schedule everything erased so far to be overwritten."""
        if self._asked is None:
            self._asked = self._now()

    def step(self) -> float:
        """Do one step; return the seconds to wait before the next one."""
        if not self.due:
            return 0
        try:
            self._merge()
            if not self._owed:
                return 0
            if not self._empty_wal():
                return RETRY_DELAY_S
            after, cleaned = self._scrub_slice()
            if cleaned:
                self._connection.execute("PRAGMA shrink_memory")
            if self._owed[-1][0] <= after and self._merging is None and self._asked is None:
                self._connection.execute(f"UPDATE {self._noted_in} SET scrub_due = 0")
        except (OSError, sqlite3.OperationalError) as error:
            log.warning("storage.scrub_delayed", error=str(error))
            return RETRY_DELAY_S
        self._place = after
        while self._owed and self._owed[0][0] <= after:
            self._owed.popleft()
        return 0

    def _merge(self) -> None:
        """Drop words from the index that were erased before the merge; its round starts afterwards."""
        if self._merging is None:
            if self._asked is None:
                return
            self._merging, self._asked = self._asked, None
            if self._search is not None:
                self._search.restart()
        if self._search is None or self._search.step(last=self._asked is None):
            if not self._owed:
                self._place = _ScrubPosition(0, 0)
            end = _ScrubPosition(self._place.round + 1, self._place.page)
            if not self._owed or self._owed[-1][0] != end:
                self._owed.append((end, self._merging))
            self._merging = None

    def _empty_wal(self) -> bool:
        """Checkpoint and truncate the WAL; return False if a reader prevents it."""
        try:
            self._connection.execute("PRAGMA busy_timeout = 0")
            return not self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            self._connection.execute("PRAGMA busy_timeout = 5000")

    def _scrub_slice(self) -> tuple[_ScrubPosition, bool]:
        """Zero unused parts of the next slice of pages; return the next position, and whether any page changed.

        If a round ends in the slice, the file is synced.
        """
        first = self._place.page
        page_size, reserved = _sizes(os.pread(self._file, _FILE_HEADER, 0))
        data = os.pread(self._file, SLICE * page_size, first * page_size)
        if first + SLICE > _PAGES_MAX:
            log.error("storage.scrub_impossible", reason="the file is too large; VACUUM it after erasures")
            data = b""
        cleaned = False
        for at in range(0, len(data) - page_size + 1, page_size):
            number = first + at // page_size
            page = data[at : at + page_size]
            clean = scrubbed(page, 0 if number else _FILE_HEADER, page_size - reserved)
            if clean != page:
                os.pwrite(self._file, clean, number * page_size)
                cleaned = True
        more = len(data) == SLICE * page_size
        after = (
            _ScrubPosition(self._place.round, first + SLICE)
            if more
            else _ScrubPosition(self._place.round + 1, 0)
        )
        if self._owed[0][0] <= after:
            os.fsync(self._file)
        return after, cleaned


def _sizes(header: bytes) -> tuple[int, int]:
    """Return the page size, and the reserved bytes at the end of each page."""
    size = int.from_bytes(header[16:18]) if len(header) == _FILE_HEADER else 0
    return (65_536 if size == 1 else size or 4096), header[20] if header else 0


def scrubbed(page: bytes, header: int, usable: int) -> bytes:
    """Return the page with its unused parts zeroed, or the same page if it is not a b-tree page.

    Fragments of up to three bytes between two rows, which the format does not list, stay.

    Args:
        header: the offset of the page header, which follows the file header on the first page.
        usable: the bytes of the page that SQLite uses.
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
