"""Ticket search, the part shared by both databases."""

from __future__ import annotations

import unicodedata

from deskwire.engine.core.folding import fold


def words_of_search(text: str) -> list[str]:
    """Return the folded words of a query that have a letter or a digit."""
    return [word for word in fold(text).replace("\0", " ").split() if any(map(_counts, word))]


def _counts(character: str) -> bool:
    """Return whether SQLite's tokenizer treats the character as part of a word (fts5.html, section 4.3.1)."""
    category = unicodedata.category(character)
    return category[0] in "LN" or category == "Co"
