"""The check that a new password is none of those that guessers try first (NIST SP 800-63B 3.1.1.2; ADR 15).

There are no rules about capitals and digits. How many guesses a password takes is estimated by zxcvbn: from lists of
common passwords, words and names, with the usual ways to dress them up, from rows of keys, repeats, sequences and dates,
and from what everybody knows about the account.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from threading import Lock
from typing import Any, Final

from deskwire.engine.accounts.credentials import Passwords, normal_password
from deskwire.engine.core.errors import Invalid, Problem

GUESSES_MIN: Final = 10**8
"""The guesses from which on the estimate's authors call a password safe from guessing by signing in."""
SERVICE: Final = "deskwire"
_MADE_OF_KNOWN: Final = "It is made of the address, the name, or the name of this service."
_WORD: Final = re.compile(r"[\W_]+")
_WORD_MIN: Final = 3

_PIECE: Final = 20
_ODD_PIECE: Final = 12
_LOOKALIKES: Final = frozenset("4@({[<691!|7$5+")
_LOOKALIKES_MAX: Final = 7
"""A password is judged by its first and its last characters, and by fewer if more than these stand for letters in it: the
estimate takes time that grows with the square of the length, times the ways to read `@` for `a`. It is 50 ms at most."""

_ONE_AT_A_TIME: Final = Lock()
"""The estimate keeps what is known about the account in a global dictionary."""


def check_guessable(password: str, about: Iterable[str], pointer: str) -> None:
    """Raise Invalid (`too_guessable`) for a password that is easy to guess. Takes milliseconds: use a thread.

    Args:
        about: what is known about the account: its address and name.
        pointer: where the password stands in the input.
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
    """Return the password without the words that are known, which nobody has to guess."""
    words = sorted((word for word in known if len(word) > _WORD_MIN), key=len, reverse=True)
    return re.sub("|".join(map(re.escape, words)), "", password, flags=re.IGNORECASE)


def hash_chosen(passwords: Passwords, password: str, about: Iterable[str], pointer: str) -> str:
    """Return the hash to store of a password that somebody has chosen. Raises as `check_guessable` does."""
    check_guessable(normal_password(password), about, pointer)
    return passwords.hash(password)


def guessed_words(about: Iterable[str]) -> list[str]:
    """Return the words that a guesser tries for an account: what is known about it, its parts, the service's name."""
    words = {SERVICE: None}
    for text in about:
        for word in (text, *text.split("@"), *_WORD.split(text), _WORD.sub("", text)):
            if len(word) >= _WORD_MIN:
                words[word.lower()] = None
    return list(words)


def _pieces(password: str) -> set[str]:
    """Return both ends. Whoever guesses the whole has to guess each of them, so the harder one counts."""
    odd = len(_LOOKALIKES & set(password)) > _LOOKALIKES_MAX
    size = _ODD_PIECE if odd else _PIECE
    return {password[:size], password[-size:]}


def _estimate(password: str, known: list[str]) -> dict[str, Any]:
    from zxcvbn import zxcvbn  # here, as its lists take 14 MB, and many installations never set a password

    with _ONE_AT_A_TIME:
        estimate: dict[str, Any] = zxcvbn(password, known)
    return estimate


def _why(estimate: dict[str, Any]) -> str:
    if any(match.get("dictionary_name") == "user_inputs" for match in estimate["sequence"]):
        return _MADE_OF_KNOWN
    return str(estimate["feedback"]["warning"]) or "It is made of common words, names, dates or rows of keys."
