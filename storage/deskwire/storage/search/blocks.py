"""Sets of conversations as the index stores them: blocks of 4,096 numbers, of few a list, of many a bit for each.

A set in memory is a dictionary of blocks, each an integer whose bits are its numbers: what two sets have in common is an
`and` of some integers.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator
from typing import Final, TypeAlias

BITS: Final = 12
SIZE: Final = 1 << BITS
_BITMAP_BYTES: Final = SIZE // 8
_LIST_MAX: Final = 100
"""Numbers from which on a block is stored as bits: a list is smaller, but takes longer to read."""

Conversations: TypeAlias = dict[int, int]
"""A set of conversations: the bits of each block by its number."""


def changed(stored: bytes, added: Collection[int], removed: Collection[int]) -> bytes:
    """Return a stored block with numbers added to it and removed from it; empty for none."""
    if len(stored) == _BITMAP_BYTES:
        bits = (int.from_bytes(stored, "little") | _of_numbers(added)) & ~_of_numbers(removed)
        if bits.bit_count() > _LIST_MAX:
            return bits.to_bytes(_BITMAP_BYTES, "little")
        return array("H", _numbers(bits)).tobytes()
    numbers = set(memoryview(stored).cast("H")).union(added).difference(removed)
    if len(numbers) > _LIST_MAX:
        return _of_numbers(numbers).to_bytes(_BITMAP_BYTES, "little")
    return array("H", sorted(numbers)).tobytes()


def united(rows: Iterable[tuple[int, bytes]]) -> Conversations:
    """Return all conversations of stored blocks, each with its number."""
    conversations: Conversations = {}
    few: dict[int, set[int]] = {}
    for block, stored in rows:
        if len(stored) == _BITMAP_BYTES:
            conversations[block] = conversations.get(block, 0) | int.from_bytes(stored, "little")
        else:
            known = few.get(block)
            if known is None:
                few[block] = set(memoryview(stored).cast("H"))
            else:
                known.update(memoryview(stored).cast("H"))
    for block, numbers in few.items():
        conversations[block] = conversations.get(block, 0) | _of_numbers(numbers)
    return conversations


def common(one: Conversations, other: Conversations) -> Conversations:
    """Return the conversations that are in both."""
    return {
        block: bits & other[block] for block, bits in one.items() if block in other and bits & other[block]
    }


def count(conversations: Conversations) -> int:
    """Return how many there are."""
    return sum(bits.bit_count() for bits in conversations.values())


def newest(conversations: Conversations, limit: int) -> list[int]:
    """Return those with the largest numbers, at most `limit`, largest first."""
    found: list[int] = []
    for block in sorted(conversations, reverse=True):
        numbers = list(_numbers(conversations[block]))[::-1]
        found += [(block << BITS) + number for number in numbers[: limit - len(found)]]
        if len(found) == limit:
            break
    return found


def _of_numbers(numbers: Collection[int]) -> int:
    if len(numbers) <= 8:
        return sum(1 << number for number in numbers)
    digits = bytearray(b"0") * SIZE
    for number in numbers:
        digits[~number] = 49  # the first digit is that of the highest number
    return int(digits, 2)


def _numbers(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
