"""A body of lines, cut into them while it comes (NDJSON: one JSON text a line, in UTF-8)."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import NamedTuple


class Line(NamedTuple):
    """A line that is not blank, with its number, from 1; `content` is None if it is longer than the bound."""

    number: int
    content: bytes | None


class Lines:
    """Cuts pieces of any size into lines; no more is held than a piece and the begin of a line.

    Args:
        limit: bytes that a line may have. What is longer is passed over, and the next line is as good as any.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._number = 0
        self._rest = b""
        self._passing_over = False

    def feed(self, piece: bytes) -> Iterator[Line]:
        """The lines that end in this piece."""
        first, *others = piece.split(b"\n")
        if not others:
            self._keep(self._rest + first)
            return
        *whole, rest = others
        yield from self._line(self._rest + first)
        for content in whole:
            yield from self._line(content)
        self._keep(rest)

    def end(self) -> Iterator[Line]:
        """The last line, if nothing ended it but the body's end."""
        return self._line(self._rest)

    def _line(self, content: bytes) -> Iterator[Line]:
        too_long, self._passing_over = self._passing_over or len(content) > self._limit, False
        self._number += 1
        self._rest = b""
        if self._number == 1:
            content = content.removeprefix(BOM_UTF8)
        if too_long:
            yield Line(self._number, None)
        elif content and not content.isspace():
            yield Line(self._number, content)

    def _keep(self, rest: bytes) -> None:
        if len(rest) > self._limit:
            self._passing_over = True
        self._rest = b"" if self._passing_over else rest
