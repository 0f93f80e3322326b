"""Reads the records of a file: JSON lines, an array of any length, or a sequence of documents.

Only one record is in memory, or one document that has several, such as the page of a list.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from msgspec import Struct

PIECE: Final = 1 << 20
RECORD_MAX: Final = 64 << 20  # characters of a record, or of the document around it
_CUT_OFF: Final = 16
"""Maximum distance between the end of the buffer and an error that truncation causes: no literal or escape is longer."""
_DIGITS_MAX: Final = 20  # characters of a 64-bit integer with its sign


class UnfitFileError(Exception):
    """A file that is not JSON in UTF-8; the text names the position."""


class Unreadable(Struct, frozen=True):
    """A record of invalid JSON: its line and the reason."""

    line: int
    reason: str


class _Window:
    """The buffered part of a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._bytes = 0
        self.text = ""
        self.at = 0
        self.line = 1
        self.ended = False

    def more(self) -> None:
        """Read as much as is buffered, so that a long record takes linear time."""
        self._take_off()
        pieces = self._file.read(max(PIECE, len(self.text)))
        try:
            self.text += self._decoder.decode(pieces, final=not pieces)
        except UnicodeDecodeError as error:
            raise UnfitFileError(f"byte {self._bytes + error.start + 1:,} is not UTF-8") from error
        self._bytes += len(pieces)
        self.ended = not pieces

    def _take_off(self) -> None:
        self.line += self.text.count("\n", 0, self.at)
        self.text, self.at = self.text[self.at :], 0

    def skip(self, characters: str) -> str:
        """Skip these characters; return the next one, or "" at the end of the file."""
        while True:
            while self.at < len(self.text):
                if self.text[self.at] not in characters:
                    return self.text[self.at]
                self.at += 1
            if self.ended:
                return ""
            self.more()

    def skip_line(self) -> None:
        """Move to the end of the line."""
        while (end := self.text.find("\n", self.at)) < 0 and not self.ended:
            self.at = len(self.text)
            self.more()
        self.at = len(self.text) if end < 0 else end

    def line_here(self) -> int:
        """Return the current line number."""
        return self.line + self.text.count("\n", 0, self.at)


def records(file: BinaryIO) -> Iterator[Any]:
    """Yield the records of a file, with an `Unreadable` for each broken one.

    Raises UnfitFileError for a file that is not UTF-8, and OSError.
    """
    window = _Window(file)
    blanks, inside = " \t\r\n", False
    while following := window.skip(blanks + "," if inside else blanks):
        if following == "[" and not inside:
            inside, window.at = True, window.at + 1
        elif following == "]" and inside:
            inside, window.at = False, window.at + 1
        else:
            yield _record(window)


def integer(digits: str) -> int | str:
    """Return a JSON integer, as text if it has more digits than 64 bits hold.

    Python refuses more than 4,300 digits, and an import more than 19.
    """
    return int(digits) if len(digits) <= _DIGITS_MAX else digits


def constant(_: str) -> None:
    """Return None for NaN and Infinity, which some programs write although JSON has neither."""


def unpacked(packed: str) -> Any:
    """Return the value of JSON within a text; None if it is invalid."""
    try:
        return _DECODER.decode(packed)
    except (ValueError, RecursionError):
        return None


_DECODER: Final = json.JSONDecoder(parse_int=integer, parse_constant=constant)


def _record(window: _Window) -> Any:
    while True:
        try:
            value, window.at = _DECODER.raw_decode(window.text, window.at)
        except json.JSONDecodeError as error:
            if not window.ended and _may_be_cut_off(error, window):
                window.more()
                continue
            line = window.line_here()
            window.skip_line()
            return Unreadable(line, error.msg)
        except RecursionError:
            line = window.line_here()
            window.skip_line()
            return Unreadable(line, "too deep")
        return value


def _may_be_cut_off(error: json.JSONDecodeError, window: _Window) -> bool:
    """Return whether more input may complete a record."""
    if len(window.text) - window.at > RECORD_MAX:
        return False
    return error.msg.startswith("Unterminated string") or error.pos >= len(window.text) - _CUT_OFF
