"""The messages of a conversation that match a search, each with the excerpt that shows the match."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct

from deskwire.engine.conversations.conversation import Message
from deskwire.engine.search.tokens import FOLDING, pattern_of

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

    message: Message
    text: str
    ranges: Sequence[tuple[int, int]]


def hits_in(messages: Sequence[Message], title: str | None, words: Sequence[str]) -> list[Hit]:
    """Return the newest messages that together have all words of the query that the title lacks.

    Args:
        messages: oldest first.
    """
    missing = set(words)
    if title is not None:
        missing -= _found(title.translate(FOLDING), words)
    hits: list[Hit] = []
    for message in reversed(messages):
        if not missing or len(hits) == HITS_MAX:
            break
        there = _found(message.text.translate(FOLDING), missing)
        if there:
            missing -= there
            hits.append(_hit(message, words))
    return hits


def _found(folded: str, words: Sequence[str] | set[str]) -> set[str]:
    """Return the words that occur in a folded text."""
    likely = [word for word in words if word in folded]
    return {word for word in likely if pattern_of((word,)).search(folded)}


def _hit(message: Message, words: Sequence[str]) -> Hit:
    places = list(_places(message.text, pattern_of(tuple(words))))
    text = message.text
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
    return Hit(message, shown, ranges)


def _units(text: str) -> Sequence[int]:
    """Return the number of UTF-16 code units before each character, and at the end."""
    if not text or max(text) <= "\uffff":
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


def _places(text: str, pattern: re.Pattern[str]) -> list[tuple[int, int]]:
    """Return the spans of a text whose folded form matches a pattern."""
    folded = text.translate(FOLDING)
    origin = _origin(text, folded)
    places: list[tuple[int, int]] = []
    for match in pattern.finditer(folded):
        begin, end = origin[match.start()], origin[match.end() - 1] + 1
        while end < len(text) and not FOLDING[ord(text[end])]:
            end += 1  # combining marks belong to the letter before them
        if places and begin <= places[-1][1]:
            places[-1] = (places[-1][0], max(end, places[-1][1]))
        else:
            places.append((begin, end))
    return places
