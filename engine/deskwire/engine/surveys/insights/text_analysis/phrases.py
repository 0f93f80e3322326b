"""The phrases that comments of one language share: two content words near each other, or one where no phrase has it.

The order of the words does not count, nor their forms: "late delivery" and "the delivery was late" are one phrase.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Final

from msgspec import Struct

from deskwire.engine.surveys.insights.text_analysis.document_matrix import DocumentMatrix, WordPosition
from deskwire.engine.surveys.insights.text_analysis.yielding_thread import yielding

Keys = tuple[int, ...]
Spot = tuple[int, int, int, int]
"""Where a comment has a phrase: the comment, the number of the clause, the places of the first and the last word."""

RESPONDENTS_MIN: Final = 2
"""A theme that one person alone speaks of is a quotation of that person."""
_WORD_RESPONDENTS_MIN: Final = 3
"""Respondents that a single word needs which is not all that they say."""
_NEAR: Final = 7
"""The distance, in words, of the two words of a phrase at most; at most _BETWEEN other shared words are between."""
_BETWEEN: Final = 2
_CANDIDATES_MAX: Final = 400
_NEW: Final = 0.4
"""The share of its comments that a phrase must not share with a chosen one that has a word of it."""
_LEFT: Final = 0.5
"""The share of a word's comments that no phrase may have covered, for the word to be a theme by itself."""
_OF_A_THING, _OF_NOTHING, _GENERIC, _ALONE = 1.5, 0.9, 0.6, 0.25
"""The weight of a phrase: a judgement of something, two judgements, with praise of any kind, a word alone."""


class Phrase(Struct, frozen=True):
    """A phrase by its stems, in their order by name, with a spot in each comment that has it.

    `weight` says how much it is worth to have it as a theme.
    """

    keys: tuple[str, ...]
    spots: Sequence[Spot]
    weight: float


def phrases(written: DocumentMatrix, most: int) -> list[Phrase]:
    """Return at most so many phrases and words that several respondents share: those that say most."""
    chosen = _chosen(written, _spots(written, _candidates(written)), most)
    found = [
        Phrase(_named(written, keys), _sorted(spots), _worth(written, keys, spots))
        for keys, spots in chosen.items()
    ]
    found += [
        Phrase(_named(written, (key,)), _sorted(spots), _ALONE * len(spots))
        for key, spots in _words(written, chosen).items()
    ]
    return sorted(found, key=lambda phrase: (-phrase.weight, phrase.keys))[:most]


def _named(written: DocumentMatrix, keys: Keys) -> tuple[str, ...]:
    return tuple(written.keys[key] for key in keys)


def _sorted(spots: Mapping[int, Spot]) -> list[Spot]:
    return [spots[index] for index in sorted(spots)]


def _pairs(words: Sequence[WordPosition]) -> Iterator[tuple[Keys, WordPosition, WordPosition]]:
    """Yield each two words of a comment that stand near each other in one clause."""
    for at, first in enumerate(words):
        for last in words[at + 1 : at + 2 + _BETWEEN]:
            if last[0] != first[0] or last[1] - first[1] > _NEAR:
                break
            if first[3] != last[3]:
                yield (first[3], last[3]) if first[3] < last[3] else (last[3], first[3]), first, last


def _candidates(written: DocumentMatrix) -> set[Keys]:
    """Return the pairs that most comments have."""
    counts: Counter[Keys] = Counter()
    for index in yielding(written.rows):
        counts.update({keys for keys, _, _ in _pairs(list(written.words(index)))})
    shared = [keys for keys, count in yielding(counts.items()) if count >= RESPONDENTS_MIN]
    # Not sorted(): it would hold the interpreter's lock for seconds where there are a million pairs.
    return set(
        nsmallest(_CANDIDATES_MAX, shared, key=lambda keys: (-counts[keys] * _weight(written, keys), keys))
    )


def _spots(written: DocumentMatrix, candidates: set[Keys]) -> dict[Keys, dict[int, Spot]]:
    """Return where each pair stands, by comment: the spot at which its words are nearest."""
    spots: dict[Keys, dict[int, Spot]] = {keys: {} for keys in candidates}
    for index in yielding(written.rows):
        for keys, first, last in _pairs(list(written.words(index))):
            if keys in spots:
                known = spots[keys].get(index)
                if known is None or last[1] - first[1] < known[3] - known[2]:
                    spots[keys][index] = (index, first[0], first[1], last[1])
    return {keys: found for keys, found in spots.items() if written.people(found) >= RESPONDENTS_MIN}


def _weight(written: DocumentMatrix, keys: Keys) -> float:
    bare = [written.keys[key].removeprefix("!") for key in keys]
    if any(written.language.generic(key) for key in bare):
        return _GENERIC
    return (1.0, _OF_A_THING, _OF_NOTHING)[sum(key[0] == "=" for key in bare)]


def _worth(written: DocumentMatrix, keys: Keys, spots: Mapping[int, Spot]) -> float:
    return _weight(written, keys) * len(spots)


def _chosen(
    written: DocumentMatrix, spots: dict[Keys, dict[int, Spot]], most: int
) -> dict[Keys, dict[int, Spot]]:
    """Return the pairs that together say most: one after the other, each with enough comments of its own."""
    left = {keys: set(found) for keys, found in spots.items()}
    chosen: dict[Keys, dict[int, Spot]] = {}
    while left and len(chosen) < most:
        best = min(left, key=lambda keys: (-len(left[keys]) * _weight(written, keys), keys))
        chosen[best] = spots[best]
        for keys in [keys for keys in left if not set(keys).isdisjoint(best)]:
            left[keys] -= spots[best].keys()
            if len(left[keys]) < _NEW * len(spots[keys]) or written.people(left[keys]) < RESPONDENTS_MIN:
                del left[keys]
    return chosen


def _words(written: DocumentMatrix, chosen: Mapping[Keys, Mapping[int, Spot]]) -> dict[int, dict[int, Spot]]:
    """Return the words that no phrase covers in most of their comments, each with those comments."""
    covered = {spot[:2] for spots in chosen.values() for spot in spots.values()}
    alone: dict[int, dict[int, Spot]] = {}
    counts: Counter[int] = Counter()
    all_said: Counter[int] = Counter()
    for index in yielding(written.rows):
        seen: set[int] = set()
        for clause, place, size, key in written.words(index):
            if key not in seen:
                seen.add(key)
                counts[key] += 1
                all_said[key] += size == 1
                if (index, clause) not in covered:
                    alone.setdefault(key, {})[index] = (index, clause, place, place)
    left = {key: spots for key, spots in alone.items() if len(spots) >= _LEFT * counts[key]}
    return {
        key: own for key in left if (own := _own(written, key, left[key], 2 * all_said[key] > counts[key]))
    }


def _own(written: DocumentMatrix, key: int, spots: dict[int, Spot], says_all: bool) -> dict[int, Spot]:
    """Return the spots of a word if it is a theme by itself, else nothing.

    Args:
        says_all: it is the only content word in most of the clauses that have it.
    """
    if written.language.generic(written.keys[key].removeprefix("!")):
        spots = _alike(spots, written) if says_all else {}
    return spots if written.people(spots) >= (RESPONDENTS_MIN if says_all else _WORD_RESPONDENTS_MIN) else {}


def _alike(spots: Mapping[int, Spot], written: DocumentMatrix) -> dict[int, Spot]:
    """Return the spots that have the most frequent form: praise is a theme only where it is in the same words."""
    forms: dict[int, str] = {}
    for index, clause, place, _ in yielding(spots.values()):
        forms[index] = next(word.form for word in written.clause(index, clause).words if word.place == place)
    counts = Counter(forms.values())
    form = min(counts, key=lambda each: (-counts[each], each), default="")
    return {index: spot for index, spot in spots.items() if forms[index] == form}
