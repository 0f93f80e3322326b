"""The words by which a contact is found as one types: those of its name, e-mail address and user id, and its telephone number.

A word is written without case and accents, so that `muller` finds Müller. Scripts that put no blanks between words have
one beginning at each character, so that a given name is found behind a family name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

TERMS_MAX: Final = 8
"""The words of a search that are looked for; those behind them are not, as each one costs a look."""

_INNER_MAX: Final = 16
"""The characters of a word that begins inside of another one, so that a long name has not the square of its length."""

_DIGITS_MIN: Final = 3
_DIGITS_MAX: Final = 20
"""The digits of a telephone number by the last of which a contact is found, and those of one that count."""

_PARTS: Final = re.compile(r"[\W_]+")
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, and the scripts of Chinese and Japanese."""


def folded(text: str) -> str:
    """Return the text without case, accents and differences of width."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", text) if unicodedata.category(c) != "Mn")
    return unicodedata.normalize("NFC", bare.casefold())


def words_of(user_id: str, name: str | None, email: str | None, phone: str | None = None) -> frozenset[str]:
    """Return the words that a contact is found by, and by the beginnings of them; a telephone number by its last digits, too."""
    addresses = folded(email or "").split()
    words = {*folded(user_id).split(), *addresses, *_of_name(folded(name or "")), *_of_number(phone or "")}
    return frozenset(filter(None, [*words, *(address.rpartition("@")[2] for address in addresses)]))


def terms_of(text: str) -> tuple[str, ...]:
    """Return the beginnings of words that a search is for, each once; none for a text of blanks."""
    return tuple(dict.fromkeys(folded(text).split()))[:TERMS_MAX]


def _of_number(phone: str) -> Iterator[str]:
    digits = "".join(filter(str.isdecimal, phone))[:_DIGITS_MAX]
    if digits:
        yield f"+{digits}"
    for start in range(len(digits) - _DIGITS_MIN + 1):
        yield digits[start:]


def _of_name(name: str) -> Iterator[str]:
    for word in name.split():
        yield word
        yield from _PARTS.split(word)
        for found in _UNSPACED.finditer(word):
            yield word[found.start() : found.start() + _INNER_MAX]
