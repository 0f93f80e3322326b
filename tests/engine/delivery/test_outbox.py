"""Which deliveries may start: nothing lost, nothing twice, order and bound kept."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from deskwire.engine.deliveries import Delivery
from deskwire.engine.delivery.outbox import Outbox, Reading
from tests.engine.delivery.conftest import delivery


def started(outbox: Outbox, now: int = 0) -> list[int]:
    """The positions of all that may start now."""
    found = []
    while (ready := outbox.take_next(now)) is not None:
        found.append(ready.position)
    return found


def caught_up(memory: int = 100) -> Outbox:
    outbox = Outbox(memory)
    outbox.begin_reading()
    outbox.end_reading([])
    return outbox


def test_a_lane_goes_on_when_its_first_attempt_has_ended() -> None:
    """Decisions 6."""
    outbox = caught_up()
    for number in (1, 2, 3):
        outbox.offer(delivery(number))
    outbox.offer(delivery(4, lane=8))
    outbox.offer(delivery(5, lane=None))
    assert started(outbox) == [1, 4, 5]
    outbox.first_attempt_ended(delivery(1))
    assert started(outbox) == [2]


def test_retries_start_when_they_are_due_and_hold_nobody_up() -> None:
    outbox = caught_up()
    outbox.offer(delivery(1))
    outbox.take_next(0)
    outbox.first_attempt_ended(delivery(1))
    outbox.retry(delivery(1, attempts=1, due_at=2000))
    assert outbox.next_due() == 2000
    outbox.offer(delivery(2, due_at=1000))
    assert outbox.next_due() == 0
    assert started(outbox, 1999) == [2]
    assert started(outbox, 2000) == [1]
    assert outbox.next_due() is None


def test_a_clock_that_is_set_back_does_not_hold_up_retries() -> None:
    outbox = caught_up()
    for number in (1, 2):
        outbox.offer(delivery(number, lane=None))
    day = 86_400_000
    assert started(outbox, day) == [1, 2]
    outbox.retry(delivery(1, attempts=1, due_at=day + 6_000))
    outbox.retry(delivery(2, attempts=1, due_at=day + 2_000))
    assert started(outbox, 100) == []
    assert outbox.next_due() == 2_000 + 100
    assert started(outbox, 2_100) == [2]
    assert started(outbox, 6_100) == [1]


def test_what_has_been_due_longest_starts_first() -> None:
    outbox = caught_up()
    outbox.begin_reading()
    outbox.end_reading([delivery(1, lane=1, attempts=1, due_at=500), delivery(2, lane=2, due_at=400)])
    outbox.offer(delivery(3, lane=3, due_at=600))
    assert started(outbox, 1000) == [2, 1, 3]


def test_the_first_rows_are_read_before_anything_is_taken_in() -> None:
    outbox = Outbox(10)
    outbox.offer(delivery(5))
    assert started(outbox) == []
    assert outbox.wants_rows
    reading = outbox.begin_reading()
    assert (reading.after, reading.limit) == (0, 10)
    outbox.end_reading([delivery(4), delivery(5)])
    outbox.offer(delivery(5))
    assert not outbox.wants_rows
    assert outbox.held == 2


def test_a_commit_that_a_reading_has_missed_is_read_again() -> None:
    outbox = Outbox(10)
    outbox.begin_reading()
    outbox.offer(delivery(5))
    outbox.end_reading([])
    assert outbox.wants_rows
    assert outbox.begin_reading().after == 0


def test_known_deliveries_that_a_reading_finds_gone_are_not_read_for_again() -> None:
    outbox = Outbox(10)
    outbox.offer(delivery(5))
    outbox.begin_reading()
    outbox.end_reading([])
    assert not outbox.wants_rows


def test_a_delivery_that_a_page_has_brought_is_not_taken_in_again() -> None:
    outbox = Outbox(10)
    outbox.begin_reading()
    outbox.end_reading([delivery(1, lane=None)])
    outbox.offer(delivery(1, lane=None))
    assert started(outbox) == [1]


def test_an_attempt_that_ends_after_its_conversation_was_erased_is_not_retried() -> None:
    """Decisions 4."""
    outbox = caught_up()
    outbox.offer(delivery(1))
    outbox.take_next(0)
    outbox.forget(frozenset({7}))
    outbox.first_attempt_ended(delivery(1))
    outbox.retry(delivery(1, attempts=1, due_at=5))
    assert started(outbox, 10) == []


def test_rows_of_a_conversation_erased_during_the_reading_are_left_out() -> None:
    """Decisions 4."""
    outbox = Outbox(10)
    outbox.begin_reading()
    outbox.forget(frozenset({7}))
    outbox.end_reading([delivery(1), delivery(2, lane=8)])
    assert started(outbox) == [2]


def test_a_reading_that_failed_is_begun_again_at_the_same_place() -> None:
    outbox = Outbox(10)
    outbox.begin_reading()
    outbox.give_up_reading()
    assert outbox.wants_rows
    assert outbox.begin_reading().after == 0


class Deliveries(RuleBasedStateMachine):
    """An outbox beside a model of the table that its rows are in; commits are told some time later."""

    @initialize(memory=st.integers(1, 6))
    def start(self, memory: int) -> None:
        self.memory = memory
        self.now = 0
        self.table: dict[int, Delivery] = {}
        self.untold: list[Delivery] = []
        self.first: dict[int | None, list[int]] = {}
        self.lanes: list[int | None] = [None, 1, 2, 3]
        self.restart()

    @rule()
    def restart(self) -> None:
        self.outbox = Outbox(self.memory)
        self.flight: dict[int, Delivery] = {}
        self.page: tuple[Reading, list[Delivery]] | None = None
        self.first = {}

    @rule(which=st.integers(0, 3), count=st.integers(1, 4))
    def commit(self, which: int, count: int) -> None:
        for _ in range(count):
            position = len(self.table) + 1
            made = delivery(position, lane=self.lanes[which], due_at=self.now)
            self.table[position] = made
            self.untold.append(made)

    @rule()
    def tell(self) -> None:
        for made in self.untold:
            self.outbox.offer(made)
        self.untold.clear()

    @precondition(lambda self: self.page is None and self.outbox.wants_rows)
    @rule()
    def begin_reading(self) -> None:
        reading = self.outbox.begin_reading()
        rows = [row for position, row in self.table.items() if position > reading.after and self.open(row)]
        self.page = (reading, rows[: reading.limit])

    @precondition(lambda self: self.page is not None)
    @rule()
    def end_reading(self) -> None:
        assert self.page is not None
        self.outbox.end_reading(self.page[1])
        self.page = None

    @precondition(lambda self: self.page is not None)
    @rule()
    def fail_reading(self) -> None:
        self.outbox.give_up_reading()
        self.page = None

    @rule(wait=st.integers(0, 5))
    def take(self, wait: int) -> None:
        self.now += wait
        taken = self.outbox.take_next(self.now)
        if taken is None:
            return
        assert taken.position not in self.flight, "started twice"
        assert taken == self.table[taken.position], "started as it is not stored"
        assert self.open(taken), "started after its end"
        if taken.attempts == 0:
            begun = self.first.setdefault(taken.lane, [])
            assert taken.position not in begun, "first attempt made twice"
            if taken.lane is not None:
                assert not begun or begun[-1] < taken.position, "order broken"
                in_flight = [d for d in self.flight.values() if d.lane == taken.lane and d.attempts == 0]
                assert not in_flight, "started beside the previous first attempt of its lane"
            begun.append(taken.position)
        else:
            assert taken.due_at <= self.now, "retried too early"
        self.flight[taken.position] = taken

    @precondition(lambda self: self.flight)
    @rule(data=st.data(), success=st.booleans())
    def finish(self, data: st.DataObject, success: bool) -> None:
        """Record a result: a commit of its own, so all that was committed before has been told by then."""
        done = self.flight.pop(data.draw(st.sampled_from(sorted(self.flight))))
        if done.attempts == 0:
            self.outbox.first_attempt_ended(done)
        self.tell()
        if success or done.attempts == 3 or not self.open(self.table[done.position]):
            self.outbox.end(done)
            self.table[done.position] = replace(done, attempts=99)
        else:
            again = done.after_attempt(self.now + 3)
            self.table[done.position] = again
            self.outbox.retry(again)

    @rule(which=st.integers(1, 3))
    def erase(self, which: int) -> None:
        """Erase a conversation; its key is not given to another one (AUTOINCREMENT)."""
        lane, self.lanes[which] = self.lanes[which], max(lane or 0 for lane in self.lanes) + 1
        assert lane is not None
        for position, row in self.table.items():
            if row.lane == lane and self.open(row):
                self.table[position] = replace(row, attempts=99)
        self.untold = [made for made in self.untold if made.lane != lane]
        self.outbox.forget(frozenset({lane}))

    @invariant()
    def bound_is_kept(self) -> None:
        if hasattr(self, "outbox"):
            assert self.outbox.held <= self.memory

    def teardown(self) -> None:
        """However it came to this, all that is pending is sent in the end."""
        if not hasattr(self, "outbox"):
            return
        if self.page is not None:
            self.end_reading()
        self.tell()
        for _ in range(len(self.table) * 8 + 8):
            if self.outbox.wants_rows:
                self.begin_reading()
                self.end_reading()
            self.take(3)
            if self.flight:
                done = self.flight.pop(min(self.flight))
                if done.attempts == 0:
                    self.outbox.first_attempt_ended(done)
                self.outbox.end(done)
                self.table[done.position] = replace(done, attempts=99)
        assert not [row.position for row in self.table.values() if self.open(row)], "lost"
        assert self.outbox.held == 0

    @staticmethod
    def open(row: Delivery) -> bool:
        return row.attempts < 99


TestDeliveries = Deliveries.TestCase
TestDeliveries.settings = settings(max_examples=300, stateful_step_count=60, deadline=None)
