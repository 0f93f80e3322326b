"""Outbox: one endpoint's deliveries in memory, and which may start now; no I/O.

The rows in the database are authoritative. The outbox is a bounded window on them with three parts:

- *Live*: first attempts (`ordering`). Those of a conversation start in the order of their positions, each
  after the previous attempt has ended, with or without success. The cursor is the position up to which all
  rows were added, erased or ended. While the cursor is at the newest known position, new deliveries are added
  as they are offered. At the start, or when the memory is full, the window is *behind*: offered deliveries
  are only noted, and the rows after the cursor are read in batches until the cursor reaches the newest known
  position.
- *Retries*: they start when they are due, in any order, and block no other delivery (`retries`). While first
  attempts are ready, retries may use only a share of the slots.
- *Backlog*: deliveries left by an outage, and all redeliveries (`backlog`).

A delivery whose receiver asked for a pause is the last to start after the pause (`ordering`), and blocks its
conversation. If such conversations fill the memory, so that no other rows can be read, they continue without
that delivery, which becomes a retry.

While the circuit is open, the outbox *holds*: it contains only running deliveries and notes that new rows
exist. When the circuit closes, the deliveries pending then become the backlog, and deliveries committed later
are live.

Only one part reads a row: live reads the rows after the cursor, retries read those before it, and the backlog
reads its own range and redeliveries. If a row was in memory when a batch was requested, it is ignored in that
batch, because it may have ended since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, assert_never

from msgspec import Struct, field

from deskwire.engine.core.values import replace
from deskwire.engine.events.types import StoredEvent
from deskwire.engine.webhooks.delivery import Delivery, with_event
from deskwire.engine.webhooks.queue.backlog import Backlog
from deskwire.engine.webhooks.queue.ordering import OrderedDeliveries
from deskwire.engine.webhooks.queue.retries import Retries
from deskwire.engine.webhooks.retry.back_pressure import SUSPECT_REFUSALS

# Greater than every position.
POSITION_MAX: Final = 2**63 - 1

OutboxPart = Literal["live", "retries", "redeliveries", "missed", "held", "probe"]


class RowBatch(Struct):
    """A batch of rows being read.

    Args:
        part: the part of the outbox that gets the rows.
        after, upto: range of their positions, the first excluded; for retries, `after` is the position of the
            newest redelivery read.
        unread: for retries, the range of held deliveries that the backlog has not read yet; it is left out.
        limit: maximum number of rows.
        newest: the newest known position when reading started.
        known: positions in memory when reading started.
        erased: conversations erased since.
        rewritten: events rewritten since, by position.
    """

    part: OutboxPart
    after: int
    upto: int
    unread: tuple[int, int]
    limit: int
    newest: int
    known: frozenset[int]
    erased: set[int] = field(default_factory=set)
    rewritten: dict[int, StoredEvent] = field(default_factory=dict)


class _RunningAttempt(Struct):
    """A delivery from the start of its attempt until the result is recorded.

    Args:
        ordered: the queue in which the next delivery with its key waits for this attempt, if any.
        retry: whether it is a retry that is still running.
        erased: whether its conversation was erased since the start.
    """

    delivery: Delivery
    ordered: OrderedDeliveries | None
    retry: bool
    erased: bool = False

    def now(self, planned: Delivery) -> Delivery:
        """Return the planned delivery with the current content of its event."""
        event = self.delivery.event
        return planned if planned.event is event else replace(planned, event=event)


class Outbox:
    """One endpoint's deliveries in memory.

    Args:
        memory: maximum number of deliveries in each part.
        share: maximum number of concurrent retries while first attempts are ready.
        retries: the part for retries.
        backlog: the part for deliveries left by an outage.
        holds: whether the circuit is open.
        held_upto: position of the last delivery held before the start.

    Attributes:
        given_up: how many times a conversation continued without a postponed delivery because the memory was
            full.
    """

    def __init__(
        self,
        memory: int,
        share: int,
        retries: Retries,
        backlog: Backlog,
        *,
        holds: bool = False,
        held_upto: int | None = None,
    ) -> None:
        self.backlog = backlog
        self.holds = holds
        self.given_up = 0
        self._memory = memory
        self._live = OrderedDeliveries()
        self._retries = retries
        self._cursor = 0
        self._newest = 0
        self._behind = True
        self._batch: RowBatch | None = None
        self._under_way: dict[int, _RunningAttempt] = {}
        self._share = share
        self._retrying = 0
        backlog.note_redelivery()
        if held_upto is not None and not holds:
            self.release(held_upto)

    @property
    def held(self) -> int:
        """The number of deliveries in memory."""
        return len(self._live.held) + len(self._retries.held) + len(self.backlog.ordered.held)

    def offer(self, delivery: Delivery) -> None:
        """Enqueue a committed delivery, or mark it to be loaded from the database."""
        if delivery.redelivery:
            self.backlog.note_redelivery()
            return
        if delivery.position <= self._cursor:
            return  # read by a batch already, or part of the backlog
        self._newest = max(self._newest, delivery.position)
        if self._behind or self.holds or len(self._live.held) >= self._memory:
            self._behind = True
        else:
            self._cursor = delivery.position
            self._live.add(delivery)

    def note_rows(self, upto: int) -> None:
        """Record that rows up to this position exist that were not offered.

        They may be for any endpoint.
        """
        self._newest = max(self._newest, upto)
        self._behind = self._behind or upto > self._cursor

    @property
    def newest(self) -> int | None:
        """The newest known position, None if none is known."""
        return self._newest or None

    def hold(self) -> None:
        """Drop all queued deliveries, because the circuit has opened."""
        self.holds = True
        self._batch = None
        for attempt in self._under_way.values():
            attempt.ordered = None
        self._live = OrderedDeliveries()
        self._retries.clear()
        self.backlog.clear()

    def release(self, upto: int) -> None:
        """Start sending again after the circuit has closed.

        Args:
            upto: pending deliveries up to this position are backlog, later ones are live.
        """
        self.holds = False
        self._batch = None
        self._cursor, self._newest, self._behind = upto, max(self._newest, upto), True
        self.backlog.begin_catch_up(upto)
        for attempt in self._under_way.values():  # started before the circuit opened
            if attempt.ordered is not None:  # its conversation was erased since the start
                attempt.ordered.ended(attempt.delivery.ordering_key)
            self._block_conversation(self.backlog.ordered, attempt)

    # Rows

    @property
    def wants_live_rows(self) -> bool:
        """True if there may be live rows to read, and enough room for a query.

        Enough is half of the memory, or an eighth if no delivery is ready to start.
        """
        room, needed = self._memory - len(self._live.held), self._memory // (2 if self._live else 8)
        return self._behind and not self.holds and self._batch is None and room >= max(1, needed)

    def wants_rows(self, now: int) -> bool:
        """Return whether there is a batch to read at `now` (ms)."""
        if self.holds or self._batch is not None:
            return False
        return self.wants_live_rows or self._retries.wants_rows(now) or self.backlog.wants_rows

    def wants_batch(self, now: int) -> RowBatch | None:
        """Return the batch to read at `now` (ms), if any.

        Call `end_batch` or `give_up_batch` afterwards.
        """
        if self.holds or self._batch is not None:
            return None
        backlog = self.backlog
        if self.wants_live_rows:
            self._batch = self._begin_batch(
                "live", self._cursor, POSITION_MAX, self._memory - len(self._live.held)
            )
        elif self._retries.wants_rows(now):
            rows = self._retries.begin_reading() + self.held + len(self._under_way)
            self._batch = self._begin_batch("retries", backlog.redelivered_after, self._cursor, rows)
        elif (kind := backlog.begin_batch()) is not None:
            after = backlog.held_after if kind == "held" else backlog.redelivered_after
            self._batch = self._begin_batch(
                kind, after, backlog.held_upto if kind == "held" else POSITION_MAX, backlog.room_for(kind)
            )
        return self._batch

    def end_batch(self, batch: RowBatch, rows: Sequence[Delivery], now: int, *, more: bool) -> None:
        """Add the rows of a batch.

        Without effect if the outbox has started to hold or to release since the batch was requested.

        Args:
            more: whether there may be further rows.
        """
        if self._batch is not batch:
            return
        self._batch = None
        rows = [with_event(row, batch.rewritten) for row in rows]
        last = None if not more else rows[-1].position if rows else batch.after
        new = [row for row in rows if self._is_new(row, batch)]
        match batch.part:
            case "live":
                self._add_rows(new, batch, last, now)
            case "retries":
                self._retries.end_reading(new, more=more, now=now)
            case "redeliveries" | "held":
                for row in new:
                    if _is_retry(row) and row.due_at > now:
                        self._retries.add(row, now)
                    else:  # failures before the outage's end must not count towards a new outage
                        self.backlog.ordered.add(
                            row if row.failing_since is None else replace(row, failing_since=None)
                        )
                self.backlog.end_batch(batch.part, last)
                if batch.part == "redeliveries" and rows:
                    self.backlog.redelivered_after = rows[-1].position
            case "missed":
                self.backlog.end_batch("missed", last)
            case "probe":
                pass
            case _:
                assert_never(batch.part)

    def give_up_batch(self, batch: RowBatch, now: int) -> None:
        """Record that a batch could not be read; its rows are still to be read."""
        if self._batch is batch:
            self._batch = None
            match batch.part:
                case "live" | "probe":
                    pass
                case "retries":
                    self._retries.give_up_reading(now)
                case "redeliveries" | "missed" | "held":
                    self.backlog.give_up_batch(batch.part)
                case _:
                    assert_never(batch.part)

    # Attempts

    def take_next(self, now: int, at: float) -> Delivery | None:
        """Return the delivery whose next attempt may start now, if any.

        Call `attempt_ended` or `repeat` afterwards.

        Args:
            now: milliseconds since the epoch.
            at: the same time in Trio's seconds.
        """
        self._retries.adjust_clock(now)
        backlog = self.backlog
        if self._live.next_due is not None or backlog.ordered.next_due is not None:
            self._resume(now)
        if backlog.urgent(at):
            return self._begin(backlog.take(at), backlog.ordered)
        ready, due = self._live.first(), self._retries.first(now)
        if due is not None and (
            ready is None or (due.due_at <= ready.due_at and self._retrying < self._share)
        ):
            self._retrying += 1
            return self._begin(self._retries.take(), None, retry=True)
        if ready is not None:
            return self._begin(self._live.take(), self._live)
        if backlog.may_start(at):
            return self._begin(backlog.take(at), backlog.ordered)
        return None

    def _resume(self, now: int) -> None:
        """Make due postponed deliveries ready; evict them if they fill the memory."""
        for part, room in ((self._live, self._memory), (self.backlog.ordered, self.backlog.capacity)):
            if not part and part.next_due is not None and len(part.held) > room - max(1, room // 8):
                for delivery in part.evict_postponed():
                    self.given_up += 1
                    self._retries.add(delivery, now)
            part.resume(now)

    def ask_for_probe(self) -> RowBatch:
        """Return the batch to read for a probe; call `take_probe` with its rows."""
        self._batch = self._begin_batch("probe", 0, POSITION_MAX, len(self._under_way) + 1)
        return self._batch

    def take_probe(self, batch: RowBatch, rows: Sequence[Delivery]) -> Delivery | None:
        """Take the first of these rows that is not running, as a probe.

        Returns None if there is none, or if the outbox was released since.
        """
        if self._batch is not batch:
            return None
        self._batch = None
        new = (with_event(row, batch.rewritten) for row in rows if self._is_new(row, batch))
        delivery = next(new, None)
        return None if delivery is None else self._begin(delivery, None)

    @property
    def under_way(self) -> int:
        """The number of started deliveries whose result is not recorded yet."""
        return len(self._under_way)

    def next_due(self) -> int | None:
        """Return when an attempt may start, in ms since the epoch.

        0 means now, None never. The backlog has its own time: `backlog.next_at`.
        """
        if self._live:
            return 0
        times = (self._retries.next_due(), self._live.next_due, self.backlog.ordered.next_due)
        return min((at for at in times if at is not None), default=None)

    @property
    def idle(self) -> bool:
        """True if the circuit is closed and no delivery is pending, as far as known."""
        return (
            not (
                self.holds
                or self._behind
                or self._batch is not None
                or self._under_way
                or self.held
                or self._retries.next_due() is not None
            )
            and self.backlog.empty
        )

    def expedite(self, position: int, now: int) -> None:
        """Make a waiting delivery due at once."""
        self._retries.make_due(position, now)

    def attempt_ended(self, delivery: Delivery) -> None:
        """Record that an attempt has ended; the next delivery with its key may start."""
        self._release_attempt(self._under_way[delivery.position])

    def repeat(self, delivery: Delivery, now: int) -> None:
        """Postpone a delivery whose recorded attempt does not count.

        Later deliveries with its key keep waiting.
        """
        under_way = self._under_way.pop(delivery.position)
        delivery = under_way.now(delivery)
        ordered, under_way.ordered = under_way.ordered, None
        self._release_attempt(under_way)
        if ordered is not None and delivery.position in ordered.held and not under_way.erased:
            ordered.postpone(delivery)
            return
        if ordered is not None:
            ordered.ended(delivery.ordering_key)
        self._discard(delivery.position)
        if not (under_way.erased or self.holds):
            self._retries.add(delivery, now)

    def retry(self, delivery: Delivery, now: int) -> None:
        """Keep a delivery whose attempt is recorded until its new `due_at`."""
        under_way = self._under_way.pop(delivery.position)
        delivery = under_way.now(delivery)
        self._release_attempt(under_way)
        self._discard(delivery.position)
        if not (under_way.erased or self.holds):
            self._retries.add(delivery, now)

    def end(self, delivery: Delivery) -> None:
        """Remove a delivery whose end is recorded."""
        self._release_attempt(self._under_way.pop(delivery.position))
        self._discard(delivery.position)

    def adjust_clock(self, now: int) -> None:
        """Adjust the retries to a clock that was set back; see `Retries.adjust_clock`."""
        self._retries.adjust_clock(now)

    def forget(self, conversations: frozenset[int]) -> None:
        """Remove all deliveries of erased conversations.

        Attempts that have sent bytes may finish, and the conversation's next delivery (its deletion event)
        waits for them.
        """
        if self._batch is not None:
            self._batch.erased |= conversations
        for part in (self._live, self.backlog.ordered, self._retries):
            gone = frozenset(n for n, row in part.held.items() if row.event.erased_with(conversations))
            if gone:
                part.forget(gone, conversations)
        for attempt in self._under_way.values():
            if attempt.delivery.event.erased_with(conversations) and not attempt.erased:
                attempt.erased = True
                self._block_conversation(self._live, attempt)

    def rewrite(self, events: Mapping[int, StoredEvent]) -> None:
        """Replace the content of these events, given by position."""
        if self._batch is not None:
            self._batch.rewritten |= events
        for part in (self._live, self.backlog.ordered, self._retries):
            part.rewrite(events)
        for attempt in self._under_way.values():
            attempt.delivery = with_event(attempt.delivery, events)

    def current_delivery(self, position: int) -> Delivery:
        """Return a running delivery with its current content.

        A different object after its event was rewritten.
        """
        return self._under_way[position].delivery

    def is_erased(self, position: int) -> bool:
        """Return whether the conversation of a running delivery was erased."""
        return self._under_way[position].erased

    def _begin(
        self, delivery: Delivery, ordered: OrderedDeliveries | None, *, retry: bool = False
    ) -> Delivery:
        self._under_way[delivery.position] = _RunningAttempt(delivery, ordered, retry)
        return delivery

    def _block_conversation(self, ordered: OrderedDeliveries, attempt: _RunningAttempt) -> None:
        """Make the next delivery of its conversation wait for a running attempt."""
        if attempt.delivery.ordering_key is not None:
            attempt.ordered = ordered
            ordered.block(attempt.delivery.ordering_key)

    def _release_attempt(self, under_way: _RunningAttempt) -> None:
        """Free the slot and the order of an ended attempt; later calls have no effect."""
        self.backlog.ended(under_way.delivery.position)
        if under_way.retry:
            under_way.retry = False
            self._retrying -= 1
        if under_way.ordered is not None:
            under_way.ordered.ended(under_way.delivery.ordering_key)
            under_way.ordered = None

    def _discard(self, position: int) -> None:
        for part in (self._live, self._retries, self.backlog.ordered):
            if part.held.pop(position, None) is not None:
                return

    def _begin_batch(self, part: OutboxPart, after: int, upto: int, limit: int) -> RowBatch:
        known = frozenset(
            (*self._live.held, *self._retries.held, *self.backlog.ordered.held, *self._under_way)
        )
        unread = (self.backlog.held_after, self.backlog.held_upto)
        return RowBatch(part, after, upto, unread, limit, self._newest, known)

    def _is_new(self, row: Delivery, batch: RowBatch) -> bool:
        return not row.event.erased_with(batch.erased) and row.position not in batch.known

    def _add_rows(self, rows: Sequence[Delivery], batch: RowBatch, last: int | None, now: int) -> None:
        """Add a batch of live rows.

        Args:
            last: the last position of the batch if there may be further rows.
        """
        for row in rows:
            if _is_retry(row):
                self._retries.add(row, now)
            else:
                self._live.add(row)
        if last is not None:
            self._cursor = last
        else:  # all rows known when reading started were in the batch or are gone
            self._cursor = max(self._cursor, batch.newest, *(row.position for row in rows[-1:]))
            self._newest = max(self._newest, self._cursor)
            self._behind = self._newest > self._cursor


def _is_retry(row: Delivery) -> bool:
    """Return whether a row is a retry that blocks no other delivery.

    It was sent before, and the endpoint was not paused for it.
    """
    return row.attempts > 0 or row.refusals >= SUSPECT_REFUSALS
