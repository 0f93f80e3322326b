"""Text folding: the one form in which names, words and filters are compared, whatever the database.

A text is folded character by character: compatibility forms (NFKD) and case (Unicode's full case folding) make no
difference, and marks that people leave out are dropped: accents, vowel points of Hebrew and Arabic, joiners and other
characters without width, tatweel. `é` equals `e`, `ß` equals `ss`, the dotted and dotless letters of Turkish equal `i`,
and Cyrillic letters equal those without a mark, as in the folding of ICU (Unicode Technical Report 30). Marks that are
parts of letters stay: the voicing of kana, vowel signs and viramas of Indic scripts, the tones of Thai.

Folding says whether two texts read alike. It is no proof that they are the same: an account is looked up by
`address_key`, which keeps accents, as `ada@examplé.org` is another domain.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

ALIKE: Final = {
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u2018\u2019\u02bc\u02b9", "'"),
    "ø": "o", "ł": "l", "đ": "d", "ħ": "h", "\u0131": "i", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th",
}  # fmt: skip
"""Characters that have no decomposition, and what people type for them."""

BLANKS: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
"""The Unicode categories of characters that show nothing: controls, marks without width, ends of lines, and blanks."""

_ELONGATIONS: Final = "\u0640\u07fa"
"""Tatweel and its N'Ko sister: they make a word longer, and mean nothing."""
_FILLERS: Final = "\u115f\u1160\u3164\uffa0\u17b4\u17b5\u2800"
"""Letters and signs that have no shape."""
_SELECTS: Final = re.compile("[\ufe00-\ufe0f\u180b-\u180f\U000e0100-\U000e01ef]")
"""Variation selectors: they choose the shape of the character in front of them."""
_POINTS: Final = range(10, 36)
"""The combining classes of Hebrew and Arabic vowel points, which are mostly left out."""
_OVER_LETTERS: Final = 200
"""From this combining class on marks are accents; below are parts of letters, such as the voicing of kana."""


class _Folding(dict[int, str]):
    """The folded form of each character that was met; at most as many as there are characters."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = fold_character(chr(code))
        return folded


def fold_character(character: str) -> str:
    """Return what a character counts as: itself, others, or nothing."""
    bare = "".join(each for each in unicodedata.normalize("NFKD", character) if not _is_dropped(each))
    opened = unicodedata.normalize("NFKD", bare.casefold())
    return "".join(ALIKE.get(each, each) for each in opened if not _is_dropped(each))


def _is_dropped(character: str) -> bool:
    if character < "\x80":
        return False
    if character in _ELONGATIONS or character in _FILLERS or _SELECTS.match(character):
        return True
    category = unicodedata.category(character)
    if category[0] != "M":
        return category == "Cf"
    kind = unicodedata.combining(character)
    return kind >= _OVER_LETTERS or kind in _POINTS or character <= "\u036f"


FOLDING: Final = _Folding()
"""What `str.translate` folds a text with."""


def fold(text: str) -> str:
    """Return the text in the form in which it is compared and looked for."""
    return text.lower() if text.isascii() else text.translate(FOLDING)


def fold_name(name: str) -> str:
    """Return the form in which a name is unique: folded, with single blanks; never empty for a name that is not."""
    return " ".join(fold(name).split()) or name


_DOUBLE: Final = "\x1f"
"""In a folded name in front of an id: another one was there first. No folded name has it, as it counts as a blank."""


def duplicate_key(folded: str, holder: str) -> str:
    """Return the stored form of a name that read like another one when names were folded first; `holder` is an id."""
    return f"{folded}{_DOUBLE}{holder}"


def duplicate_range(folded: str) -> tuple[str, str, str]:
    """Return the stored form of a folded name, and the bounds between which those of its doubles are."""
    return folded, f"{folded}{_DOUBLE}", f"{folded}{chr(ord(_DOUBLE) + 1)}"


def address_key(address: str) -> str:
    """Return the form in which two e-mail addresses are one: without case and differences of width, and with accents.

    `straße.example` and `strasse.example` are two domains (IDNA 2008, RFC 5892), so full case folding would join strangers.
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", address).lower())
