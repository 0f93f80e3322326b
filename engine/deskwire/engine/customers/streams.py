"""All streams of customers: opening them, limits, typing of agents, and the ends of their sessions.

Opening a stream takes no lease, writes nothing and announces nothing in the database, so that all panels of a website can
return at once after a restart. A stream reads what it missed from the table, and everything else from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol, get_args

import orjson
import structlog
import trio

from deskwire.engine.accounts.ports import CallerCommit
from deskwire.engine.accounts.sessions import SessionCommit
from deskwire.engine.agents.presence import EncodedEphemeral, ephemeral_event
from deskwire.engine.channels.channel import Channel
from deskwire.engine.cluster.cluster import Bus, Cluster, NoBus
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.errors import TooManyRequests, Unavailable
from deskwire.engine.core.limits.fair_share import Shares
from deskwire.engine.core.store import InlineQuery, Store
from deskwire.engine.customers.presence import ContactKey, ContactPresence
from deskwire.engine.customers.session import CustomerSessionReader, accepts
from deskwire.engine.customers.stream import (
    Bye,
    CustomerStream,
    Page,
    Render,
    RenderedEvents,
    StreamCustomer,
)
from deskwire.engine.events.event_stream import StreamStart, find_start
from deskwire.engine.events.log import NO_EVENT_ID, EventLog
from deskwire.engine.events.open_streams import OpenStreams
from deskwire.engine.events.ports import EventReader
from deskwire.engine.events.types import EphemeralEvent, StoredEvent, Topic

log: Final = structlog.get_logger(__name__)

# Maximum open streams and long polls of one session: tabs of one browser, and dead connections that are not detected yet.
MAX_STREAMS_PER_SESSION: Final = 10
_RETRY_AFTER_S: Final = 10  # for a client that has too many streams
_MESSAGE_KIND: Final = "customers"  # the kind of these messages on the bus
# Interval of a check of all sessions, in case a message of another node was lost.
_CHECK_INTERVAL_S: Final = 30.0
_CHECK_BATCH_SIZE: Final = 500  # sessions checked by one query
_CHECK_RETRY_DELAY_S: Final = 0.2  # pause before a failed check of sessions is repeated
_CHECK_PAUSES: Final = 4  # ratio of the pause after a check to the length of the check
_CACHE_INTERVAL_S: Final = 5.0  # interval at which the cache of rendered events is cleared
_IDS_MAX: Final = 80  # sessions in one message of the bus


class Poll(NamedTuple):
    """The result of a long poll.

    Args:
        events: the events as the customer may see them, in commit order.
        cursor: id of the event after which the next poll continues.
        gap: True if missed events are no longer stored or unknown.
    """

    events: Sequence[bytes]
    cursor: str
    gap: bool


class CustomerStreamReader(EventReader, CustomerSessionReader, Protocol):
    """Queries on events, on channels, and on the sessions of customers."""

    def channel(self, channel_id: str) -> Channel | None:
        """Return the channel with this id, of any project; None if it was removed."""


class CustomerSessionsCommit(CallerCommit, SessionCommit, Protocol):
    """The part of a commit that may end sessions of customers."""


class CustomerStreams(OpenStreams[CustomerStream]):
    """The streams of all customers on this node; `run` ends streams whose session has ended.

    Args:
        render: makes the customer's view of an envelope.
        streams_max: maximum open streams. The customers of an organisation get another one only while at least as many are
            free as they have. Visitors who have not written count apart from them.
        bus: the bus to the other nodes; None on a single node.
        cluster: the cluster of nodes that share the store.
    """

    def __init__(
        self,
        store: Store[CustomerStreamReader, object],
        event_log: EventLog,
        presence: ContactPresence,
        clock: Clock,
        render: Render,
        *,
        streams_max: int = 20_000,
        bus: Bus | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        super().__init__("customers", get_args(Bye), cluster)
        self.presence: Final = presence
        self._store = store
        self._log = event_log
        self._clock = clock
        self._rendered = RenderedEvents(render)
        self._shares = Shares(streams_max)
        self._by_session: dict[str, list[CustomerStream]] = {}
        self._by_topic: dict[Topic, list[CustomerStream]] = {}
        self._check_due = trio.Event()
        self._alone = bus is None
        self._bus = bus or NoBus()
        self._bus.receive(_MESSAGE_KIND, lambda payload: self._end_sessions(orjson.loads(payload)))

    def check_room(self, customer: StreamCustomer) -> None:
        """Raise TooManyRequests (`too_many_streams`) if the customer can't open one more stream."""
        if self._has_room(customer):
            return
        self.counters.refused += 1
        mine = len(self._by_session.get(customer.session, ()))
        if mine >= MAX_STREAMS_PER_SESSION:
            detail = f"This session has {mine} open streams; the maximum is {MAX_STREAMS_PER_SESSION}."
        else:
            detail = (
                "Too many customers are connected; DESKWIRE_CUSTOMER_STREAMS, DESKWIRE_CONNECTIONS and the limit of open "
                "files set the maximum, and one organisation gets at most half of it."
            )
        raise TooManyRequests(detail, code="too_many_streams", retry_after_s=_RETRY_AFTER_S)

    def _has_room(self, customer: StreamCustomer) -> bool:
        return len(
            self._by_session.get(customer.session, ())
        ) < MAX_STREAMS_PER_SESSION and self._shares.fits(_tenant(customer))

    async def open(
        self,
        customer: StreamCustomer,
        after: str | None,
        drop: Callable[[], None],
        page: Page | None = None,
    ) -> CustomerStream:
        """Return a stream that begins after the event `after`, or now; the caller closes it with `close`.

        The stream ends at once if the session has ended, or if a limit is reached. Raises Unavailable. If the call raises or
        is cancelled, no stream is open.

        Args:
            drop: ends the reader's connection.
            page: the page on which the customer is.
        """
        tail = await self._log.open(customer.topic)  # first, so that memory has all later commits
        stream = CustomerStream(self._log, tail, customer, drop)
        if self._closing:
            self.end(stream, "shutdown")
        elif not self._has_room(customer):
            self.end(stream, "too_many_streams")
        self._enter(stream)
        if stream.contact is not None:
            self.presence.opened(_key(stream), page)
        with ExitStack() as undo:
            undo.callback(self.close, stream)
            newest = self._log.position(customer.topic.project)  # before the read: a later event is in memory
            # The session is read after the stream is registered, so that a later end finds the stream.
            ended, start, missed = await self._store.read(
                InlineQuery(lambda reader: self._opening(reader, customer, after))
            )
            undo.pop_all()
        self._end_sessions(ended)
        stream.begin(start, none_until=0 if missed else newest)
        self.counters.gaps += start.gap
        return stream

    def close(self, stream: CustomerStream) -> None:
        """Remove a stream whose reader has finished; called once."""
        customer = stream.customer
        _discard(self._by_session, customer.session, stream)
        _discard(self._by_topic, customer.topic, stream)
        self._shares.give_back(_tenant(customer))
        if stream.contact is not None:
            self.presence.closed(_key(stream))
        super().close(stream)

    def rendered(self, stream: CustomerStream, event: StoredEvent) -> bytes | None:
        """Return an event of the stream as the customer may see it; None if it shows the customer nothing."""
        if stream.contact is None:
            self._identify(stream, event)
        return self._rendered.rendered(event, shared=len(self._by_topic[stream.customer.topic]) > 1)

    async def poll(
        self,
        customer: StreamCustomer,
        after: str | None,
        wait_s: float,
        drop: Callable[[], None],
        page: Page | None = None,
    ) -> Poll:
        """Return the events after the event `after`, or from now on, after waiting up to `wait_s` seconds for the first one.

        Raises as `open`, and Unavailable once the node has been without its lease for too long.
        """
        stream = await self.open(customer, after, drop, page)
        try:
            start, events = stream.start, await stream.read()
            if not start.gap:
                with trio.move_on_after(wait_s):
                    while not events and stream.bye is None:
                        events = (await stream.next()).events
            shown = [self.rendered(stream, event) for event in events]
            self.counters.events += len(events)
            # Without events the cursor stays: memory may not have reached the newest event yet.
            cursor = events[-1].id if events else start.resumed_after or start.at or NO_EVENT_ID
            return Poll([each for each in shown if each is not None], cursor, start.gap)
        finally:
            self.close(stream)

    @property
    def projects(self) -> Collection[int]:
        """The storage keys of the projects with an open stream on this node."""
        return {topic.project for topic in self._by_topic}

    def offer_ephemeral(self, event: EphemeralEvent) -> None:
        """Send the typing of an agent to the streams of the conversation's contact on this node, with the name only."""
        streams = self._by_topic.get(Topic(event.project, "contact", event.user_id))
        if streams and not event.internal:
            passing = _typing(event)
            for stream in streams:
                stream.offer(passing)

    def set_page(self, session: str, page: Page | None) -> None:
        """Set the page on which the customer of a session is, if the session has an open stream here."""
        for stream in self._by_session.get(session, ()):
            if stream.contact is not None:
                self.presence.set_page(_key(stream), page)

    def end_sessions(self, sessions: Iterable[str]) -> None:
        """End the streams of these sessions, on all nodes."""
        ended = [*sessions]
        self._end_sessions(ended)
        for first in range(0, 0 if self._alone else len(ended), _IDS_MAX):
            self._bus.send(_MESSAGE_KIND, orjson.dumps(ended[first : first + _IDS_MAX]))

    def _end_sessions(self, sessions: Iterable[str]) -> None:
        for session in sessions:
            for stream in self._by_session.get(session, ()):
                self.end(stream, "session_ended")

    def follow(self, commits: Commits[CustomerSessionsCommit]) -> None:
        """End the streams of sessions that a commit ends, and check all after a change of channels, from now on."""
        commits.subscribe(lambda commit: self.end_sessions(commit.sessions), "sessions")
        commits.subscribe(lambda _: self.check_sessions_nowait(), "callers")

    def check_sessions_nowait(self) -> None:
        """Schedule a check of all sessions, after a committed change that may have ended some."""
        self._check_due.set()

    async def end_lost_sessions(self) -> None:
        """End the streams whose session has ended, on whichever node that was committed. Raises Unavailable."""
        for customers in _batches(self._by_session.values()):
            now = self._clock()
            self._end_sessions(
                await self._store.read(partial(find_ended_sessions, customers=customers, now=now))
            )

    async def run(self) -> None:
        """Check sessions and take contacts offline, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.presence.run)
            nursery.start_soon(self._check_sessions)
            nursery.start_soon(self._clear_cache)
            if not self._alone:
                nursery.start_soon(self._lapse)

    async def _check_sessions(self) -> None:
        while True:
            with trio.move_on_after(_CHECK_INTERVAL_S):
                await self._check_due.wait()
            self._check_due, began = trio.Event(), trio.current_time()
            try:
                await self.end_lost_sessions()
                await trio.sleep((trio.current_time() - began) * _CHECK_PAUSES)
            except Unavailable as error:
                log.warning("customers.sessions_not_read", reason=error.reason)
                self._check_due.set()
                await trio.sleep(_CHECK_RETRY_DELAY_S)

    async def _clear_cache(self) -> None:
        while True:
            await trio.sleep(_CACHE_INTERVAL_S)
            self._rendered.clear()

    def _opening(
        self, reader: CustomerStreamReader, customer: StreamCustomer, after: str | None
    ) -> tuple[Collection[str], StreamStart, bool]:
        """Return the session's id if it has ended, the start of the stream, and whether events after the start are stored.

        Most panels have missed nothing, and need no further read.
        """
        ended = find_ended_sessions(reader, (customer,), self._clock())
        start = find_start(reader, customer.project.rowid, after)
        missed = start.resumed_after is not None and bool(
            reader.topic_events(customer.topic, start.position, 1, frozenset())
        )
        return ended, start, missed

    def _identify(self, stream: CustomerStream, event: StoredEvent) -> None:
        """Note the contact of a visitor, who has written the first message."""
        data: dict[str, Any] = orjson.loads(event.body)["data"]
        contact = (data.get("conversation") or data).get("contact")
        if contact is not None:
            stream.contact = contact["id"]
            self.presence.opened(_key(stream), None)

    def _enter(self, stream: CustomerStream) -> None:
        super()._enter(stream)
        customer = stream.customer
        self._by_session.setdefault(customer.session, []).append(stream)
        self._by_topic.setdefault(customer.topic, []).append(stream)
        self._shares.take(_tenant(customer))


def find_ended_sessions(
    reader: CustomerStreamReader, customers: Sequence[StreamCustomer], now: int
) -> Collection[str]:
    """Return the ids of those of these customers' sessions that have ended or whose channel refuses them at `now` (ms)."""
    stored = reader.customer_session_states([each.token_hash for each in customers], now)
    channels = {each: reader.channel(each) for each in dict.fromkeys(each.channel for each in customers)}

    def lasts(each: StreamCustomer) -> bool:
        channel = channels[each.channel]
        # A visitor who has not written has no row; the session of an erased contact has none either.
        live = stored.get(each.token_hash, each.contact is None)
        return live and channel is not None and channel.enabled and accepts(channel, verified=each.verified)

    return [each.session for each in customers if not lasts(each)]


def _tenant(customer: StreamCustomer) -> Hashable:
    """Return the tenant whose share the stream uses.

    Anyone can become a visitor, so that visitors who have not written have a share of their own.
    """
    return customer.project.organisation, customer.contact is None


def _key(stream: CustomerStream) -> ContactKey:
    assert stream.contact is not None, "a contact exists"
    return ContactKey(stream.customer.project.rowid, stream.contact)


def _typing(event: EphemeralEvent) -> EncodedEphemeral:
    data = orjson.loads(event.body)["data"]
    shown = {"conversationId": data["conversationId"], "agent": {"name": data["agent"]["name"]}}
    return ephemeral_event(event.type, shown)


def _batches(held: Iterable[Sequence[CustomerStream]]) -> Iterator[list[StreamCustomer]]:
    """Yield the customers of these lists, each of one session, in batches."""
    customers = iter([streams[0].customer for streams in held])
    while batch := [*islice(customers, _CHECK_BATCH_SIZE)]:
        yield batch


def _discard(of: dict[Any, list[CustomerStream]], key: Any, stream: CustomerStream) -> None:
    streams = of[key]
    streams.remove(stream)
    if not streams:
        del of[key]
