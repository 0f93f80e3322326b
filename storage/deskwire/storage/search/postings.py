"""The postings that a conversation's words add it to, and those that it is taken out of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, TypeAlias

from deskwire.storage.search.blocks import BITS, SIZE

_BEGINNINGS: Final = (2, 3)
"""The lengths of beginnings that have postings of their own: so short a beginning is that of thousands of words."""

WHOLE: Final = 0
"""The length that postings of whole words are marked with."""

Place: TypeAlias = tuple[int, int, str, int]
"""The key of a row of postings: project, length, word, block."""


def length_for(asked: str) -> int:
    """Return the mark of the postings that have all conversations with words that begin so."""
    return max(len(asked), _BEGINNINGS[0]) if len(asked) <= _BEGINNINGS[-1] else WHOLE


class Words(NamedTuple):
    """The words of a conversation: those of its messages, which only grow, and those of its title."""

    body: frozenset[str]
    title: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """The words that it is found by."""
        return self.body | self.title


NONE: Final = Words(frozenset(), frozenset())


class PostingChanges:
    """The changes of postings that gather in a transaction, as many of its conversations share them."""

    def __init__(self) -> None:
        self._changes: defaultdict[Place, dict[int, bool]] = defaultdict(dict)

    def note(self, conversation: int, project: int, before: Words, after: Words) -> None:
        """Note that a conversation is found by other words from now on."""
        old, new = before.all, after.all
        self._note(conversation, project, WHOLE, old, new)
        for length in _BEGINNINGS:
            self._note(conversation, project, length, _begun(old, length), _begun(new, length))

    def places(self) -> list[Place]:
        """Return the rows that change, in their order."""
        return sorted(self._changes)

    def at(self, place: Place) -> tuple[list[int], list[int]]:
        """Return the numbers in the block that are added to a row, and those that are taken out."""
        numbers = self._changes[place]
        return [number for number, there in numbers.items() if there], [
            number for number, there in numbers.items() if not there
        ]

    def clear(self) -> None:
        """Forget all of them: they are written."""
        self._changes.clear()

    def _note(
        self, conversation: int, project: int, length: int, before: AbstractSet[str], after: AbstractSet[str]
    ) -> None:
        block, number = conversation >> BITS, conversation % SIZE
        for words, there in ((after - before, True), (before - after, False)):
            for word in words:
                self._changes[project, length, word, block][number] = there


def joined(words: Iterable[str]) -> str:
    """Return words as a row has them; a word has no space in it."""
    return " ".join(sorted(words))


def split(words: str) -> frozenset[str]:
    """Return the words of a row."""
    return frozenset(words.split(" ") if words else ())


def _begun(words: Iterable[str], length: int) -> frozenset[str]:
    """Return the beginnings of so many characters; of the shortest length those of shorter words, too."""
    least = 1 if length == _BEGINNINGS[0] else length
    return frozenset(word[:length] for word in words if len(word) >= least)
