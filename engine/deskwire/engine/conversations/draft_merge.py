"""The merge of two versions of a draft, which never drops a word of either.

A three-way merge is used only if it contains every word of both texts; a deletion on one side is undone if it would drop a
word. A text replaces another one if it contains that one as whole words (`has_words`). The desk implements the same rules in
`draft-merge.js`. The work is linear in the length of the texts, because clients choose them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from deskwire.engine.uploads.upload import Attachment

SEPARATOR: Final = "\n\n"
"""Separates two texts that can't be merged otherwise."""


_PARAGRAPHS: Final = re.compile(r"\n\s*\n")
_NEAR: Final = 64  # characters on each side of a match that are searched for the rest of a word
_PLACES_MAX: Final = 100  # matches that are examined, which bounds the work


class _Change(NamedTuple):
    """The one part in which a text differs from its base: `text` replaces `base[start:end]`."""

    start: int
    end: int
    text: str


def merged_text(stored: str, given: str, base: str | None = None) -> str:
    """Return a text with every word of both texts.

    Args:
        stored: the newer version, written on another page.
        given: a text whose author has not seen `stored`.
        base: the text that `given` was made from; None if unknown.
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
    """Return whether a text contains these words as whole words, or in a paragraph that begins with them."""
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
    """Return whether this part of a text begins and ends at word boundaries."""
    before = re.split(r"\s", text[max(0, at - _NEAR) : at])[-1]
    after = re.split(r"\s", text[at + size : at + size + _NEAR])[0]
    return not any(unicodedata.category(each)[0] in "LNM" for each in before + after)


def merged_attachments(stored: Iterable[Attachment], given: Iterable[Attachment]) -> tuple[Attachment, ...]:
    """Return the attachments of both, each once, the stored ones first."""
    return tuple({each.id: each for each in (*stored, *given)}.values())


def _three_way(base: str, stored: str, given: str) -> str | None:
    """Return both changes of the base in one text; None if they overlap, or a word would be lost."""
    theirs, ours = _change(base, stored), _change(base, given)
    if not ours.text:
        candidate = stored  # `given` only deletes, and that is undone
    elif not theirs.text:
        candidate = given
    else:
        first, second = sorted((theirs, ours))
        if first.end >= second.start:  # the order of adjacent changes is unknown
            return None
        between = base[first.end : second.start]
        candidate = f"{base[: first.start]}{first.text}{between}{second.text}{base[second.end :]}"
    return candidate if _has_all_words(candidate, stored, given) else None


def _change(base: str, text: str) -> _Change:
    start = _common_prefix(base, text)
    suffix = _common_prefix(base[start:][::-1], text[start:][::-1])
    return _Change(start, len(base) - suffix, text[start : len(text) - suffix])


def _common_prefix(one: str, other: str) -> int:
    """Return the length of the common prefix, by bisection, because slices are compared in C."""
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
