"""The search while the index advances."""

from __future__ import annotations

from typing import Any, cast

from deskwire.engine.search.ports import IndexLag, RowMatches, SearchReader
from deskwire.engine.search.search import search
from tests.support.builders import PROJECT


class TakenInMeanwhile:
    """A reader whose index takes in its last message right after the first read."""

    def __init__(self) -> None:
        self._left = 1

    def search_lag(self) -> IndexLag:
        """Return what is left at this moment."""
        return IndexLag(self._left, 0, building=False)

    def found_conversations(self, project: int, words: Any, limit: int) -> RowMatches:
        """Find nothing yet."""
        self._left = 0
        return RowMatches([], more=False)

    def conversation_named(self, project: int, name: str) -> int | None:
        """Know no such conversation."""
        return None

    def shown(self, rows: list[int], messages: int, words: tuple[str, ...]) -> list[Any]:
        """Show nothing."""
        return []


def test_result_is_incomplete_if_the_index_advanced_during_the_search() -> None:
    found = search(cast(SearchReader, TakenInMeanwhile()), PROJECT.rowid, "refund", ["conversations"], 10)
    assert found.conversations == []
    assert found.behind == IndexLag(1, 0, building=False)
