"""A strength check for new passwords (NIST SP 800-63B 3.1.1.2; ADR 15).

There are no rules about capitals and digits. zxcvbn estimates the number of guesses from lists of common passwords, words and
names with the usual substitutions, from keyboard rows, repeats, sequences and dates, and from public data of the account.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from threading import Lock
from typing import Any, Final

from deskwire.engine.accounts.credentials import Passwords, normal_password
from deskwire.engine.core.errors import Invalid, Problem

GUESSES_MIN: Final = 10**8
"""Estimated guesses that zxcvbn's authors consider safe against online guessing."""
SERVICE: Final = "deskwire"
_MADE_OF_KNOWN: Final = "It is made of the address, the name, or the name of this service."
_WORD: Final = re.compile(r"[\W_]+")
_WORD_MIN: Final = 3

_PIECE: Final = 20
_ODD_PIECE: Final = 12
_LOOKALIKES: Final = frozenset("4@({[<691!|7$5+")
_LOOKALIKES_MAX: Final = 7
"""Only the first and last `_PIECE` characters of a password are estimated, or `_ODD_PIECE` if it has more lookalikes than this.

The estimate's time grows with the square of the length, times the ways to read `@` as `a`. With these limits it takes at most
50 ms.
"""

_ONE_AT_A_TIME: Final = Lock()
"""zxcvbn stores the data of the account in a global dictionary, so only one estimate may run at a time."""


def check_guessable(password: str, about: Iterable[str], pointer: str) -> None:
    """Raise Invalid (`too_guessable`) if a password is easy to guess.

    Takes milliseconds: use a thread.

    Args:
        about: public data of the account: its e-mail address and name.
        pointer: JSON pointer to the password in the input.
    """
    known = guessed_words(about)
    rest = _without(known, password) or SERVICE
    estimates = [_estimate(piece, known) for piece in _pieces(rest)]
    hardest = max(estimates, key=lambda estimate: estimate["guesses"])
    if hardest["guesses"] < GUESSES_MIN:
        why = _MADE_OF_KNOWN if rest != password else _why(hardest)
        message = f"This password is easy to guess. {why} Take several words that have nothing to do with each other."
        raise Invalid(Problem(pointer, "too_guessable", message))


def _without(known: list[str], password: str) -> str:
    """Return the password without the known words, which add no guesses."""
    words = sorted((word for word in known if len(word) > _WORD_MIN), key=len, reverse=True)
    return re.sub("|".join(map(re.escape, words)), "", password, flags=re.IGNORECASE)


def hash_chosen(passwords: Passwords, password: str, about: Iterable[str], pointer: str) -> str:
    """Check the strength of a chosen password.

    Return its hash to store. Raises as `check_guessable` does.
    """
    check_guessable(normal_password(password), about, pointer)
    return passwords.hash(password)


def guessed_words(about: Iterable[str]) -> list[str]:
    """Return the words that an attacker tries for an account: its public data, their parts, the name of the service."""
    words = {SERVICE: None}
    for text in about:
        for word in (text, *text.split("@"), *_WORD.split(text), _WORD.sub("", text)):
            if len(word) >= _WORD_MIN:
                words[word.lower()] = None
    return list(words)


def _pieces(password: str) -> set[str]:
    """Return both ends of the password.

    Guessing it takes at least the guesses for the harder end.
    """
    odd = len(_LOOKALIKES & set(password)) > _LOOKALIKES_MAX
    size = _ODD_PIECE if odd else _PIECE
    return {password[:size], password[-size:]}


def _estimate(password: str, known: list[str]) -> dict[str, Any]:
    from zxcvbn import (
        zxcvbn,
    )  # imported here because its word lists take 14 MB, and many installations have no passwords

    with _ONE_AT_A_TIME:
        estimate: dict[str, Any] = zxcvbn(password, known)
    return estimate


def _why(estimate: dict[str, Any]) -> str:
    if any(match.get("dictionary_name") == "user_inputs" for match in estimate["sequence"]):
        return _MADE_OF_KNOWN
    return str(estimate["feedback"]["warning"]) or "It is made of common words, names, dates or rows of keys."
