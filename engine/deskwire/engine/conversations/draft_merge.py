"""The merge of two versions of a draft, in which no word of either is ever dropped.

A three-way merge is taken only if it has every word of both texts; a deletion on one side is undone where it would cost a
word. A text replaces another one if it contains that one as whole words (`has_words`). The desk decides the same in
`draft-merge.js`. The work is linear in the length of the texts, which strangers choose.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from deskwire.engine.uploads.upload import Attachment

SEPARATOR: Final = "\n\n"
"""The blank line between two texts that have nothing in common."""


_PARAGRAPHS: Final = re.compile(r"\n\s*\n")
_NEAR: Final = 64  # characters on each side of a match that are searched for the rest of a word
_PLACES_MAX: Final = 100  # matches that are examined, so that the work is bounded


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
    if not given.strip() or has_words(stored, given.strip()):
        return stored
    if not stored.strip() or has_words(given, stored.strip()):
        return given
    if base is not None:
        found = _three_way(base, stored, given)
        if found is not None:
            return found
    return f"{stored}{SEPARATOR}{given}"


def has_words(text: str, words: str) -> bool:
    """Return whether a text contains these words as whole words, or has a paragraph that begins with them."""
    if any(paragraph.strip().startswith(words) for paragraph in _PARAGRAPHS.split(text)):
        return True
    last = text.rfind(words)
    if last >= 0 and _is_apart(text, last, len(words)):
        return True
    at = text.find(words)
    for _ in range(_PLACES_MAX):
        if at < 0:
            break
        if _is_apart(text, at, len(words)):
            return True
        at = text.find(words, at + 1)
    return False


def _is_apart(text: str, at: int, size: int) -> bool:
    """Return whether no word goes on before or after this part of a text."""
    before = re.split(r"\s", text[max(0, at - _NEAR) : at])[-1]
    after = re.split(r"\s", text[at + size : at + size + _NEAR])[0]
    return not any(unicodedata.category(each)[0] in "LNM" for each in before + after)


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
    return candidate if _has_all_words(candidate, stored, given) else None


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


def _has_all_words(text: str, *others: str) -> bool:
    words = Counter(text.split())
    return all(Counter(other.split()) <= words for other in others)
