"""CSV that a spreadsheet opens as it was meant (RFC 4180)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from deskwire.engine.core.folding import BLANKS

BYTE_ORDER_MARK: Final = "\ufeff"
"""The byte order mark that spreadsheets need to read UTF-8."""

_FORMULA: Final = ("=", "+", "-", "@")
"""The beginnings of texts that a spreadsheet takes for formulas (OWASP, CSV injection), full-width ones after NFKC."""
_LINE: Final = ("\t", "\r", "\n")
"""What some spreadsheets skip in front of a formula, or begin a new cell or row with."""
_QUOTED: Final = re.compile(r'[",;\t\r\n|]|^\s|\s$')
"""What is put within quotes: every character at which a spreadsheet of some country splits a row, and blanks at the ends.

In countries with a decimal comma `;` separates cells; without quotes `x;=1+1` would be a text and a formula there.
"""


def escape_formula(text: str) -> str:
    """Return the text, with a `'` in front where a spreadsheet would take it for a formula.

    Blanks, controls and characters without width in front of a sign do not count.
    """
    first = next((each for each in text if not _is_blank(each)), "")
    sign = unicodedata.normalize("NFKC", first)[:1]
    # The minus sign of mathematics is what LibreOffice makes a formula of, too.
    return f"'{text}" if sign in (*_FORMULA, "\u2212") or text.startswith(_LINE) else text


def _is_blank(character: str) -> bool:
    return unicodedata.category(character) in BLANKS or "\ufe00" <= character <= "\ufe0f"


def csv_lines(rows: Iterable[Sequence[str]]) -> str:
    """Return the rows as lines of CSV."""
    return "".join(f"{_line(row)}\r\n" for row in rows)


def _line(row: Sequence[str]) -> str:
    if len(row) == 1 and not row[0]:
        return '""'  # an empty line would be no row
    return ",".join(_cell(text) for text in row)


def _cell(text: str) -> str:
    return '"{}"'.format(text.replace('"', '""')) if _QUOTED.search(text) else text
