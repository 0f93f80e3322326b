"""Changes of postings that follow from a change of a conversation's words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, TypeAlias

from deskwire.storage.search.blocks import BITS, SIZE

_BEGINNINGS: Final = (2, 3)
"""Lengths of prefixes with postings of their own, because thousands of words share such a short prefix."""

WHOLE: Final = 0
"""The length stored with postings of whole words."""

Place: TypeAlias = tuple[int, int, str, int]
"""The key of a row of postings: project, length, word, block."""


def length_for(asked: str) -> int:
    """Return the length stored with the postings for a prefix."""
    return max(len(asked), _BEGINNINGS[0]) if len(asked) <= _BEGINNINGS[-1] else WHOLE


class ConversationWords(NamedTuple):
    """The words of a conversation's messages (`body`) and of its title."""

    body: frozenset[str]
    title: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """The words of the conversation."""
        return self.body | self.title


NONE: Final = ConversationWords(frozenset(), frozenset())


class PostingChanges:
    """Buffers the changes of postings in a transaction, because its conversations share many of them."""

    def __init__(self) -> None:
        self._changes: defaultdict[Place, dict[int, bool]] = defaultdict(dict)

    def note(
        self, conversation: int, project: int, before: ConversationWords, after: ConversationWords
    ) -> None:
        """Add the change from one set of words to another."""
        old, new = before.all, after.all
        self._note(conversation, project, WHOLE, old, new)
        for length in _BEGINNINGS:
            self._note(conversation, project, length, _begun(old, length), _begun(new, length))

    def places(self) -> list[Place]:
        """Return the keys of the changed rows, sorted."""
        return sorted(self._changes)

    def at(self, place: Place) -> tuple[list[int], list[int]]:
        """Return the numbers to add to a row's block, and those to remove."""
        numbers = self._changes[place]
        return [number for number, there in numbers.items() if there], [
            number for number, there in numbers.items() if not there
        ]

    def clear(self) -> None:
        """Clear the buffer."""
        self._changes.clear()

    def _note(
        self, conversation: int, project: int, length: int, before: AbstractSet[str], after: AbstractSet[str]
    ) -> None:
        block, number = conversation >> BITS, conversation % SIZE
        for words, there in ((after - before, True), (before - after, False)):
            for word in words:
                self._changes[project, length, word, block][number] = there


def joined(words: Iterable[str]) -> str:
    """Return words in their stored form; words contain no spaces."""
    return " ".join(sorted(words))


def split(words: str) -> frozenset[str]:
    """Return the words of a stored row."""
    return frozenset(words.split(" ") if words else ())


def _begun(words: Iterable[str], length: int) -> frozenset[str]:
    """Return the prefixes of this length; the shortest length also includes shorter words."""
    least = 1 if length == _BEGINNINGS[0] else length
    return frozenset(word[:length] for word in words if len(word) >= least)
