"""The project's feed, read from a position on: page by page, then as events come (decisions 4)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import Final

import orjson
from msgspec import Struct

from deskwire.commands.api_client.page import raw_items
from deskwire.commands.api_client.service import Refused
from deskwire.commands.listen.envelope import Event, read_event
from deskwire.commands.listen.patience import Patient
from deskwire.engine.core.ids import id_before, id_time_ms
from deskwire.engine.events.types import STORED

PAGE: Final = 200  # decisions 1: the largest
WAIT_S: Final = 30  # decisions 4: the longest
_NOT_YET: Final = "event_not_found"


class FeedError(Exception):
    """The feed can't be read; the text says why and what to do."""


class Page(Struct, frozen=True):
    """Events in their order, and whether more are there already."""

    events: tuple[Event, ...]
    more: bool


class Feed:
    """A reader that goes on where it stopped.

    Args:
        note: takes a line for people.
        types: the types that are wanted. Those beyond the contract are read only if they are among them; all of the
            contract are read in each case, so that the position moves on.
    """

    def __init__(self, service: Patient, note: Callable[[str], None], types: Collection[str] = ()) -> None:
        self.after: str | None = None
        """The event to read behind, None for the oldest that is stored."""
        self._service = service
        self._note = note
        self._types = sorted({*STORED, *types}) if not STORED.issuperset(types) else []

    async def read(self, wait_s: int) -> Page:
        """Return the next page; it is empty if nothing came for `wait_s` seconds.

        Raises FeedError if the position is not one of this feed, Refused and Away as `Patient.get`.
        """
        try:
            page = await self._page(self.after, wait_s)
        except Refused as refusal:
            if refusal.status == HTTPStatus.GONE and self.after is not None:
                self._note(
                    f"Events behind {self.after} are no longer stored, some may be missing; "
                    "going on from the oldest."
                )
                self.after = None
                return Page((), more=True)
            if refusal.code == _NOT_YET:
                raise FeedError(
                    f"The service has not got as far as {self.after}: it may be restored from a backup, "
                    "or the id is another service's. Begin anew with --from now or --from beginning."
                ) from refusal
            raise
        if page.events:
            self.after = page.events[-1].id
        return page

    async def seek(self, event_id: str) -> None:
        """Go behind this event, or to the oldest that is stored. Raises FeedError if it is none of this feed."""
        self.after = event_id
        if (await self.read(0)).events:
            self.after = event_id  # nothing of that page was taken

    async def seek_end(self, now: int) -> None:
        """Go to the end of what is stored, wherever that is; what comes later is read.

        The feed has no call for that. It tells an id that is too new, so the end is found by its time: back
        from now in growing steps, then halving.

        Args:
            now: where to begin, in milliseconds since the epoch.
        """
        search = Search(now)
        while (at := search.next()) is not None:
            looked = id_before("evt", at)
            try:
                page = await self._page(looked, 0)
            except Refused as refusal:
                search.refused(at, refusal)
                continue
            self.after = page.events[-1].id if page.events else looked
            if not page.more:
                return
            search.low = id_time_ms(self.after)
        while search.low is not None and (await self.read(0)).more:
            pass  # as close as times get; the rest is read over

    async def _page(self, after: str | None, wait_s: int) -> Page:
        params = {"limit": str(PAGE), **({"wait": str(wait_s)} if wait_s else {})}
        if self._types:
            params["types"] = ",".join(self._types)
        if after is not None:
            params["after"] = after
        raw = await self._service.get("/s2s/events", params, wait_s)
        try:
            events = tuple(read_event(body) for body in raw_items(raw))
            more = orjson.loads(raw)["nextCursor"] is not None
        except (ValueError, KeyError) as error:
            raise FeedError(f"The feed can't be read: {error}. Is this a Deskwire service?") from error
        return Page(events, more)


class Search:
    """The search for the end of the feed, by time in milliseconds.

    `low` is a time with stored events behind it, or before all of them; `high` one that the feed has not
    reached.
    """

    def __init__(self, now: int) -> None:
        self.low: int | None = None
        self.high: int | None = None
        self._now = now
        self._step = 1_000

    def refused(self, at: int, refusal: Refused) -> None:
        """Take in that the feed did not answer from `at`; raises what is no answer to that."""
        if refusal.code == _NOT_YET:
            self.high = at
        elif refusal.status == HTTPStatus.GONE:
            self.low = at
        else:
            raise refusal

    def next(self) -> int | None:
        """Return the next time to try, None when the two are as close as they get."""
        match self.low, self.high:
            case None, None:
                return self._now
            case None, int(high):
                at: int | None = high - self._stride()
                return at if at is not None and at > 0 else None
            case int(low), None:
                return low + self._stride()
            case int(low), int(high):
                return (low + high) // 2 if high - low > 1 else None
        raise AssertionError

    def _stride(self) -> int:
        self._step *= 2
        return self._step // 2
