"""The messages of a conversation in which what was asked for stands, each with the piece of its text that shows it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct

from deskwire.engine.conversations.conversation import Message
from deskwire.engine.search.words import FOLDING, pattern_of

HITS_MAX: Final = 3
"""Messages that a conversation is shown with."""

SHOWN_MAX: Final = 160
"""Characters of a message that are shown."""

_BEFORE: Final = 40
"""Characters that are shown before the first place."""

RANGES_MAX: Final = 20
"""Places that are named in one piece of text."""


class Hit(Struct, frozen=True):
    """A message with something of what was asked for.

    Args:
        text: a piece of its text.
        ranges: where in that piece it stands, from and up to, in UTF-16 units as JavaScript counts.
    """

    message: Message
    text: str
    ranges: Sequence[tuple[int, int]]


def hits_in(messages: Sequence[Message], title: str | None, words: Sequence[str]) -> list[Hit]:
    """Return the newest messages that together show all words that the title does not; of words that all have, the newest.

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
    """Return which of the words a folded text has."""
    likely = [word for word in words if word in folded]
    return {word for word in likely if pattern_of((word,)).search(folded)}


def _hit(message: Message, words: Sequence[str]) -> Hit:
    places = list(_places(message.text, pattern_of(tuple(words))))
    text = message.text
    start = max(0, places[0][0] - _BEFORE)
    if start:  # at a word's beginning, if there is one
        space = text.find(" ", start, places[0][0])
        start = start if space < 0 else space + 1
    shown = text[start : start + SHOWN_MAX]
    units = [0, *accumulate(1 + (character > "\uffff") for character in shown)]
    ranges = [
        (units[begin - start], units[min(end - start, len(shown))])
        for begin, end in places[:RANGES_MAX]
        if begin - start < len(shown)
    ]
    return Hit(message, shown, ranges)


def _places(text: str, pattern: re.Pattern[str]) -> list[tuple[int, int]]:
    """Return where in a text, in its own characters, what a pattern finds in the folded text stands."""
    ends = list(accumulate(len(FOLDING[ord(character)]) for character in text))
    folded = text.translate(FOLDING)
    origin = [number for number, character in enumerate(text) for _ in FOLDING[ord(character)]]
    assert len(folded) == (ends[-1] if ends else 0), "each character is folded by itself"
    places: list[tuple[int, int]] = []
    for match in pattern.finditer(folded):
        begin, end = origin[match.start()], origin[match.end() - 1] + 1
        while end < len(text) and not FOLDING[ord(text[end])]:
            end += 1  # marks belong to their letter
        if places and begin <= places[-1][1]:
            places[-1] = (places[-1][0], max(end, places[-1][1]))
        else:
            places.append((begin, end))
    return places
