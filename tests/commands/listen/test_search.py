"""Finding the end of a feed that only says whether an id is too new."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deskwire.commands.listen.feed import EndSearch

NOW = 1_790_000_000_000
DAY_MS = 86_400_000


@given(st.integers(-30 * DAY_MS, 30 * DAY_MS))
def test_end_is_found_at_any_distance_of_clocks_and_last_event(distance: int) -> None:
    """Find the newest event's time: times up to it have stored events after them, and the feed has not reached later ones."""
    newest, search, tries = NOW + distance, EndSearch(NOW), 0
    while (at := search.next()) is not None:
        tries += 1
        if at > newest:
            search.high = at
        else:
            search.low = at
    assert (search.low, search.high) == (newest, newest + 1)
    assert tries <= 64


def test_search_in_an_empty_feed_ends_at_the_beginning_of_time() -> None:
    search, tries = EndSearch(NOW), 0
    while (at := search.next()) is not None:
        search.high, tries = at, tries + 1
    assert search.low is None
    assert tries <= 48
