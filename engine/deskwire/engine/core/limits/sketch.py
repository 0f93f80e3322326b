"""Rate limits for any number of unauthenticated clients: a count-min sketch (Cormode, Muthukrishnan 2005).

Each row has one cell for a key, and the fullest of these cells is the key's bucket. A shared cell is never fuller than the
key's own bucket would be, and nothing is evicted, so made-up keys cannot refill a bucket. At worst they empty buckets of
other keys. With 9,000 keys at a time, one key in 3,700 shares all of its cells. That is more keys than passwords can be
checked in the time in which most buckets refill.
"""

from __future__ import annotations

import mmap
import secrets
from hashlib import blake2b
from typing import Final

from deskwire.engine.core.limits.rate_limit import Quota, RateLimit, nanoseconds, quota, take, taken

ROWS: Final = 4
COLUMNS: Final = 1 << 16
"""Cells per row. All rows take 2 MiB, of which the system allocates only the pages that are written to."""
_CELL_BYTES: Final = 8
_PLACE_BYTES: Final = 2  # a number below COLUMNS


class Sketch:
    """Approximate buckets for any number of keys, in constant memory.

    Args:
        rate: limit of each bucket, None for no limit.
    """

    def __init__(self, rate: RateLimit | None) -> None:
        self.refused = 0
        self._whole = self._rate = rate
        self._secret = secrets.token_bytes(
            16
        )  # so that an attacker can't choose keys with the cells of another key
        # Anonymous pages are allocated at the first write. A bytearray would write to all of its memory at once.
        pages = mmap.mmap(-1, ROWS * COLUMNS * _CELL_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._cells = memoryview(pages).cast("q")

    def take(self, who: str, now_s: float) -> Quota | None:
        """Take a token for `who` and return the state.

        `retry_after_s` above 0 means refused. None if there is no limit.
        """
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

    def peek(self, who: str, now_s: float) -> Quota | None:
        """Return the state for `who` without taking a token. None if there is no limit."""
        if self._rate is None:
            return None
        return quota(self._rate, self._full_at(self._cells_of(who)), nanoseconds(now_s))

    def share(self, nodes: int) -> None:
        """Limit this node to its share of `nodes` nodes. Returned quotas are for this node only."""
        if self._whole is not None:
            self._rate = self._whole.shared(nodes)

    @property
    def size(self) -> int:
        """Maximum memory in bytes, for any number of keys."""
        return self._cells.nbytes

    def _full_at(self, cells: list[int]) -> int:
        return min([self._cells[cell] for cell in cells])

    def _cells_of(self, who: str) -> list[int]:
        """Return the indices of the key's cells, one in each row."""
        digest = blake2b(
            who.encode("utf-8", "surrogatepass"), digest_size=ROWS * _PLACE_BYTES, key=self._secret
        )
        places = memoryview(digest.digest()).cast("H")
        return [row * COLUMNS + place for row, place in enumerate(places)]
