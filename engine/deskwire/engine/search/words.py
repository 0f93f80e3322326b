"""The words of texts and of queries: what is indexed, and what is looked for.

A text is folded (`core.folding`), and what is no letter, number or joiner in it separates words. What stands between separators is a compound of parts: `ada@ex.org`,
`A-1001`. Each of its parts begins a word that goes on over those behind it, so that a beginning finds the address as
typed, its domain and its names alike. Scripts that are written without spaces are cut into pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from deskwire.engine.core.folding import fold_character

WORD_MAX: Final = 40
"""Characters of a word that count; of a longer one its beginning."""

PARTS_MAX: Final = 6
"""Parts of a compound that a word goes on over: a UUID has five, an address seldom more."""

_JOINERS: Final = "-._@/+:#'&"
"""Characters that join what is on both sides of them to one compound."""

_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, kana and Han: written without spaces."""

_SPACE_OF_NO_WIDTH: Final = "\u200b"


class _Folding(dict[int, str]):
    """The folded form of each character that was met; at most as many as there are characters."""

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
"""What `str.translate` folds a text with."""

_joiner: Final = f"[{re.escape(_JOINERS)}]"
_part: Final = f"[^ {re.escape(_JOINERS)}]+"
_COMPOUND: Final = re.compile(f"{_part}(?:{_joiner}{_part})*")
_JOINT: Final = re.compile(_joiner)
_PIECE: Final = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_IS_UNSPACED: Final = re.compile(f"[{_UNSPACED}]")


def words_of(text: str) -> set[str]:
    """Return the words that a text is found by."""
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
    """Return the words of which each has to begin one of what is looked for; longest first, none that another implies."""
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


def pattern_of(words: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds these asked words in a folded text, where one of its words begins; a group for each."""
    return re.compile("|".join(f"({_place(word)}{re.escape(word)})" for word in words))


def _place(word: str) -> str:
    return "" if _IS_UNSPACED.match(word) else f"(?<![^ {re.escape(_JOINERS)}{_UNSPACED}])"


def _pieces(text: str) -> Iterator[str]:
    """Yield the compounds of a text, cut where scripts with and without spaces meet."""
    for compound in _COMPOUND.findall(text.translate(FOLDING)):
        if _IS_UNSPACED.search(compound) is None:
            yield compound
        else:
            yield from filter(None, (piece.strip(_JOINERS) for piece in _PIECE.findall(compound)))


def _tails(compound: str, step: int) -> Iterator[str]:
    """Yield for each part, or one of so many, the compound from there on."""
    starts = [0, *(joint.end() for joint in _JOINT.finditer(compound)), len(compound) + 1]
    for number in range(0, len(starts) - 1, step):
        end = starts[min(number + PARTS_MAX, len(starts) - 1)] - 1
        yield compound[starts[number] : min(end, starts[number] + WORD_MAX)]
