"""Text folding: the form in which names, words and filters are compared, the same on both databases.

A text is folded character by character. Compatibility forms (NFKD) and case (Unicode full case folding) make no difference.
Marks that people often omit are dropped: accents, vowel points of Hebrew and Arabic, joiners and other zero-width
characters, tatweel. So `é` equals `e`, `ß` equals `ss`, the dotted and dotless i of Turkish are equal, and Cyrillic letters
equal their forms without a mark, as in the folding of ICU (Unicode Technical Report 30). Marks that are part of a letter
stay: the voicing of kana, vowel signs and viramas of Indic scripts, the tones of Thai.

Texts with the same folded form look alike, but they need not be the same: accounts are looked up by `address_key`, which
keeps accents because `ada@examplé.org` is another domain.
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
"""Characters without a decomposition, each with the text that people type for it."""

BLANKS: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
"""The Unicode categories of invisible characters: controls, zero-width characters, line ends and blanks."""

_ELONGATIONS: Final = "\u0640\u07fa"
"""Tatweel and its N'Ko counterpart, which stretch a word without changing its meaning."""
_FILLERS: Final = "\u115f\u1160\u3164\uffa0\u17b4\u17b5\u2800"
"""Letters and signs without a visible shape."""
_SELECTS: Final = re.compile("[\ufe00-\ufe0f\u180b-\u180f\U000e0100-\U000e01ef]")
"""Variation selectors, which choose the shape of the preceding character."""
_POINTS: Final = range(10, 36)
"""The combining classes of Hebrew and Arabic vowel points, which are usually omitted."""
_OVER_LETTERS: Final = 200
"""Marks of this combining class and above are accents. Lower classes are parts of letters, such as the voicing of kana."""


class _Folding(dict[int, str]):
    """A cache of folded characters. Its size is bounded by the number of Unicode characters."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = fold_character(chr(code))
        return folded


def fold_character(character: str) -> str:
    """Return the folded form of a character: zero or more characters."""
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
"""The translation table for `str.translate`."""


def fold(text: str) -> str:
    """Return the folded form of a text."""
    return text.lower() if text.isascii() else text.translate(FOLDING)


def fold_name(name: str) -> str:
    """Return the form in which a name must be unique: folded, with single blanks.

    A name without a folded form is returned as it is.
    """
    return " ".join(fold(name).split()) or name


_DOUBLE: Final = "\x1f"
"""Separator between a folded name and an id in `duplicate_key`. No folded name contains it because it counts as a blank."""


def duplicate_key(folded: str, holder: str) -> str:
    """Return the stored key of a name whose folded form was taken when the migration folded existing names.

    Args:
        holder: id of the object that has the name.
    """
    return f"{folded}{_DOUBLE}{holder}"


def duplicate_range(folded: str) -> tuple[str, str, str]:
    """Return the stored key of a folded name, and the exclusive bounds of the range of its duplicates."""
    return folded, f"{folded}{_DOUBLE}", f"{folded}{chr(ord(_DOUBLE) + 1)}"


def address_key(address: str) -> str:
    """Return the form by which e-mail addresses are compared: lower case, normal width, accents kept.

    Full case folding would join accounts of different people: `straße.example` and `strasse.example` are two domains
    (IDNA 2008, RFC 5892).
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", address).lower())
