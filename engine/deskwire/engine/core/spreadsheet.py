"""CSV (RFC 4180) that spreadsheet programs open correctly and without running formulas."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from deskwire.engine.core.folding import BLANKS

BYTE_ORDER_MARK: Final = "\ufeff"
"""Byte order mark, without which some spreadsheet programs do not read UTF-8."""

_FORMULA: Final = ("=", "+", "-", "@")
"""First characters of a formula (OWASP, CSV injection). Full-width forms count, too, after NFKC."""
_LINE: Final = ("\t", "\r", "\n")
"""Characters that some programs skip before a formula, or that start a new cell or row."""
_QUOTED: Final = re.compile(r'[",;\t\r\n|]|^\s|\s$')
"""Cells that need quotes: with a character that separates cells in any locale, or with a blank at either end.

In locales with a decimal comma `;` separates cells, so an unquoted `x;=1+1` would contain a formula there.
"""


def escape_formula(text: str) -> str:
    """Return the text, prefixed with `'` if a spreadsheet program would read it as a formula.

    Blanks, controls and zero-width characters before the first sign are ignored.
    """
    first = next((each for each in text if not _is_blank(each)), "")
    sign = unicodedata.normalize("NFKC", first)[:1]
    # LibreOffice also reads a text that starts with the mathematical minus sign as a formula.
    return f"'{text}" if sign in (*_FORMULA, "\u2212") or text.startswith(_LINE) else text


def _is_blank(character: str) -> bool:
    return unicodedata.category(character) in BLANKS or "\ufe00" <= character <= "\ufe0f"


def csv_lines(rows: Iterable[Sequence[str]]) -> str:
    """Return the rows as CSV, each ending with CRLF."""
    return "".join(f"{_line(row)}\r\n" for row in rows)


def _line(row: Sequence[str]) -> str:
    if len(row) == 1 and not row[0]:
        return '""'  # an empty line would not be read as a row
    return ",".join(_cell(text) for text in row)


def _cell(text: str) -> str:
    return '"{}"'.format(text.replace('"', '""')) if _QUOTED.search(text) else text
