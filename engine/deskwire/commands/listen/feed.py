"""The project's feed, read from a position: stored pages first, then new events by long polling (decisions 4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus
from typing import Any, Final

import orjson
import trio
from msgspec import Struct

from deskwire.commands.api_client.service import CallRefused, Service, ServiceUnavailable, raw_items
from deskwire.engine.core.ids import id_before, id_time_ms
from deskwire.engine.events.types import STORED

PAGE_SIZE: Final = 200  # decisions 1: the largest
LONG_POLL_S: Final = 30  # decisions 4: the longest
_NOT_YET: Final = "event_not_found"


class FeedError(Exception):
    """The feed can't be read; the text gives the reason and the remedy."""


class FeedPage(Struct, frozen=True):
    """A page of events in order; `more` if further events are already stored."""

    events: tuple[FeedEvent, ...]
    more: bool


class FeedReader:
    """A reader of the feed that continues where it stopped.

    Args:
        note: receives a line for people.
        types: the wanted types. Types beyond the contract are read only if they are listed. All types of the
            contract are always read, so that the position advances.
    """

    def __init__(
        self, service: RetryingService, note: Callable[[str], None], types: Collection[str] = ()
    ) -> None:
        self.after: str | None = None
        """The id of the last event before the position; None for the oldest stored event."""
        self._service = service
        self._note = note
        self._types = sorted({*STORED, *types}) if not STORED.issuperset(types) else []

    async def read(self, wait_s: int) -> FeedPage:
        """Return the next page, which is empty if no event came for `wait_s` seconds.

        Raises FeedError if the feed does not have the position, and CallRefused and ServiceUnavailable.
        """
        try:
            page = await self._page(self.after, wait_s)
        except CallRefused as refusal:
            if refusal.status == HTTPStatus.GONE and self.after is not None:
                self._note(
                    f"Events after {self.after} are no longer stored, some may be missing; "
                    "continuing with the oldest."
                )
                self.after = None
                return FeedPage((), more=True)
            if refusal.code == _NOT_YET:
                raise FeedError(
                    f"The service has no event {self.after} yet: it may have been restored from a backup, "
                    "or the id is from another service. Start again with --from now or --from beginning."
                ) from refusal
            raise
        if page.events:
            self.after = page.events[-1].id
        return page

    async def seek(self, event_id: str) -> None:
        """Move after this event, or to the oldest stored event. Raises FeedError if the feed does not have it."""
        self.after = event_id
        if (await self.read(0)).events:
            self.after = event_id  # the events of that page are still to be read

    async def seek_end(self, now: int) -> None:
        """Move to the end of the stored events, so that only later events are read.

        The feed has no call for its end, but it refuses ids that are too new. So the end is found by time:
        first with growing steps back from now, then by bisection.

        Args:
            now: the first time to try, in milliseconds since the epoch.
        """
        search = EndSearch(now)
        while (at := search.next()) is not None:
            since_id = id_before("evt", at)
            try:
                page = await self._page(since_id, 0)
            except CallRefused as refusal:
                search.refused(at, refusal)
                continue
            self.after = page.events[-1].id if page.events else since_id
            if not page.more:
                return
            search.low = id_time_ms(self.after)
        while search.low is not None and (await self.read(0)).more:
            pass  # times are not more precise than this; skip the remaining events

    async def _page(self, after: str | None, wait_s: int) -> FeedPage:
        params = {"limit": str(PAGE_SIZE), **({"wait": str(wait_s)} if wait_s else {})}
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
        return FeedPage(events, more)


class EndSearch:
    """The bisection for the end of the feed, by time in milliseconds.

    `low` is a time that has stored events after it, or that is before all of them. `high` is a time that the feed
    has not reached.
    """

    def __init__(self, now: int) -> None:
        self.low: int | None = None
        self.high: int | None = None
        self._now = now
        self._step = 1_000

    def refused(self, at: int, refusal: CallRefused) -> None:
        """Narrow the interval after a refusal at the time `at`. Raises any other refusal."""
        if refusal.code == _NOT_YET:
            self.high = at
        elif refusal.status == HTTPStatus.GONE:
            self.low = at
        else:
            raise refusal

    def next(self) -> int | None:
        """Return the next time to try, None when the interval can't get smaller."""
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


PAUSE_S: Final = 0.5
PAUSE_MAX_S: Final = 10.0


class RetryingService:
    """Sends GET requests that are retried with growing delays while the service is unavailable.

    Args:
        patient: whether to retry; otherwise ServiceUnavailable is raised at once.
        note: receives a line for people.
    """

    def __init__(self, service: Service, patient: bool, note: Callable[[str], None]) -> None:
        self._service = service
        self._patient = patient
        self._note = note

    async def get(self, path: str, params: Mapping[str, str] | None = None, wait_s: float = 0) -> bytes:
        """Return the response like `Service.get`. Raises CallRefused, and ServiceUnavailable unless patient."""
        pause_s, reported = PAUSE_S, False
        while True:
            try:
                answer = await self._service.get(path, params, wait_s)
            except ServiceUnavailable as away:
                if not self._patient:
                    raise
                if not reported:
                    self._note(f"{away}; retrying until it is back.")
                    reported = True
                await trio.sleep(min(max(pause_s, away.retry_after_s or 0), PAUSE_MAX_S))
                pause_s *= 2
            else:
                if reported:
                    self._note("The service is back.")
                return answer


_SUBJECTS: Final = (
    ("ticket", "id"),
    ("response", "id"),
    ("survey", "id"),
    ("endpoint", "id"),
    ("contact", "userId"),
)
"""The objects in an event's data that it may be about instead of a conversation, by priority."""


class FeedEvent(Struct, frozen=True):
    """An event of the feed.

    Args:
        conversation: id of its conversation, if any.
        subject: id of the object that the event is about instead of a conversation, such as a contact or a ticket.
        sequence: None for an event without a sequence (contract 2.10).
        body: the envelope's bytes as received.
    """

    id: str
    type: str
    conversation: str | None
    sequence: int | None
    body: bytes
    subject: str | None = None

    @property
    def ordering_key(self) -> str:
        """The key within which events are forwarded one after the other, in order."""
        return self.conversation or self.subject or self.type


def read_event(body: bytes) -> FeedEvent:
    """Parse an envelope. Raises ValueError if it is not an event."""
    try:
        envelope = orjson.loads(body)
        data = envelope["data"]
        return FeedEvent(
            str(envelope["id"]),
            str(envelope["type"]),
            _part(data, "conversation", "id") or data.get("conversationId"),
            envelope["sequence"],
            body,
            next(filter(None, (_part(data, *each) for each in _SUBJECTS)), None),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no event envelope: {error!r}") from error


def _part(data: Any, kind: str, name: str) -> str | None:
    text: str | None = data.get(kind, {}).get(name)
    return text
