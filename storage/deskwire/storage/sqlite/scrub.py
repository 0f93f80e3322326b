"""Leaves no byte of what was erased: neither in the WAL, nor in parts of the file that are not in use.

`secure_delete` zeroes a row where it stands. But when SQLite splits or merges pages it moves rows, and
leaves their old bytes in the part of the page that is not in use. Those parts are found by the file
format (https://www.sqlite.org/fileformat2.html, section 1.6, b-tree pages) and zeroed here, in place. Before that
the search index forgets its words.

The file is gone through in rounds, a slice of pages at a time. Text may have left bytes on any page, so what is
deleted is owed one round, from where the scrubber stands to there again; a deletion on the way begins no other round, but
makes this one longer by what was gone through before. So each deletion has its end, however many follow it.

In place is safe: only bytes that mean nothing change, so a write that is cut short harms nothing, and
readers need not be told. It is complete because the WAL is emptied first and the writer's cache dropped
afterwards: a newer copy of a page would bring the old bytes back. Where a slice was clean, the copies are so, too.
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
"""From here on an overflow page can begin like a b-tree page; 128 GiB of pages of 4 KiB."""

SLICE: Final = 500
"""Pages that are looked at in one go; a few milliseconds of the writer's time."""

RETRY_S: Final = 0.25
"""The pause before another try when a reader was in the way."""


class _Place(NamedTuple):
    """The scrubber's place: the rounds that it has made, and the page that is next."""

    round: int
    page: int


class Scrubber:
    """Goes through the database file after erasures, a slice of pages at a time.

    That it has to is stored with the erasure itself, so that what a crash cut short begins anew.
    To be used by the writer, between transactions.

    Args:
        file: a descriptor of the database file, open for as long as any connection to it: closing one
            takes away all locks that this process has on the file (POSIX).
        now: a clock, in seconds.
        search: the index that forgets its words first, if the database has one.
        noted_in: the table of one row that notes, as `scrub_due`, that there is something to do.
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
        self._place = _Place(0, 0)
        self._asked: float | None = None  # since when deletions wait for a merge of the index to begin
        self._merging: float | None = None  # and those that the merge under way is for
        self._owed: deque[tuple[_Place, float]] = deque()  # where rounds end, and since when they are owed
        if connection.execute(f"SELECT scrub_due FROM {noted_in}").fetchone()[0]:
            self.want()

    @property
    def since(self) -> float | None:
        """The time of the oldest deletion that is not yet overwritten; None if there is none."""
        owed = self._owed[0][1] if self._owed else None
        return next((at for at in (owed, self._merging, self._asked) if at is not None), None)

    @property
    def due(self) -> bool:
        """True if there is something to do."""
        return self.since is not None

    def want(self) -> None:
        """Have what was erased by now overwritten."""
        if self._asked is None:
            self._asked = self._now()

    def step(self) -> float:
        """Do a part of the work. Return the seconds to wait before the next part."""
        if not self.due:
            return 0
        try:
            self._merge()
            if not self._owed:
                return 0
            if not self._empty_wal():
                return RETRY_S
            after, cleaned = self._scrub_slice()
            if cleaned:
                self._connection.execute("PRAGMA shrink_memory")
            if self._owed[-1][0] <= after and self._merging is None and self._asked is None:
                self._connection.execute(f"UPDATE {self._noted_in} SET scrub_due = 0")
        except (OSError, sqlite3.OperationalError) as error:
            log.warning("storage.scrub_delayed", error=str(error))
            return RETRY_S
        self._place = after
        while self._owed and self._owed[0][0] <= after:
            self._owed.popleft()
        return 0

    def _merge(self) -> None:
        """Have the index forget what was erased before this merge began; then its round may begin."""
        if self._merging is None:
            if self._asked is None:
                return
            self._merging, self._asked = self._asked, None
            if self._search is not None:
                self._search.restart()
        if self._search is None or self._search.step(last=self._asked is None):
            if not self._owed:
                self._place = _Place(0, 0)
            end = _Place(self._place.round + 1, self._place.page)
            if not self._owed or self._owed[-1][0] != end:
                self._owed.append((end, self._merging))
            self._merging = None

    def _empty_wal(self) -> bool:
        """Fold the WAL into the file and cut it to nothing; False if a reader is in the way."""
        try:
            self._connection.execute("PRAGMA busy_timeout = 0")
            return not self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            self._connection.execute("PRAGMA busy_timeout = 5000")

    def _scrub_slice(self) -> tuple[_Place, bool]:
        """Overwrite what is unused in the next slice of pages; return the place behind it, and whether there was any.

        Rounds that end there are on disk.
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
        after = _Place(self._place.round, first + SLICE) if more else _Place(self._place.round + 1, 0)
        if self._owed[0][0] <= after:
            os.fsync(self._file)
        return after, cleaned


def _sizes(header: bytes) -> tuple[int, int]:
    """Page size, and the bytes at each page's end that are not SQLite's."""
    size = int.from_bytes(header[16:18]) if len(header) == _FILE_HEADER else 0
    return (65_536 if size == 1 else size or 4096), header[20] if header else 0


def scrubbed(page: bytes, header: int, usable: int) -> bytes:
    """Return the page with its unused parts zeroed; the page itself if it is none of a b-tree.

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
