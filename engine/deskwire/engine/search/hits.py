"""The messages of a conversation that match a search, each with the excerpt that shows the match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import Final

from msgspec import Struct

from deskwire.engine.search.ports import TextOfMessage
from deskwire.engine.search.tokens import FOLDING, may_contain, places_of

HITS_MAX: Final = 3
"""Messages shown for a conversation."""

SHOWN_MAX: Final = 160
"""Characters of an excerpt."""

_BEFORE: Final = 40
"""Characters before the first match in an excerpt."""

RANGES_MAX: Final = 20
"""Matches reported for one excerpt."""


class Hit(Struct, frozen=True):
    """A message that matches.

    Args:
        text: an excerpt of the message.
        ranges: start and end of each match in the excerpt, in UTF-16 code units as JavaScript counts.
    """

    message_id: str
    text: str
    ranges: Sequence[tuple[int, int]]


class HitFinder:
    """Finds the words of a query in the texts of conversations."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = frozenset(words)

    def hits_in(self, texts: Iterable[TextOfMessage], title: str | None) -> list[Hit]:
        """Return the newest messages that together have all words of the query that the title lacks.

        Args:
            texts: the messages, newest first.
        """
        missing = self._words
        if title is not None:
            missing -= _places_of(missing, title.translate(FOLDING)).keys()
        hits: list[Hit] = []
        if not missing:
            return hits
        for message_id, text, *_ in texts:
            if not may_contain(missing, text):
                continue
            folded = text.translate(FOLDING)
            there = _places_of(self._words, folded)
            if missing & there.keys():
                missing -= there.keys()
                hits.append(_hit(message_id, text, _places(text, folded, there)))
                if not missing or len(hits) == HITS_MAX:
                    break
        return hits


def _places_of(words: Iterable[str], folded: str) -> dict[str, int]:
    """Return the words that occur in a folded text, with the first place of each."""
    places = ((word, next(places_of(word, folded), -1)) for word in words)
    return {word: place for word, place in places if place >= 0}


def _hit(message_id: str, text: str, places: Sequence[tuple[int, int]]) -> Hit:
    start = max(0, places[0][0] - _BEFORE)
    if start:  # at the start of a word if possible
        space = text.find(" ", start, places[0][0])
        start = start if space < 0 else space + 1
    shown = text[start : start + SHOWN_MAX]
    units = _units(shown)
    ranges = [
        (units[begin - start], units[min(end - start, len(shown))])
        for begin, end in places[:RANGES_MAX]
        if begin - start < len(shown)
    ]
    return Hit(message_id, shown, ranges)


def _units(text: str) -> Sequence[int]:
    """Return the number of UTF-16 code units before each character, and at the end."""
    if text.isascii() or max(text) <= "\uffff":
        return range(len(text) + 1)
    return [0, *accumulate(1 + (character > "\uffff") for character in text)]


def _origin(text: str, folded: str) -> Sequence[int]:
    """Return for each character of the folded text the number of the one in the text."""
    if text.isascii() or (
        len(folded) == len(text) and all(len(FOLDING[ord(character)]) == 1 for character in {*text})
    ):
        return range(len(text))
    origin = [number for number, character in enumerate(text) for _ in FOLDING[ord(character)]]
    assert len(folded) == len(origin), "characters are folded one at a time"
    return origin


def _places(text: str, folded: str, first: Mapping[str, int]) -> list[tuple[int, int]]:
    """Return the spans of a text in which words were found, as far as an excerpt can show them.

    Args:
        first: the first place of each word in the folded text.
    """
    origin = _origin(text, folded)
    last = origin[min(first.values())] + SHOWN_MAX
    spans: list[tuple[int, int]] = []
    for word, start in first.items():
        for place in takewhile(lambda place: origin[place] <= last, places_of(word, folded, start)):
            spans.append((origin[place], _end(text, origin[place + len(word) - 1] + 1)))
    places: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if places and begin <= places[-1][1]:
            places[-1] = (places[-1][0], max(end, places[-1][1]))
        else:
            places.append((begin, end))
    return places


def _end(text: str, end: int) -> int:
    """Return the end of a span with the combining marks of its last letter."""
    while end < len(text) and not FOLDING[ord(text[end])]:
        end += 1
    return end
