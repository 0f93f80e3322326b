"""NDJSON bodies, split into lines while they arrive.

Each line is one JSON text in UTF-8.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import NamedTuple


class NdjsonLine(NamedTuple):
    """A line that is not blank, with its number from 1.

    `content` is None if it exceeds the limit.
    """

    number: int
    content: bytes | None


class NdjsonReader:
    """Splits chunks of any size into lines.

    Holds one chunk and the start of a line.

    Args:
        limit: bytes of a line. A longer line is skipped, and reading continues with the next line.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._number = 0
        self._rest = b""
        self._passing_over = False

    def feed(self, piece: bytes) -> list[NdjsonLine]:
        """Return the lines that end in this chunk."""
        first, *others = piece.split(b"\n")
        if not others:
            self._keep(self._rest + first)
            return []
        rest = others.pop()
        lines = self._begun(first)
        number, limit = self._number, self._limit
        for content in others:
            number += 1
            if len(content) > limit:
                lines.append(NdjsonLine(number, None))
            elif content and not content.isspace():
                lines.append(NdjsonLine(number, content))
        self._number = number
        self._keep(rest)
        return lines

    def end(self) -> list[NdjsonLine]:
        """Return the last line, if it ends with the body instead of a line break."""
        return self._begun(b"")

    def _begun(self, end: bytes) -> list[NdjsonLine]:
        """Return the line whose start is in earlier chunks."""
        content, too_long = self._rest + end, self._passing_over
        self._rest, self._passing_over = b"", False
        self._number += 1
        if self._number == 1:
            content = content.removeprefix(BOM_UTF8)
        if too_long or len(content) > self._limit:
            return [NdjsonLine(self._number, None)]
        return [NdjsonLine(self._number, content)] if content and not content.isspace() else []

    def _keep(self, rest: bytes) -> None:
        if len(rest) > self._limit:
            self._passing_over = True
        self._rest = b"" if self._passing_over else rest
