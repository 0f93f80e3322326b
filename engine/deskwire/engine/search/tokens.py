"""Tokenization of texts for the index, and of queries.

A text is folded (`core.folding`) and split at every character that is not a letter, number or joiner, into compounds
such as `ada@ex.org` and `A-1001`. Each part of a compound starts a token that extends over the parts after it, so a
prefix query finds the whole address, its domain and its names. Scripts without spaces are indexed by pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from deskwire.engine.core.folding import fold_character

WORD_MAX: Final = 40
"""Characters of a token; longer ones are truncated."""

PARTS_MAX: Final = 6
"""Parts of a compound in one token: a UUID has five, an address rarely more."""

_JOINERS: Final = "-._@/+:#'&"
"""Characters that join their neighbours to one compound."""

_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, kana and Han: written without spaces."""

_SPACE_OF_NO_WIDTH: Final = "\u200b"


class _Folding(dict[int, str]):
    """A cache of folded characters, bounded by the number of characters in Unicode."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _folded(chr(code))
        return folded


def _folded(character: str) -> str:
    if character == _SPACE_OF_NO_WIDTH:
        return " "
    return "".join(each if _is_of_word(each) else " " for each in fold_character(character))


def _is_of_word(character: str) -> bool:
    return character in _JOINERS or unicodedata.category(character)[0] in "LNM"


FOLDING: Final = _Folding()
"""The table for `str.translate` that folds a text."""

_joiner: Final = f"[{re.escape(_JOINERS)}]"
_part: Final = f"[^ {re.escape(_JOINERS)}]+"
_COMPOUND: Final = re.compile(f"{_part}(?:{_joiner}{_part})*")
_JOINT: Final = re.compile(_joiner)
_PIECE: Final = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_IS_UNSPACED: Final = re.compile(f"[{_UNSPACED}]")
_BEFORE: Final = f" {re.escape(_JOINERS)}{_UNSPACED}"
_BEFORE_A_WORD: Final = re.compile(f"[{_BEFORE}]")


def words_of(text: str) -> set[str]:
    """Return the tokens under which a text is indexed."""
    words: set[str] = set()
    for piece in _pieces(text):
        if _IS_UNSPACED.match(piece):
            words.update(piece[at : at + 2] for at in range(len(piece)))
        elif _JOINT.search(piece) is None:
            words.add(piece[:WORD_MAX])
        else:
            words.update(_tails(piece, 1))
    return words


def query_words(query: str) -> tuple[str, ...]:
    """Return the prefixes that a match must have, longest first, without those that another one implies."""
    asked: set[str] = set()
    for piece in _pieces(query):
        if not _IS_UNSPACED.match(piece):
            asked.update(_tails(piece, PARTS_MAX))
        elif len(piece) == 1:
            asked.add(piece)
        else:
            asked.update(piece[at : at + 2] for at in range(len(piece) - 1))
    return tuple(
        word
        for word in sorted(asked, key=lambda word: (-len(word), word))
        if not any(other != word and other.startswith(word) for other in asked)
    )


def places_of(word: str, folded: str, start: int = 0) -> Iterator[int]:
    """Yield the places of a query word at the starts of words of a folded text, from `start` on."""
    anywhere = _IS_UNSPACED.match(word) is not None
    place = folded.find(word, start)
    while place >= 0:
        if anywhere or place == 0 or _BEFORE_A_WORD.match(folded, place - 1):
            yield place
        place = folded.find(word, place + 1)


def may_contain(words: Iterable[str], text: str) -> bool:
    """Return whether one of the query words may be in a text, without folding the text; it may not start a word there."""
    if not text.isascii():
        return True
    lower = text.lower()
    for word in words:  # `any` takes twice as long, and a search reads thousands of texts
        if word in lower:
            return True
    return False


def _pieces(text: str) -> Iterator[str]:
    """Yield the compounds of a text, split between scripts with and without spaces."""
    for compound in _COMPOUND.findall(text.translate(FOLDING)):
        if _IS_UNSPACED.search(compound) is None:
            yield compound
        else:
            yield from filter(None, (piece.strip(_JOINERS) for piece in _PIECE.findall(compound)))


def _tails(compound: str, step: int) -> Iterator[str]:
    """Yield the rest of the compound from every `step`-th part on."""
    starts = [0, *(joint.end() for joint in _JOINT.finditer(compound)), len(compound) + 1]
    for number in range(0, len(starts) - 1, step):
        end = starts[min(number + PARTS_MAX, len(starts) - 1)] - 1
        yield compound[starts[number] : min(end, starts[number] + WORD_MAX)]
