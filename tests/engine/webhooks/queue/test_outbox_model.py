"""An outbox against a model of its rows: no loss, no duplicate, and in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.queue.backlog import Backlog
from deskwire.engine.webhooks.queue.outbox import Outbox, RowBatch
from deskwire.engine.webhooks.queue.retries import Retries
from tests.engine.webhooks.queue.rows import Table, Told

pytestmark = pytest.mark.thorough

RETRY_MS: Final = 4
PAUSE_MS: Final = 9
AHEAD_MAX_MS: Final = 20
ATTEMPTS: Final = 4

Outcome = Literal["good", "failed", "failed and opened", "paused"]
Part = Literal["live", "backlog"]
Line = tuple[Part, int | None]


@dataclass
class Sent:
    """An attempt from its start until its result is recorded.

    Args:
        part: the queue whose order it follows; None for a retry and for a probe.
        planned: the row with its next attempt; None if there is none, or the attempt has not ended.
    """

    row: Delivery
    part: Part | None
    ended: bool = False
    good: bool = False
    planned: Delivery | None = None

    @property
    def repeats(self) -> bool:
        return self.planned is not None and self.planned.attempts == self.row.attempts


class Deliveries(RuleBasedStateMachine):
    """Drives the outbox as a worker does.

    Announcing, reading and recording happen later.
    """

    @initialize(memory=st.integers(1, 6), share=st.integers(1, 3), room=st.integers(1, 6))
    def start(self, memory: int, share: int, room: int) -> None:
        self.memory, self.share, self.room = memory, share, room
        self.now = self.at = 1000
        self.table = Table()
        self.conversations: list[int | None] = [None, 1, 2, 3]
        self.opened = False
        self.restart()

    @rule()
    def restart(self) -> None:
        """Crash: deliveries that were sent and not recorded may be sent again."""
        self.table.untold.clear()
        held_upto = self.table.held_upto
        self.outbox = Outbox(
            self.memory,
            self.share,
            Retries(self.memory, AHEAD_MAX_MS),
            Backlog(1000, self.share, self.room),
            holds=self.opened,
            held_upto=held_upto,
        )
        self.release_due = False
        self.release_upto: int | None = None
        self.upto = 0 if self.opened else held_upto or 0
        self.flight: dict[int, Sent] = {}
        self.recorded: list[tuple[Sent, bool]] | None = None
        self.released: int | None = None
        self.told_before = 0
        self.batch: RowBatch | None = None
        self.found: Sequence[Delivery] | None = None
        self.made: dict[int, int] = {}
        self.repeated: set[int] = set()
        self.brought: set[int] = set()
        self.exempt_from_due = set(self.table.rows)
        self.forget_order()

    def forget_order(self) -> None:
        """Start a new order for the deliveries to come."""
        self.newest: dict[tuple[Line, bool], int] = {}
        self.current: dict[Line, int] = {}
        self.waits_for: dict[Line, set[int]] = {}

    # Commits and their announcements

    @rule(which=st.integers(0, 3), count=st.integers(1, 4))
    def commit(self, which: int, count: int) -> None:
        self.table.commit([self.conversations[which]] * count, self.now)

    @rule(which=st.integers(1, 3))
    def erase(self, which: int) -> None:
        """Erase a conversation; its key is never reused (AUTOINCREMENT)."""
        conversation, self.conversations[which] = (
            self.conversations[which],
            max(conversation or 0 for conversation in self.conversations) + 1,
        )
        assert conversation is not None
        self.table.erase(conversation, self.now)

    @precondition(lambda self: self.over())
    @rule(data=st.data())
    def ask_for_a_redelivery(self, data: st.DataObject) -> None:
        self.table.redeliver(data.draw(st.sampled_from(self.over())), self.now)

    def over(self) -> list[int]:
        return [
            at
            for at, row in self.table.rows.items()
            if at not in self.table.pending and row.ordering_key in self.conversations
        ]

    @rule()
    def tell(self) -> None:
        self.tell_first(len(self.table.untold))

    def tell_first(self, count: int) -> None:
        told, self.table.untold = self.table.untold[:count], self.table.untold[count:]
        for each in told:
            if each.erased:
                self.outbox.forget(each.erased)
                self.heed_erasure(each)
            for row in each.made:
                self.outbox.offer(row)

    def heed_erasure(self, told: Told) -> None:
        """Make the deletion wait for running attempts of its conversation.

        Unless a batch has read it before.
        """
        (conversation,), (deletion,) = told.erased, told.made
        self.current = {where: at for where, at in self.current.items() if where[1] != conversation}
        if deletion.position not in self.brought:
            under_way = {
                at for at, sent in self.flight.items() if sent.row.event.conversation == conversation
            }
            self.waits_for.setdefault(("live", conversation), set()).update(under_way)

    # Rows

    @precondition(lambda self: self.batch is None)
    @rule(at_once=st.booleans())
    def ask_for_a_batch(self, at_once: bool) -> None:
        """Read rows as of the request, the answer, or a moment in between."""
        self.batch = self.outbox.wants_batch(self.now)
        assert self.batch is None or self.batch.limit > 0
        if at_once:
            self.read_batch()

    @precondition(lambda self: self.batch is not None and self.found is None)
    @rule()
    def read_batch(self) -> None:
        if self.batch is not None and self.batch.part == "missed":
            self.found = [*self.table.rows.values()][: self.table.catch_up(self.batch.limit, self.now)]
        elif self.batch is not None and self.batch.part == "probe":
            self.found = self.table.oldest(self.batch.limit)
        elif self.batch is not None:
            self.found = self.table.read(self.batch)

    @precondition(lambda self: self.batch is not None)
    @rule()
    def end_batch(self) -> None:
        if self.found is None:
            self.read_batch()
        batch, self.batch, found, self.found = self.batch, None, self.found, None
        assert batch is not None
        assert found is not None
        if batch.part == "probe":
            return self.probe(batch, found)
        rows = [] if batch.part == "missed" else found
        self.brought.update(row.position for row in rows)
        self.outbox.end_batch(batch, rows, self.now, more=len(found) == batch.limit)

    @precondition(lambda self: self.batch is not None)
    @rule()
    def fail_batch(self) -> None:
        assert self.batch is not None
        self.outbox.give_up_batch(self.batch, self.now)
        self.batch = self.found = None

    # Attempts

    @rule(wait=st.integers(0, 5))
    def take(self, wait: int) -> None:
        self.now, self.at = self.now + wait, self.at + wait
        given_up = self.outbox.given_up
        taken = None if self.outbox.holds else self.outbox.take_next(self.now, self.at / 1000)
        if self.outbox.given_up > given_up:  # conversations that wait for a repeated attempt continue
            resting = self.repeated - self.flight.keys()
            self.current = {line: at for line, at in self.current.items() if at not in resting}
        if taken is not None:
            self.check_due(taken)
            part = self.part(taken)
            if part is not None and taken.ordering_key is not None:
                self.check_order((part, taken.ordering_key), taken)
            self.begin(taken, part)

    @precondition(lambda self: self.opened and self.outbox.holds and self.batch is None)
    @rule(at_once=st.booleans())
    def ask_for_a_probe(self, at_once: bool) -> None:
        self.release_upto = self.outbox.newest
        self.batch = self.outbox.ask_for_probe()
        if at_once:
            self.read_batch()

    def probe(self, batch: RowBatch, rows: Sequence[Delivery]) -> None:
        """Send a probe, unless the circuit has closed since."""
        found = self.outbox.take_probe(batch, rows)
        if found is not None and self.opened:
            self.begin(found, None)
        elif found is not None:
            self.outbox.repeat(found, self.now)

    def begin(self, taken: Delivery, part: Part | None) -> None:
        position = taken.position
        assert position not in self.flight, "started twice"
        if not self.table.untold_erasure(taken):
            assert position in self.table.pending, "started after its end"
            stored = replace(self.table.rows[position], failing_since=taken.failing_since)
            assert taken == stored, "started as it is not stored"
        again = taken.attempts + (position in self.repeated)
        assert self.made.get(position, -1) < again, "the same attempt made twice"
        self.made[position] = taken.attempts
        self.flight[position] = Sent(taken, part)

    def check_due(self, taken: Delivery) -> None:
        """Check that a retry is not early.

        The check allows for a clock set back, and for the endpoint's pauses.
        """
        if taken.position not in self.exempt_from_due | self.repeated:
            assert taken.due_at <= self.now, "retried too early"

    def part(self, taken: Delivery) -> Part | None:
        if taken.attempts:
            return None
        return "backlog" if taken.redelivery or taken.position <= self.upto else "live"

    def check_order(self, conversation: Line, taken: Delivery) -> None:
        position = taken.position
        again = position in self.repeated or bool(taken.refusals)
        if again and self.current.get(conversation) != position:
            return  # after a probe, or because its conversation has continued, it is a retry
        assert self.current.get(conversation) in (None, position), (
            "started beside the one before it in its conversation"
        )
        assert not self.waits_for.get(conversation), "started beside an attempt that it has to wait for"
        assert self.newest.get((conversation, taken.redelivery), 0) <= position, "order broken"
        self.newest[conversation, taken.redelivery] = self.current[conversation] = position

    def running(self) -> list[int]:
        return sorted(at for at, sent in self.flight.items() if not sent.ended)

    @precondition(lambda self: self.running())
    @rule(
        data=st.data(), outcome=st.sampled_from(["good", "failed", "failed", "failed and opened", "paused"])
    )
    def end_attempt(self, data: st.DataObject, outcome: Outcome) -> None:
        self.attempt_ended(data.draw(st.sampled_from(self.running())), outcome)

    def attempt_ended(self, position: int, outcome: Outcome) -> None:
        """End an attempt, which may open or close the circuit."""
        sent = self.flight[position]
        sent.ended, sent.good = True, outcome == "good"
        sent.planned = self.planned(sent.row, outcome)
        if outcome == "good":
            self.outbox.backlog.missed = self.outbox.backlog.missed or bool(self.table.missed)
            self.release_due, self.opened = self.release_due or self.opened, False
        elif outcome == "failed and opened" and not self.opened:
            self.release_due, self.opened = False, True
            self.outbox.hold()
            self.forget_order()
        if not sent.repeats:
            self.outbox.attempt_ended(sent.row)
            self.current = {conversation: at for conversation, at in self.current.items() if at != position}
            self.nobody_waits_for(position)

    @staticmethod
    def planned(row: Delivery, outcome: Outcome) -> Delivery | None:
        """Return the row with its new plan, which is due now until it is recorded."""
        if outcome == "good" or (outcome != "paused" and row.attempts + 1 == ATTEMPTS):
            return None
        paused = outcome == "paused"
        due_at = PAUSE_MS if paused else RETRY_MS
        refusals = min(row.refusals + paused, 3)
        return replace(
            row, attempts=row.attempts + (not paused), due_at=due_at, planned_from=1, refusals=refusals
        )

    def nobody_waits_for(self, position: int) -> None:
        for waited_for in self.waits_for.values():
            waited_for.discard(position)

    # Results

    @precondition(lambda self: self.recorded is None)
    @rule(missed=st.booleans())
    def record(self, missed: bool) -> None:
        """Store all collected results in one commit, and that the circuit has closed."""
        self.recorded = [
            (sent, self.stored(sent, missed=missed)) for sent in self.flight.values() if sent.ended
        ]
        if self.release_due:
            newest = max(self.table.pending, default=0)
            self.released = newest if self.release_upto is None else self.release_upto
            self.table.held_upto = self.released
        self.told_before = self.table.commits

    def stored(self, sent: Sent, *, missed: bool) -> bool:
        """Store a result; False if the row no longer waits for it."""
        position = sent.row.position
        if position not in self.table.pending:
            return False
        if sent.planned is not None:
            sent.planned = replace(sent.planned, due_at=self.now + sent.planned.due_at)
            self.exempt_from_due.discard(position)
            self.table.rows[position] = sent.planned
        else:
            self.table.pending.discard(position)
            self.table.missed |= {position} if missed and not sent.good else set()
        return True

    @precondition(lambda self: self.recorded is not None)
    @rule()
    def settle(self) -> None:
        """Announce recorded results after earlier commits."""
        told = self.table.commits - len(self.table.untold)
        self.tell_first(max(0, self.told_before - told))
        recorded, self.recorded, released, self.released = self.recorded, None, self.released, None
        assert recorded is not None
        for sent, kept in recorded:
            self.settle_one(sent, sent.planned if kept else None)
        if released is not None and not self.opened:
            self.release(released)

    def settle_one(self, sent: Sent, planned: Delivery | None) -> None:
        position = sent.row.position
        del self.flight[position]
        self.outbox.adjust_clock(self.now)
        if planned is None:
            self.outbox.end(sent.row)
        elif sent.repeats:
            self.repeated.add(position)
            self.outbox.repeat(planned, self.now)
        else:
            self.repeated.discard(position)
            self.outbox.retry(planned, self.now)
        self.nobody_waits_for(position)

    def release(self, upto: int) -> None:
        self.release_due, self.upto = False, upto
        self.outbox.release(upto)
        self.forget_order()
        for position, sent in self.flight.items():
            self.waits_for.setdefault(("backlog", sent.row.ordering_key), set()).add(position)

    # Time

    @precondition(lambda self: self.opened and not self.flight and self.batch is None)
    @rule(count=st.integers(1, 4))
    def end_too_old(self, count: int) -> None:
        self.table.pending -= set(sorted(self.table.pending)[:count])

    @rule(back=st.integers(1, 1000))
    def set_clock_back(self, back: int) -> None:
        self.now -= back
        self.exempt_from_due = set(self.table.rows)

    @invariant()
    def bounds_are_kept(self) -> None:
        if hasattr(self, "outbox"):
            assert self.outbox.held <= 2 * self.memory + self.room
            assert len(self.outbox.backlog.ordered.held) <= self.room

    def teardown(self) -> None:
        """Check that all pending deliveries are sent in the end, after one more success."""
        if hasattr(self, "outbox"):
            self.table.commit([None], self.now)
            for _ in range(len(self.table.rows) * 12 + 24):
                if self.quiet():
                    break
                self.do_well()
            assert not self.table.pending, "lost"
            assert not self.table.missed, "missed and not repeated"
            assert self.quiet()
            assert self.outbox.under_way == 0

    def quiet(self) -> bool:
        table, outbox = self.table, self.outbox
        at_rest = (outbox.held, outbox.next_due(), outbox.backlog.empty) == (0, None, True)
        under_way = self.flight or self.batch is not None or self.recorded is not None or self.release_due
        return at_rest and not (under_way or table.pending or table.missed or table.untold)

    def do_well(self) -> None:
        """Do everything possible at this moment, without failures."""
        self.tell()
        if self.batch is None and self.opened and self.outbox.holds:
            self.ask_for_a_probe(at_once=False)
        elif self.batch is None:
            self.ask_for_a_batch(at_once=False)
        if self.batch is not None:
            self.end_batch()
        self.take(AHEAD_MAX_MS)
        for position in self.running():
            self.attempt_ended(position, "good")
        if self.recorded is None:
            self.record(missed=False)
        self.settle()


TestDeliveries = Deliveries.TestCase
TestDeliveries.settings = settings(max_examples=200, stateful_step_count=60)
