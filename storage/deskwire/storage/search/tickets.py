"""The parts of a search for tickets that both databases share."""

from __future__ import annotations

import unicodedata

from deskwire.engine.core.folding import fold


def words_of_search(text: str) -> list[str]:
    """Return what is looked for, word by word and folded, without what has no letter and no digit."""
    return [word for word in fold(text).replace("\0", " ").split() if any(map(_counts, word))]


def _counts(character: str) -> bool:
    """Say whether the tokenizer takes the character for a part of a word (fts5.html, section 4.3.1)."""
    category = unicodedata.category(character)
    return category[0] in "LN" or category == "Co"
