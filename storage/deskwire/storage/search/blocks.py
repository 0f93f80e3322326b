"""Sets of conversations in blocks of 4,096 numbers, stored as lists if sparse and as bitmaps if dense.

In memory a set maps block numbers to integers whose bits are the members, so an intersection is an `and` of integers.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator
from typing import Final, TypeAlias

BITS: Final = 12
SIZE: Final = 1 << BITS
_BITMAP_BYTES: Final = SIZE // 8
_LIST_MAX: Final = 100
"""Maximum numbers of a list; larger blocks are bitmaps, which are larger but faster to read."""

Conversations: TypeAlias = dict[int, int]
"""A set of conversations: the bitmap of each block, by block number."""


def changed(stored: bytes, added: Collection[int], removed: Collection[int]) -> bytes:
    """Return a stored block after additions and removals; empty bytes for an empty set."""
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
    """Return the union of stored blocks, given with their numbers."""
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
    """Return the intersection."""
    return {
        block: bits & other[block] for block, bits in one.items() if block in other and bits & other[block]
    }


def count(conversations: Conversations) -> int:
    """Return the size of a set."""
    return sum(bits.bit_count() for bits in conversations.values())


def newest(conversations: Conversations, limit: int) -> list[int]:
    """Return the `limit` largest numbers, largest first."""
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
