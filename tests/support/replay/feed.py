"""The project feed: every stored event in commit order, read page by page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import trio

from deskwire.commands.api_client.service import raw_items
from tests.support.replay.api import Api
from tests.support.replay.errors import ReplayError
from tests.support.replay.history import Arrival
from tests.support.replay.journal import Journal

PAGE: Final = 200  # decisions 1: the largest
_TIME_DIGITS: Final = 10
_RANDOM_DIGITS: Final = 16


class Feed:
    """A reader that goes on where it stopped.

    Args:
        after: the event id to read behind.
    """

    def __init__(self, api: Api, journal: Journal, after: str | None) -> None:
        self._api = api
        self._journal = journal
        self._after = after

    async def read(self) -> None:
        """Read all pages that are there. Raises DemoError if the service refuses one."""
        more = True
        while more:
            behind = "" if self._after is None else f"&after={self._after}"
            result = await self._api.call("GET", f"/s2s/events?limit={PAGE}{behind}", repeatable=True)
            if result.outcome != "acknowledged":
                raise ReplayError(f"The feed can't be read: {result.detail}")
            for body in _bodies(result.raw):
                self._journal.record(Arrival(trio.current_time(), body))
            if result.body["items"]:
                self._after = str(result.body["items"][-1]["id"])
            more = result.body["nextCursor"] is not None


def _bodies(page: bytes) -> list[bytes]:
    try:
        return raw_items(page)
    except ValueError as error:
        raise ReplayError(f"The feed can't be read: {error}.") from error


def just_before(identifiers: Iterable[str]) -> str | None:
    """Return an event id smaller than those of all events that came with or after any of these objects.

    Identifiers are a prefix and a ULID, whose first ten digits are the time (decisions 1). None if there are none.
    """
    times = [identifier.partition("_")[2][:_TIME_DIGITS] for identifier in identifiers]
    return f"evt_{min(times)}{'0' * _RANDOM_DIGITS}" if times else None
