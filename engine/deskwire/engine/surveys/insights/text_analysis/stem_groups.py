"""Groups stems that differ by an inflection unknown to the stemmer, or by a typo."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

_PREFIX_MIN: Final = 5
_ENDING_MAX: Final = 3
_TYPO_MIN: Final = 7
"""Minimum letters of a stem with a typo; shorter ones are probably different words."""
_TYPOS_PER: Final = 3
"""How many times as frequent the correct form must be."""


def stem_groups(counts: Mapping[str, int]) -> dict[str, str]:
    """Return the representative of each grouped stem: `deliv` for `deliveri`, `packag` for `pakcag`.

    Stems of words in the lexicon (= or ~) are never grouped. The prefix ! of negated stems is kept.
    """
    plain: dict[str, int] = {}
    for key, count in counts.items():
        bare = key.removeprefix("!")
        if bare[:1] not in ("=", "~"):
            plain[bare] = plain.get(bare, 0) + count
    joined = _by_beginning(plain)
    joined.update(_by_typo(plain, joined))
    ends = {stem: _end(stem, joined) for stem in joined}
    return ends | {f"!{stem}": f"!{end}" for stem, end in ends.items()}


def _end(stem: str, joined: Mapping[str, str]) -> str:
    for _ in range(_ENDING_MAX):
        if stem not in joined:
            break
        stem = joined[stem]
    return stem


def _by_beginning(counts: Mapping[str, int]) -> dict[str, str]:
    """Group a stem with the shortest stem that is its prefix."""
    joined: dict[str, str] = {}
    for stem in sorted(counts):
        for size in range(max(_PREFIX_MIN, len(stem) - _ENDING_MAX), len(stem)):
            if stem[:size] in counts:
                joined[stem] = stem[:size]
                break
    return joined


def _by_typo(counts: Mapping[str, int], joined: Mapping[str, str]) -> dict[str, str]:
    """Group a rare stem with a frequent one that differs by a missing, extra, wrong or swapped letter."""
    frequent: dict[str, str] = {}
    for stem in sorted(counts, key=lambda each: (-counts[each], each)):
        if len(stem) >= _TYPO_MIN and stem not in joined and counts[stem] >= _TYPOS_PER:
            for shape in _shapes(stem):
                frequent.setdefault(shape, stem)
    typos: dict[str, str] = {}
    for stem, count in counts.items():
        if len(stem) < _TYPO_MIN - 1 or stem in joined:
            continue
        near = {frequent[shape] for shape in _shapes(stem) if shape in frequent} - {stem}
        right = [
            each for each in near if counts[each] >= _TYPOS_PER * count and abs(len(each) - len(stem)) <= 1
        ]
        if right:
            typos[stem] = min(right, key=lambda each: (-counts[each], each))
    return typos


def _shapes(stem: str) -> Iterator[str]:
    """Yield the stem, and the stem without each one of its letters."""
    yield stem
    for place in range(1, len(stem)):
        yield stem[:place] + stem[place + 1 :]
