"""The deliveries to one endpoint in memory, and which of them may start now; no waiting, no I/O.

Rows are the truth; this is a window on them, of bounded size, in three parts:

- *Live*: first attempts. Those of one conversation start in the order of their positions, each when the previous one's
  has ended, well or badly (`ordering`). The cursor is the position up to which all were taken in, erased or ended. As long
  as it is at the newest known position, new deliveries are taken in as they are offered. Once there is no room for one,
  or at the start, the window is *behind*: what is offered is only noted, and the rows behind the cursor are read, batch
  by batch, until a batch brings the cursor to the newest known position again.
- *Retries*: they start when they are due, in no order, and hold up nothing; while first attempts are ready they have
  a share of the places alone (`retries`).
- The *backlog*: what an outage left behind, and all redeliveries (`backlog`).

A delivery whose receiver has asked for a pause goes last after it (`ordering`), and holds up its conversation. If such conversations fill
the memory, so that nothing else can be read, they go on without it, and it becomes a retry.

While the circuit is open the outbox *holds*: it has nothing in memory but what is still under way, and notes that rows
come. When the circuit was closed, what is pending by then is backlog, and what is committed later is live.

A row is read by one part only: live reads behind its cursor, retries before it, the backlog its own range and
redeliveries. A row that was in memory when a batch was asked for is not taken from that batch: it may have ended since.
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

POSITION_MAX: Final = 2**63 - 1
"""Behind all positions."""

OutboxPart = Literal["live", "retries", "redeliveries", "missed", "held", "probe"]


class RowBatch(Struct):
    """A batch of rows that is being read.

    Args:
        part: the part that the rows are for.
        after, upto: positions between which they are; for retries `after` is that of the newest redelivery read.
        unread: for retries, the positions between which held deliveries are still to be read; none of those.
        limit: number of rows that are read at most.
        newest: the newest position that was known when the reading began.
        known: positions that were in memory then.
        erased: conversations that were erased since.
        rewritten: events that were rewritten since, by their positions.
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


class _UnderWay(Struct):
    """A delivery from the begin of its attempt until the result is recorded.

    Args:
        ordered: the order in which the next one with its ordering key waits for the attempt's end, if one does.
        retry: whether it is a retry under way.
        erased: whether its conversation was erased meanwhile.
    """

    delivery: Delivery
    ordered: OrderedDeliveries | None
    retry: bool
    erased: bool = False

    def now(self, planned: Delivery) -> Delivery:
        """Return the delivery as it is planned to go on, with its event as that is now."""
        event = self.delivery.event
        return planned if planned.event is event else replace(planned, event=event)


class Outbox:
    """One endpoint's deliveries in memory.

    Args:
        memory: number of deliveries that each part holds at most.
        share: number of retries that are under way at the same time at most, while first attempts are ready.
        retries: the part for retries.
        backlog: the part for what an outage left behind.
        holds: whether the circuit is open.
        held_upto: the position up to which deliveries were held before the start.

    Attributes:
        given_up: how many conversations went on without a delivery that they had waited for, as they filled the memory.
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
        self._under_way: dict[int, _UnderWay] = {}
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
        """Take in a delivery that was just committed, or note that its row is to be read later."""
        if delivery.redelivery:
            self.backlog.note_redelivery()
            return
        if delivery.position <= self._cursor:
            return  # a batch has brought it already, or it belongs to the backlog
        self._newest = max(self._newest, delivery.position)
        if self._behind or self.holds or len(self._live.held) >= self._memory:
            self._behind = True
        else:
            self._cursor = delivery.position
            self._live.add(delivery)

    def note_rows(self, upto: int) -> None:
        """Take note that rows up to this position are stored, whichever endpoints they are for, and were not offered."""
        self._newest = max(self._newest, upto)
        self._behind = self._behind or upto > self._cursor

    @property
    def newest(self) -> int | None:
        """The newest position that is known of, None if none is."""
        return self._newest or None

    def hold(self) -> None:
        """Let go of all that is not under way: the circuit was opened, and rows are all that is needed."""
        self.holds = True
        self._batch = None
        for attempt in self._under_way.values():
            attempt.ordered = None
        self._live = OrderedDeliveries()
        self._retries.clear()
        self.backlog.clear()

    def release(self, upto: int) -> None:
        """Send again: deliveries that are pending up to this position are backlog, later ones are live."""
        self.holds = False
        self._batch = None
        self._cursor, self._newest, self._behind = upto, max(self._newest, upto), True
        self.backlog.begin_catch_up(upto)
        for attempt in self._under_way.values():  # begun before the circuit was opened
            if attempt.ordered is not None:  # its conversation was erased since
                attempt.ordered.ended(attempt.delivery.ordering_key)
            self._block_conversation(self.backlog.ordered, attempt)

    # Rows

    @property
    def wants_live_rows(self) -> bool:
        """Return whether there may be live rows to read, and enough room to make it worth a query.

        Half the memory is enough; an eighth, when nothing is ready to start.
        """
        room, needed = self._memory - len(self._live.held), self._memory // (2 if self._live else 8)
        return self._behind and not self.holds and self._batch is None and room >= max(1, needed)

    def wants_rows(self, now: int) -> bool:
        """Return whether there is a batch to read at `now` (ms)."""
        if self.holds or self._batch is not None:
            return False
        return self.wants_live_rows or self._retries.wants_rows(now) or self.backlog.wants_rows

    def wants_batch(self, now: int) -> RowBatch | None:
        """Return the batch to read at `now` (ms), if any; `end_batch` or `give_up_batch` must follow."""
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
        """Take in the rows of a batch; `more` says that there may be others behind it.

        Without effect if the outbox was told to hold or to release meanwhile.
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
                    else:  # its earlier failures are over: only coming ones say whether there is an outage
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
        """Take note that a batch could not be read; its rows are still to be read."""
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

        `attempt_ended` or `repeat` must follow.

        Args:
            now: in milliseconds since the epoch.
            at: the same moment in Trio's seconds.
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
        """Have what was postponed start again: what is due, and what waits for a conversation that fills the memory."""
        for part, room in ((self._live, self._memory), (self.backlog.ordered, self.backlog.capacity)):
            if not part and part.next_due is not None and len(part.held) > room - max(1, room // 8):
                for delivery in part.evict_postponed():
                    self.given_up += 1
                    self._retries.add(delivery, now)
            part.resume(now)

    def ask_for_probe(self) -> RowBatch:
        """Return the batch to read for a probe; `take_probe` must follow, if it can be read."""
        self._batch = self._begin_batch("probe", 0, POSITION_MAX, len(self._under_way) + 1)
        return self._batch

    def take_probe(self, batch: RowBatch, rows: Sequence[Delivery]) -> Delivery | None:
        """Take the first of these rows that was not under way, for a probe.

        None also if the outbox was told to release meanwhile.
        """
        if self._batch is not batch:
            return None
        self._batch = None
        new = (with_event(row, batch.rewritten) for row in rows if self._is_new(row, batch))
        delivery = next(new, None)
        return None if delivery is None else self._begin(delivery, None)

    @property
    def under_way(self) -> int:
        """The number of deliveries that were started and are not recorded yet."""
        return len(self._under_way)

    def next_due(self) -> int | None:
        """Return the time at which there is something to start, in ms since the epoch: 0 for at once, None for never.

        The backlog has a time of its own: `backlog.next_at`.
        """
        if self._live:
            return 0
        times = (self._retries.next_due(), self._live.next_due, self.backlog.ordered.next_due)
        return min((at for at in times if at is not None), default=None)

    @property
    def idle(self) -> bool:
        """True if the circuit is closed and nothing is pending, as far as is known."""
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
        """Make the next attempt at a delivery at once, if it waits for one."""
        self._retries.make_due(position, now)

    def attempt_ended(self, delivery: Delivery) -> None:
        """Take note that an attempt has ended for good: the next delivery with its ordering key may start."""
        self._release_attempt(self._under_way[delivery.position])

    def repeat(self, delivery: Delivery, now: int) -> None:
        """Make an attempt again whose end is recorded; others with its ordering key go on waiting for it."""
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
        """Let go of a delivery whose end is recorded."""
        self._release_attempt(self._under_way.pop(delivery.position))
        self._discard(delivery.position)

    def adjust_clock(self, now: int) -> None:
        """Move the retries' times with a clock that was set back; see `Retries.adjust_clock`."""
        self._retries.adjust_clock(now)

    def forget(self, conversations: frozenset[int]) -> None:
        """Let go of all deliveries of erased conversations.

        Attempts of which something was sent may still end, and what comes next of the conversation waits for them: its
        deletion.
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
        """Send these events, by their positions, as they are now."""
        if self._batch is not None:
            self._batch.rewritten |= events
        for part in (self._live, self.backlog.ordered, self._retries):
            part.rewrite(events)
        for attempt in self._under_way.values():
            attempt.delivery = with_event(attempt.delivery, events)

    def current_delivery(self, position: int) -> Delivery:
        """Return a delivery that was started as it is now: another one than it was once its event was rewritten."""
        return self._under_way[position].delivery

    def is_erased(self, position: int) -> bool:
        """Tell whether a delivery that was started is of a conversation that was erased since."""
        return self._under_way[position].erased

    def _begin(
        self, delivery: Delivery, ordered: OrderedDeliveries | None, *, retry: bool = False
    ) -> Delivery:
        self._under_way[delivery.position] = _UnderWay(delivery, ordered, retry)
        return delivery

    def _block_conversation(self, ordered: OrderedDeliveries, attempt: _UnderWay) -> None:
        """Let the next delivery of its conversation in this order wait for what is under way."""
        if attempt.delivery.ordering_key is not None:
            attempt.ordered = ordered
            ordered.block(attempt.delivery.ordering_key)

    def _release_attempt(self, under_way: _UnderWay) -> None:
        """Take note that an attempt has ended, once or again."""
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
        """Take in a batch of live rows; `last` is its last position if there may be more."""
        for row in rows:
            if _is_retry(row):
                self._retries.add(row, now)
            else:
                self._live.add(row)
        if last is not None:
            self._cursor = last
        else:  # all rows that were known when the reading began are in it, or are gone
            self._cursor = max(self._cursor, batch.newest, *(row.position for row in rows[-1:]))
            self._newest = max(self._newest, self._cursor)
            self._behind = self._newest > self._cursor


def _is_retry(row: Delivery) -> bool:
    """Return whether nothing waits for a row: it was sent, and the endpoint was not paused for it."""
    return row.attempts > 0 or row.refusals >= SUSPECT_REFUSALS
