"""A file of lines in parts that fit a request each; whatever its size, one part is in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

from msgspec import Struct

LINES: Final = 1_000
"""The most lines in a part: as many as the refused lines that the service names."""

PART_BYTES: Final = 1 << 20

LINE_MAX: Final = 256 * 1024 + 1
"""The most bytes of a line that are sent; the service refuses a longer line without its rest."""


class Part(Struct, frozen=True):
    """Lines of the file.

    Args:
        first: the number of its first line, from 1.
        content: the lines, each with its end.
        end: the position in the file behind it, in bytes.
    """

    first: int
    content: bytes
    end: int


def parts(file: BinaryIO) -> Iterator[Part]:
    """Yield the file's parts, in order. Raises OSError."""
    first, end = 1, 0
    while True:
        lines: list[bytes] = []
        size = 0
        while len(lines) < LINES and size < PART_BYTES:
            line, length = _line(file)
            if not line:
                break
            lines.append(line)
            size += len(line)
            end += length
        if not lines:
            return
        yield Part(first, b"".join(lines), end)
        first += len(lines)


def _line(file: BinaryIO) -> tuple[bytes, int]:
    """Return the next line with an end, cut off if it is too long, and how many bytes it has in the file."""
    line = file.readline(LINE_MAX)
    length = len(line)
    rest = line
    while rest and not rest.endswith(b"\n"):
        rest = file.readline(LINE_MAX)
        length += len(rest)
    return (line if line.endswith(b"\n") or not line else line + b"\n"), length
