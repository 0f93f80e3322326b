"""Sets of conversations as the index stores them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deskwire.storage.search.blocks import BITS, SIZE, changed, common, count, newest, united

NUMBERS = st.sets(st.integers(0, SIZE - 1), max_size=300) | st.integers(90, 120).map(
    lambda most: set(range(most))
)


def stored(numbers: set[int]) -> bytes:
    """A block with these numbers."""
    return changed(b"", numbers, ())


def members(rows: list[tuple[int, bytes]]) -> set[int]:
    """The numbers in stored blocks."""
    return set(newest(united(rows), 1 << 20))


@given(NUMBERS, NUMBERS, NUMBERS)
def test_block_has_added_keys_that_were_not_removed(
    before: set[int], added: set[int], removed: set[int]
) -> None:
    after = changed(stored(before), added, removed)
    assert members([(3, after)]) == {(3 << BITS) + number for number in (before | added) - removed}
    assert (after == b"") == ((before | added) <= removed)
    assert len(after) <= SIZE // 8


@given(st.lists(NUMBERS, max_size=4), st.lists(NUMBERS, max_size=4))
def test_intersection_of_sets_is_counted_and_listed_newest_first(
    one: list[set[int]], other: list[set[int]]
) -> None:
    sets = [united([(block, stored(numbers)) for block, numbers in enumerate(each)]) for each in (one, other)]
    models = [
        {(block << BITS) + n for block, numbers in enumerate(each) for n in numbers} for each in (one, other)
    ]
    both = common(*sets)
    assert count(both) == len(models[0] & models[1])
    assert newest(both, 10) == sorted(models[0] & models[1], reverse=True)[:10]
