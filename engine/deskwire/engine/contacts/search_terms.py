"""The words by which a contact is found as one types: those of its name, e-mail address and user id, and its telephone number.

Words are folded (`core.folding`), so that `muller` finds Müller. Scripts that put no blanks between words have
one beginning at each character, so that a given name is found behind a family name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from deskwire.engine.contacts.addresses import clean_email, digits_of, national_digits
from deskwire.engine.core.folding import address_key, fold

TERMS_MAX: Final = 8
"""The words of a search that are looked for; those behind them are not, as each one costs a look."""

_INNER_MAX: Final = 16
"""The characters of a word that begins inside of another one, so that a long name has not the square of its length."""

_DIGITS_MIN: Final = 3
_DIGITS_MAX: Final = 20
"""The digits of a telephone number by the last of which a contact is found, and those of one that count."""
_SEARCHED_MIN: Final = 4
"""The digits from which on what is looked for is taken for a telephone number, too."""
_PHONE: Final = re.compile(
    r"\s*(?:tel:)?[+\d()./ \-\u2010-\u2014\u2212\u00a0\uff0b\uff08\uff09]*", re.IGNORECASE
)

PHONE_MARK: Final = "\x1f"
"""In front of a term: it is of a telephone number, and a contact that has it needs none of the other terms."""
_ADDRESS: Final = "\x1f"
"""In front of the word of an e-mail address: nothing that is typed has it, as it counts as a blank there."""

_PARTS: Final = re.compile(r"[\W_]+")
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, and the scripts of Chinese and Japanese."""


def search_words(
    user_id: str, name: str | None, email: str | None, phone: str | None = None
) -> frozenset[str]:
    """Return the words that a contact is found by, and by the beginnings of them; a telephone number by its last digits, too."""
    addresses = fold(email or "").split()
    words = {*fold(user_id).split(), *addresses, *_of_name(fold(name or "")), *_of_number(phone or "")}
    if email:
        words.add(address_word(email))
    return frozenset(filter(None, [*words, *(address.rpartition("@")[2] for address in addresses)]))


def address_word(email: str) -> str:
    """Return the word that the contacts with this e-mail address have, and no other contact."""
    try:
        email = clean_email(email)
    except ValueError:  # of an older database, where addresses stand as they came in
        email = email.strip()
    return f"{_ADDRESS}{address_key(email)}"


def search_terms(text: str) -> tuple[str, ...]:
    """Return the beginnings of words that a search is for, each once; none for a text of blanks.

    What may be a telephone number is one term, of its digits without country code, behind `PHONE_MARK`; the words of the text
    are looked for as well.
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
