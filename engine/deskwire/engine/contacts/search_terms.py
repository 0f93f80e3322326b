"""Search terms of contacts, from name, e-mail address, user id and telephone number, for search as you type.

Words are folded (`core.folding`), so that `muller` finds Müller. In scripts without blanks between words, a word starts at
each character, so that a given name is found after a family name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from deskwire.engine.contacts.addresses import clean_email, digits_of, national_digits
from deskwire.engine.core.folding import address_key, fold

TERMS_MAX: Final = 8
"""Maximum number of terms of a search. Further ones are ignored because each costs an index lookup."""

_INNER_MAX: Final = 16
"""Maximum length of a word that starts inside another one. Without it a long name would need quadratic space."""

_DIGITS_MIN: Final = 3
_DIGITS_MAX: Final = 20
"""The shortest suffix of a telephone number by which a contact is found, and the number of digits that are indexed."""
_SEARCHED_MIN: Final = 4
"""Minimum number of digits for a search text to count as a telephone number."""
_PHONE: Final = re.compile(
    r"\s*(?:tel:)?[+\d()./ \-\u2010-\u2014\u2212\u00a0\uff0b\uff08\uff09]*", re.IGNORECASE
)

PHONE_MARK: Final = "\x1f"
"""Prefix of a term that is a telephone number. A contact that matches it need not match the other terms."""
_ADDRESS: Final = "\x1f"
"""Prefix of the word of an exact e-mail address. Search texts never contain it because it counts as a blank."""

_PARTS: Final = re.compile(r"[\W_]+")
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, and the scripts of Chinese and Japanese."""


def search_words(
    user_id: str, name: str | None, email: str | None, phone: str | None = None
) -> frozenset[str]:
    """Return the index words of a contact, which search matches by prefix.

    Telephone numbers are indexed by suffixes, too.
    """
    addresses = fold(email or "").split()
    words = {*fold(user_id).split(), *addresses, *_of_name(fold(name or "")), *_of_number(phone or "")}
    if email:
        words.add(address_word(email))
    return frozenset(filter(None, [*words, *(address.rpartition("@")[2] for address in addresses)]))


def address_word(email: str) -> str:
    """Return the word that exactly the contacts with this e-mail address have."""
    try:
        email = clean_email(email)
    except ValueError:  # older versions stored addresses without checking them
        email = email.strip()
    return f"{_ADDRESS}{address_key(email)}"


def search_terms(text: str) -> tuple[str, ...]:
    """Return the terms of a search text, without duplicates. Empty for a blank text.

    A text that may be a telephone number has a further term: its digits without country code, after `PHONE_MARK`.
    """
    terms = tuple(dict.fromkeys(fold(text).split()))[:TERMS_MAX]
    number = national_digits(text) if _PHONE.fullmatch(text) else ""
    if not _SEARCHED_MIN <= len(number) <= _DIGITS_MAX or terms == (number,):
        return terms
    return (*terms, f"{PHONE_MARK}{number}")


def _of_number(phone: str) -> Iterator[str]:
    digits = digits_of(phone)[:_DIGITS_MAX]
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
