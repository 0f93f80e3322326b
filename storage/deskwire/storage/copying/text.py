"""The rows' texts in the form in which PostgreSQL keeps them, and digests of rows that are the same on both sides."""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, Final

from deskwire.storage.postgres.driver.codec import stored_text

_MARKS: Final = ("\0", "\ue000")
_SIZE: Final = 16
_PLAIN: Final = 0
"""The version of marshal that writes equal values as equal bytes, whichever objects they are."""


def escaped(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row with its texts as they are stored."""
    if any(isinstance(value, str) and any(mark in value for mark in _MARKS) for value in row):
        return tuple(stored_text(value).decode() if isinstance(value, str) else value for value in row)
    return row


class Digest:
    """The number and the keyed digest of rows, in whatever order they come.

    Args:
        key: up to 64 bytes that nobody knows who has written the rows.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._sum = 0
        self.rows = 0

    def over(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows, each of which is taken in."""
        for row in rows:
            hashed = blake2b(marshal.dumps(row, _PLAIN), digest_size=_SIZE, key=self._key).digest()
            self._sum += int.from_bytes(hashed)
            self.rows += 1
            yield row

    def __eq__(self, other: object) -> bool:
        """Tell whether the other has had the same rows."""
        return isinstance(other, Digest) and (self.rows, self._value) == (other.rows, other._value)

    __hash__ = None  # type: ignore[assignment]  # it changes

    @property
    def _value(self) -> int:
        return self._sum % (1 << 8 * _SIZE)
