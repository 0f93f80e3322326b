"""Phrases shared by comments of one language: two content words near each other, or a word that no phrase covers.

The order and inflection of the words don't matter: "late delivery" and "the delivery was late" are the same phrase.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Final

from msgspec import Struct

from deskwire.engine.surveys.insights.text_analysis.document_matrix import (
    DocumentMatrix,
    WordPosition,
    yielding,
)

Keys = tuple[int, ...]
Spot = tuple[int, int, int, int]
"""An occurrence of a phrase: comment, clause, and positions of the first and the last word."""

RESPONDENTS_MIN: Final = 2
"""With fewer, a theme would quote a single person."""
_WORD_RESPONDENTS_MIN: Final = 3
"""Minimum respondents of a single word, unless it is the whole comment."""
_NEAR: Final = 7
"""Maximum distance of the two words of a phrase, in words; at most _BETWEEN shared words may be between them."""
_BETWEEN: Final = 2
_CANDIDATES_MAX: Final = 400
_NEW: Final = 0.4
"""The share of a phrase's comments that chosen phrases with one of its words must not cover."""
_LEFT: Final = 0.5
"""The share of a word's comments without a chosen phrase from which the word alone is a theme."""
_OF_A_THING, _OF_NOTHING, _GENERIC, _ALONE = 1.5, 0.9, 0.6, 0.25
"""Weights: a judgement of something, two judgements, general praise, a word alone."""


class Phrase(Struct, frozen=True):
    """A phrase: its stems in alphabetical order, an occurrence in each comment, and its weight as a theme."""

    keys: tuple[str, ...]
    spots: Sequence[Spot]
    weight: float


def phrases(matrix: DocumentMatrix, most: int) -> list[Phrase]:
    """Return up to `most` phrases and words that several respondents share, by weight."""
    chosen = _chosen(matrix, _spots(matrix, _candidates(matrix)), most)
    found = [
        Phrase(_named(matrix, keys), _sorted(spots), _worth(matrix, keys, spots))
        for keys, spots in chosen.items()
    ]
    found += [
        Phrase(_named(matrix, (key,)), _sorted(spots), _ALONE * len(spots))
        for key, spots in _words(matrix, chosen).items()
    ]
    return sorted(found, key=lambda phrase: (-phrase.weight, phrase.keys))[:most]


def _named(matrix: DocumentMatrix, keys: Keys) -> tuple[str, ...]:
    return tuple(matrix.keys[key] for key in keys)


def _sorted(spots: Mapping[int, Spot]) -> list[Spot]:
    return [spots[index] for index in sorted(spots)]


def _pairs(words: Sequence[WordPosition]) -> Iterator[tuple[Keys, WordPosition, WordPosition]]:
    """Yield pairs of words that are near each other in one clause."""
    for at, first in enumerate(words):
        for last in words[at + 1 : at + 2 + _BETWEEN]:
            if last[0] != first[0] or last[1] - first[1] > _NEAR:
                break
            if first[3] != last[3]:
                yield (first[3], last[3]) if first[3] < last[3] else (last[3], first[3]), first, last


def _candidates(matrix: DocumentMatrix) -> set[Keys]:
    """Return the most frequent pairs."""
    counts: Counter[Keys] = Counter()
    for index in yielding(matrix.rows):
        counts.update({keys for keys, _, _ in _pairs(list(matrix.words(index)))})
    shared = [keys for keys, count in yielding(counts.items()) if count >= RESPONDENTS_MIN]
    # Not sorted(), which would hold the GIL for seconds with a million pairs.
    return set(
        nsmallest(_CANDIDATES_MAX, shared, key=lambda keys: (-counts[keys] * _weight(matrix, keys), keys))
    )


def _spots(matrix: DocumentMatrix, candidates: set[Keys]) -> dict[Keys, dict[int, Spot]]:
    """Return the occurrences of each pair by comment; in each comment the closest one."""
    spots: dict[Keys, dict[int, Spot]] = {keys: {} for keys in candidates}
    for index in yielding(matrix.rows):
        for keys, first, last in _pairs(list(matrix.words(index))):
            if keys in spots:
                known = spots[keys].get(index)
                if known is None or last[1] - first[1] < known[3] - known[2]:
                    spots[keys][index] = (index, first[0], first[1], last[1])
    return {keys: found for keys, found in spots.items() if matrix.people(found) >= RESPONDENTS_MIN}


def _weight(matrix: DocumentMatrix, keys: Keys) -> float:
    bare = [matrix.keys[key].removeprefix("!") for key in keys]
    if any(matrix.language.generic(key) for key in bare):
        return _GENERIC
    return (1.0, _OF_A_THING, _OF_NOTHING)[sum(key[0] == "=" for key in bare)]


def _worth(matrix: DocumentMatrix, keys: Keys, spots: Mapping[int, Spot]) -> float:
    return _weight(matrix, keys) * len(spots)


def _chosen(
    matrix: DocumentMatrix, spots: dict[Keys, dict[int, Spot]], most: int
) -> dict[Keys, dict[int, Spot]]:
    """Choose pairs greedily by weight, each with enough comments that no chosen pair covers."""
    left = {keys: set(found) for keys, found in spots.items()}
    chosen: dict[Keys, dict[int, Spot]] = {}
    while left and len(chosen) < most:
        best = min(left, key=lambda keys: (-len(left[keys]) * _weight(matrix, keys), keys))
        chosen[best] = spots[best]
        for keys in [keys for keys in left if not set(keys).isdisjoint(best)]:
            left[keys] -= spots[best].keys()
            if len(left[keys]) < _NEW * len(spots[keys]) or matrix.people(left[keys]) < RESPONDENTS_MIN:
                del left[keys]
    return chosen


def _words(matrix: DocumentMatrix, chosen: Mapping[Keys, Mapping[int, Spot]]) -> dict[int, dict[int, Spot]]:
    """Return the words that no chosen phrase covers in most of their comments, with these comments."""
    covered = {spot[:2] for spots in chosen.values() for spot in spots.values()}
    alone: dict[int, dict[int, Spot]] = {}
    counts: Counter[int] = Counter()
    single_words: Counter[int] = Counter()
    for index in yielding(matrix.rows):
        seen: set[int] = set()
        for clause, place, size, key in matrix.words(index):
            if key not in seen:
                seen.add(key)
                counts[key] += 1
                single_words[key] += size == 1
                if (index, clause) not in covered:
                    alone.setdefault(key, {})[index] = (index, clause, place, place)
    left = {key: spots for key, spots in alone.items() if len(spots) >= _LEFT * counts[key]}
    return {
        key: own for key in left if (own := _own(matrix, key, left[key], 2 * single_words[key] > counts[key]))
    }


def _own(matrix: DocumentMatrix, key: int, spots: dict[int, Spot], says_all: bool) -> dict[int, Spot]:
    """Return the occurrences of a word if it is a theme on its own, else none.

    Args:
        says_all: the word is the only content word in most of its clauses.
    """
    if matrix.language.generic(matrix.keys[key].removeprefix("!")):
        spots = _alike(spots, matrix) if says_all else {}
    return spots if matrix.people(spots) >= (RESPONDENTS_MIN if says_all else _WORD_RESPONDENTS_MIN) else {}


def _alike(spots: Mapping[int, Spot], matrix: DocumentMatrix) -> dict[int, Spot]:
    """Return the occurrences of the most frequent form: praise is a theme only if the words are the same."""
    forms: dict[int, str] = {}
    for index, clause, place, _ in yielding(spots.values()):
        forms[index] = next(word.form for word in matrix.clause(index, clause).words if word.place == place)
    counts = Counter(forms.values())
    form = min(counts, key=lambda each: (-counts[each], each), default="")
    return {index: spot for index, spot in spots.items() if forms[index] == form}
