"""One stream of a customer: the events of the contact's topic, rendered for the customer.

A topic is named by the contact's `userId`, and the contact need not exist. So a visitor's stream is open before the first
message, and continues with the events of that message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import orjson
from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.customers.view import customer_event
from deskwire.engine.events.event_stream import EventStream, StreamBatch
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.tail import Tail
from deskwire.engine.events.types import StoredEvent, Topic

Bye = Literal["shutdown", "session_ended", "too_many_streams"]  # the reason for the end of a stream

# Returns the envelope as the customer may see it; None if it shows the customer nothing.
Render = Callable[[bytes], bytes | None]


def rendered_event(body: bytes) -> bytes:
    """Return a stored envelope as the customer may see it."""
    return orjson.dumps(customer_event(orjson.loads(body)))


_CACHE_BYTES_MAX: Final = 4 << 20  # for all contacts with several tabs together


class Page(Struct, frozen=True):
    """The page of the website on which a customer is."""

    url: str
    title: str | None = None


def page_in(context: Mapping[str, Any] | None) -> Page | None:
    """Return the page in the context of a session; None if it names none."""
    url = None if context is None else context.get("url")
    return None if context is None or url is None else Page(url, context.get("title"))


class StreamCustomer(Struct, frozen=True):
    """The customer who opened a stream, as of the opening.

    Args:
        session: id of the session; a visitor's session has one before it is stored.
        token_hash: SHA-256 of the session's token.
        channel: `chn_` id.
        user_id: the contact's `userId`, also before the contact exists.
        contact: `con_` id; None for a visitor who has not written yet.
        verified: True if the identity is signed.
    """

    session: str
    token_hash: bytes
    project: Project
    channel: str
    user_id: str
    contact: str | None = None
    verified: bool = False

    @property
    def topic(self) -> Topic:
        """The part of the event log that the stream shows."""
        return Topic(self.project.rowid, "contact", self.user_id)


class CustomerStream(EventStream[Bye]):
    """An open stream, made by `CustomerStreams.open` and closed by its reader; see `EventStream`."""

    __slots__ = ("contact", "customer")

    def __init__(self, log: EventLog, tail: Tail, customer: StreamCustomer, drop: Callable[[], None]) -> None:
        super().__init__(log, tail, customer.topic, drop)
        self.customer = customer
        self.contact = customer.contact

    async def next(self) -> StreamBatch[Bye]:
        """Return the next items to write, once there are any. See `EventStream.next_items`."""
        return await self.next_items()


class RenderedEvents:
    """A cache of rendered events, so that all tabs of a contact share one rendering.

    Args:
        render: renders an envelope.
    """

    def __init__(self, render: Render, bytes_max: int = _CACHE_BYTES_MAX) -> None:
        self._render = render
        self._bytes_max = bytes_max
        self._bytes = 0
        self._cached: dict[tuple[int, int], tuple[bytes, bytes | None]] = {}

    def rendered(self, event: StoredEvent, *, shared: bool) -> bytes | None:
        """Return the event as the customer may see it; None if it shows the customer nothing.

        Args:
            shared: True if other streams are likely to need the same event.
        """
        key = event.project, event.position
        known = self._cached.get(key)
        # A redacted event keeps its position, and its body is another one.
        if known is not None and known[0] == event.body:
            return known[1]
        shown = self._render(event.body)
        if shared:
            self._keep(key, event.body, shown)
        return shown

    def clear(self) -> None:
        """Evict all events; called at intervals, because only the newest events are needed again."""
        self._cached, self._bytes = {}, 0

    def _keep(self, key: tuple[int, int], body: bytes, shown: bytes | None) -> None:
        self._cached[key] = body, shown
        self._bytes += len(body) + len(shown or b"")
        if self._bytes > self._bytes_max:
            self.clear()
