"""Markdown tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

_SOURCES: Final = re.compile(r"\s*\((?:contract|decisions|ADR) [^)]*\)")


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a final line break. Pipes in cells are escaped."""
    lines = (heads, ("---",) * len(heads), *rows)
    return "".join(_line(cells) for cells in lines)


def plain(docstring: str | None) -> str:
    """Return a docstring as text for API users: without sources, one line per paragraph."""
    text = _SOURCES.sub("", docstring or "")
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(re.sub(r"\s+", " ", paragraph).strip() for paragraph in paragraphs)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"
