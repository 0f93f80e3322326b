"""The merge of two versions of a draft, in which no word of either is ever dropped.

A three-way merge is taken only if it has every word of both texts; a deletion on one side is undone where it would cost a
word. Everything is linear in the length of the texts, which strangers choose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from deskwire.engine.uploads.upload import Attachment

BETWEEN: Final = "\n\n"
"""The blank line between two texts that have nothing in common."""


class _Change(NamedTuple):
    """The one part in which a text differs from its base: `base[start:end]` was replaced by `text`."""

    start: int
    end: int
    text: str


def merged_text(stored: str, given: str, base: str | None = None) -> str:
    """Return a text with every word of both texts.

    Args:
        stored: the newer version, written on another page.
        given: the text that was written without knowledge of it.
        base: the text that `given` was made from; None if that is not known.
    """
    if not given.strip() or given in stored:
        return stored
    if not stored.strip() or stored in given:
        return given
    if base is not None:
        found = _three_way(base, stored, given)
        if found is not None:
            return found
    return f"{stored}{BETWEEN}{given}"


def merged_attachments(stored: Iterable[Attachment], given: Iterable[Attachment]) -> tuple[Attachment, ...]:
    """Return the attachments of both, each once, those that are stored first."""
    return tuple({each.id: each for each in (*stored, *given)}.values())


def _three_way(base: str, stored: str, given: str) -> str | None:
    """Return both changes of the base in one text; None if they overlap, or a word would be lost."""
    theirs, ours = _change(base, stored), _change(base, given)
    if not ours.text:
        candidate = stored  # nothing but a deletion, which is undone
    elif not theirs.text:
        candidate = given
    else:
        first, second = sorted((theirs, ours))
        if first.end >= second.start:  # side by side is too close: which comes first is not known
            return None
        between = base[first.end : second.start]
        candidate = f"{base[: first.start]}{first.text}{between}{second.text}{base[second.end :]}"
    return candidate if _has_words(candidate, stored, given) else None


def _change(base: str, text: str) -> _Change:
    start = _common_prefix(base, text)
    suffix = _common_prefix(base[start:][::-1], text[start:][::-1])
    return _Change(start, len(base) - suffix, text[start : len(text) - suffix])


def _common_prefix(one: str, other: str) -> int:
    """Return the number of characters that both texts begin with, by bisection: slices are compared at the speed of C."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _has_words(text: str, *others: str) -> bool:
    words = Counter(text.split())
    return all(Counter(other.split()) <= words for other in others)
