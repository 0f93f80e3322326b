"""Buckets for strangers, of whom there may be any number: a count-min sketch of fixed size (Cormode, Muthukrishnan 2005).

Each row has a cell for a key, and the fullest of its cells is the key's bucket. A cell that others use, too, is never
fuller than the key's own bucket would be, and nothing is ever dropped: making up keys frees none of those before, it
takes from others at worst. With 9,000 keys counted at once, more than passwords can be checked for in the time that
most of them need to be full again, one key in 3,700 shares all of its cells.
"""

from __future__ import annotations

import mmap
import secrets
from hashlib import blake2b
from typing import Final

from deskwire.engine.core.limits.rate_limit import Quota, RateLimit, nanoseconds, quota, take, taken

ROWS: Final = 4
COLUMNS: Final = 1 << 16
"""Cells in a row. All rows together are 2 MiB, of which the system gives the pages that are written to."""
_CELL_BYTES: Final = 8
_PLACE_BYTES: Final = 2  # a number below COLUMNS


class Sketch:
    """A bucket for each of any number of keys.

    Args:
        rate: None for no limit.
    """

    def __init__(self, rate: RateLimit | None) -> None:
        self.refused = 0
        self._whole = self._rate = rate
        self._secret = secrets.token_bytes(16)  # or others could make up keys that share the cells of one
        # Pages of the system's, which are zero and nobody's until one is written to; a bytearray writes to all of its own.
        pages = mmap.mmap(-1, ROWS * COLUMNS * _CELL_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._cells = memoryview(pages).cast("q")

    def take(self, who: str, now_s: float) -> Quota | None:
        """Take one for `who`, and return what is left. With a `retry_after_s` there was none. None if there is no limit."""
        if self._rate is None:
            return None
        now, cells = nanoseconds(now_s), self._cells_of(who)
        before = self._full_at(cells)
        after = take(self._rate, before, now)
        if after is None:
            self.refused += 1
            return quota(self._rate, before, now)
        for cell in cells:
            self._cells[cell] = max(self._cells[cell], after)
        return taken(self._rate, after, now)

    def look(self, who: str, now_s: float) -> Quota | None:
        """Return what `who` has left, taking nothing; None if there is no limit."""
        if self._rate is None:
            return None
        return quota(self._rate, self._full_at(self._cells_of(who)), nanoseconds(now_s))

    def share(self, nodes: int) -> None:
        """Allow from now on what is the part of one of so many nodes, and tell of that alone."""
        if self._whole is not None:
            self._rate = self._whole.shared(nodes)

    @property
    def size(self) -> int:
        """The bytes that it takes up at most, however many keys there are."""
        return self._cells.nbytes

    def _full_at(self, cells: list[int]) -> int:
        return min([self._cells[cell] for cell in cells])

    def _cells_of(self, who: str) -> list[int]:
        """The places of its cells, one in each row."""
        digest = blake2b(
            who.encode("utf-8", "surrogatepass"), digest_size=ROWS * _PLACE_BYTES, key=self._secret
        )
        places = memoryview(digest.digest()).cast("H")
        return [row * COLUMNS + place for row, place in enumerate(places)]
