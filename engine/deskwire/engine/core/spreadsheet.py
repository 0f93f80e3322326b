"""CSV that a spreadsheet opens as it was meant (RFC 4180)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Final

MARK: Final = "\ufeff"
"""The byte order mark that spreadsheets need to read UTF-8."""

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""The beginnings of texts that a spreadsheet takes for formulas (OWASP, CSV injection)."""


def safe(text: str) -> str:
    """Return the text, with a `'` in front where a spreadsheet would take it for a formula."""
    return f"'{text}" if text.lstrip().startswith(_FORMULA) or text.startswith(_FORMULA) else text


def lines_of(rows: Iterable[Sequence[str]]) -> str:
    """Return the rows as lines of CSV."""
    written = StringIO()
    csv.writer(written, lineterminator="\r\n").writerows(rows)
    return written.getvalue()
