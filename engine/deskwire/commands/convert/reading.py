"""The records of a file, one after the other: lines of JSON, an array of any length, or documents in a row.

Only a record is in memory, or a document that has several, such as the page of a list.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from msgspec import Struct

PIECE: Final = 1 << 20
RECORD_MAX: Final = 64 << 20
"""The most characters of a record, or of the document around it."""
_CUT_OFF: Final = 16
"""A mistake this close to the end of what was read may be but the cut: no literal or escape is longer."""
_DIGITS_MAX: Final = 20
"""The most characters of an integer that 64 bits hold, with its sign."""


class UnfitFileError(Exception):
    """A file that can't be read as JSON in UTF-8; the text says where."""


class Unreadable(Struct, frozen=True):
    """A record that is not valid JSON, by its line and what is wrong with it."""

    line: int
    reason: str


class _Window:
    """The part of a file that is read and not taken yet."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._bytes = 0
        self.text = ""
        self.at = 0
        self.line = 1
        self.ended = False

    def more(self) -> None:
        """Read on, as much again as there is, so that a long record does not cost its square."""
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
        """Pass over these characters; return the next one, or an empty text at the end."""
        while True:
            while self.at < len(self.text):
                if self.text[self.at] not in characters:
                    return self.text[self.at]
                self.at += 1
            if self.ended:
                return ""
            self.more()

    def skip_line(self) -> None:
        """Go to the end of the line."""
        while (end := self.text.find("\n", self.at)) < 0 and not self.ended:
            self.at = len(self.text)
            self.more()
        self.at = len(self.text) if end < 0 else end

    def line_here(self) -> int:
        """Return the number of the line."""
        return self.line + self.text.count("\n", 0, self.at)


def records(file: BinaryIO) -> Iterator[Any]:
    """Yield the records of a file; `Unreadable` for one that is broken.

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
    """Return an integer of JSON, as a text if it has more digits than 64 bits hold.

    Python refuses to read more than 4,300 digits, and an import to take more than 19.
    """
    return int(digits) if len(digits) <= _DIGITS_MAX else digits


def constant(_: str) -> None:
    """Return None for NaN and Infinity, which are no JSON and which some programs write."""


def unpacked(packed: str) -> Any:
    """Return the value of JSON that stands in a text; None if it is not valid."""
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
    """Tell whether more of the file can make a record whole."""
    if len(window.text) - window.at > RECORD_MAX:
        return False
    return error.msg.startswith("Unterminated string") or error.pos >= len(window.text) - _CUT_OFF
