"""The outbox with an open circuit and after an outage (decisions 6)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.queue.outbox import POSITION_MAX, Outbox
from tests.engine.webhooks.queue.boxes import (
    again,
    caught_up,
    deletion,
    end,
    fail,
    offered,
    outbox_of,
    read,
    released,
    repeated,
    retry,
    take,
)
from tests.support.sockets.receivers import delivery

# An open circuit


def test_while_it_holds_nothing_is_in_memory_and_nothing_starts() -> None:
    outbox = caught_up()
    first, *_ = offered(outbox, delivery(1), delivery(2), delivery(3, 8))
    assert take(outbox) == [1, 3]
    outbox.hold()
    offered(outbox, delivery(4, 9), again(5, 9))
    fail(outbox, first, 1_000)
    assert (outbox.held, outbox.under_way, outbox.wants_batch(2_000)) == (0, 1, None)
    assert (take(outbox, 2_000), outbox.next_due(), outbox.newest) == ([], None, 4)


def test_a_probe_is_the_oldest_that_is_not_under_way() -> None:
    outbox = caught_up()
    rows = offered(outbox, delivery(1), delivery(2, 8), delivery(3, 9))
    assert outbox.take_next(0, 0.0) == rows[0]
    outbox.hold()
    assert probed(outbox, rows) == rows[1]
    assert probed(outbox, rows[:2]) is None
    assert outbox.under_way == 2


def probed(outbox: Outbox, rows: Sequence[Delivery]) -> Delivery | None:
    batch = outbox.ask_for_probe()
    assert (batch.after, batch.limit) == (0, outbox.under_way + 1)
    return outbox.take_probe(batch, rows)


def test_a_probe_skips_deliveries_ended_since_its_request() -> None:
    """The rows are older than the end."""
    outbox = caught_up()
    rows = offered(outbox, delivery(1), delivery(2, 8))
    assert outbox.take_next(0, 1.0) == rows[0]
    outbox.hold()
    batch = outbox.ask_for_probe()
    end(outbox, rows[0])
    assert outbox.take_probe(batch, rows) == rows[1]


def test_a_probe_skips_conversations_erased_since_its_request() -> None:
    """Decisions 4."""
    outbox = outbox_of(holds=True)
    batch = outbox.ask_for_probe()
    outbox.forget(frozenset({7}))
    assert outbox.take_probe(batch, [delivery(1), delivery(2, 8)]) == delivery(2, 8)


def test_no_probe_is_taken_once_the_circuit_was_closed() -> None:
    outbox = outbox_of(holds=True)
    batch = outbox.ask_for_probe()
    outbox.release(1)
    assert outbox.take_probe(batch, [delivery(1)]) is None
    assert read(outbox).part == "live"


def test_a_batch_requested_before_the_circuit_opened_is_ignored() -> None:
    outbox = outbox_of()
    batch = outbox.wants_batch(0)
    assert batch is not None
    outbox.hold()
    outbox.end_batch(batch, [delivery(1)], 0, more=False)
    assert outbox.held == 0
    outbox.release(5)
    outbox.end_batch(batch, [delivery(1)], 0, more=False)
    assert outbox.held == 0


def test_a_release_makes_held_deliveries_backlog_and_later_ones_live() -> None:
    outbox = outbox_of(holds=True)
    offered(outbox, delivery(1), delivery(2))
    outbox.release(2)
    offered(outbox, delivery(3))
    live, again, held = read(outbox, delivery(3)), read(outbox), read(outbox, delivery(1), delivery(2))
    assert (live.part, live.after) == ("live", 2)
    assert again.part == "redeliveries"
    assert (held.part, held.after, held.upto) == ("held", 0, 2)
    assert take(outbox) == [1, 3]
    end(outbox, delivery(1))
    assert take(outbox) == [2]
    end(outbox, delivery(2), delivery(3))
    assert (outbox.backlog.empty, outbox.backlog.started, outbox.held) == (True, 2, 0)


def test_deliveries_held_before_a_restart_are_backlog() -> None:
    outbox = outbox_of(held_upto=2)
    assert read(outbox, delivery(3)).after == 2
    read(outbox)
    assert read(outbox, delivery(1)).upto == 2
    assert take(outbox) == [1, 3]


def test_an_open_circuit_holds_earlier_held_deliveries_after_a_restart() -> None:
    outbox = outbox_of(holds=True, held_upto=2)
    offered(outbox, delivery(3))
    assert (outbox.wants_batch(0), take(outbox)) == (None, [])


def test_held_deliveries_wait_for_an_earlier_attempt_of_their_conversation() -> None:
    outbox = caught_up()
    (old,) = offered(outbox, delivery(1))
    take(outbox)
    outbox.hold()
    outbox.release(2)
    read(outbox)
    read(outbox)
    read(outbox, delivery(1), delivery(2))
    assert take(outbox) == []
    end(outbox, old)
    assert take(outbox) == [2]


def test_released_retry_that_is_not_due_waits_for_its_time() -> None:
    outbox = released(3)
    read(outbox)
    read(outbox)
    rows = [retry(delivery(1), 5_000), retry(delivery(2, 8), 500), delivery(3, 9, due_at=9_000)]
    read(outbox, *rows, now=1_000)
    assert take(outbox, 1_000) == [2, 3]
    assert take(outbox, 5_000) == [1]


def test_earlier_failures_of_a_delivery_do_not_count_in_a_later_outage() -> None:
    outbox = released(1)
    read(outbox)
    read(outbox)
    read(outbox, retry(delivery(1), 500), now=1_000)
    started = outbox.take_next(1_000, 1.0)
    assert started is not None
    assert (started.failing_since, started.attempts) == (None, 1)


def test_retries_are_read_while_held_rows_remain_unread() -> None:
    """Two parts never read the same row."""
    outbox = released(9, memory=1)
    read(outbox, retry(delivery(10, 1), 1_000))
    read(outbox)
    read(outbox, delivery(4, 4), more=True)
    assert take(outbox, 1_000) == [4, 10]
    (new,) = offered(outbox, delivery(12, 3))
    assert take(outbox, 1_000) == [12]
    fail(outbox, new, 1_500, 1_000)
    end(outbox, retry(delivery(10, 1)))
    batch = outbox.wants_batch(1_500)
    assert batch is not None
    assert (batch.part, batch.upto, batch.unread) == ("retries", 12, (4, 9))


def test_deletion_is_sent_when_the_circuit_closes_during_an_erased_attempt() -> None:
    outbox = caught_up()
    old, _ = offered(outbox, delivery(1), delivery(2, 8))
    assert take(outbox) == [1, 2]
    outbox.hold()
    outbox.forget(frozenset({7}))
    offered(outbox, deletion(3))
    outbox.release(2)  # deliveries after the probe's start are live
    read(outbox, deletion(3))
    end(outbox, old)
    assert take(outbox) == [3]


def test_a_deletion_that_was_held_waits_for_an_erased_attempt_under_way() -> None:
    outbox = caught_up()
    (old,) = offered(outbox, delivery(1))
    take(outbox)
    outbox.hold()
    outbox.forget(frozenset({7}))
    offered(outbox, deletion(3))
    outbox.release(3)
    read(outbox)
    read(outbox)
    read(outbox, deletion(3))
    assert take(outbox) == []
    end(outbox, old)
    assert take(outbox) == [3]


# Redeliveries


def test_redeliveries_are_read_and_sent_as_backlog() -> None:
    outbox = caught_up()
    offered(outbox, again(8), delivery(9, 8))
    assert take(outbox) == [9]
    batch = read(outbox, again(8))
    assert (batch.part, batch.after, batch.upto) == ("redeliveries", 0, POSITION_MAX)
    assert take(outbox) == [8]


def test_redeliveries_that_are_read_are_not_read_again() -> None:
    outbox = caught_up()
    offered(outbox, again(8))
    read(outbox, again(8))
    offered(outbox, again(9, 8))
    assert read(outbox, again(9, 8)).after == 8
    assert take(outbox) == [8, 9]


def test_query_for_retries_reaches_a_redeliverys_retry() -> None:
    outbox = caught_up(1)
    offered(outbox, again(8), delivery(9, 9))
    read(outbox, again(8))
    started = [outbox.take_next(0, 1.0) for _ in range(2)]
    assert {each.position for each in started if each} == {8, 9}
    fail(outbox, delivery(9, 9), 500)
    fail(outbox, again(8), 1_000)
    assert (outbox.held, take(outbox, 500)) == (1, [9])
    end(outbox, retry(delivery(9, 9)))
    batch = outbox.wants_batch(1_000)
    assert batch is not None
    assert (batch.part, batch.after) == ("retries", 8)


def test_a_redelivery_and_a_held_delivery_of_one_conversation_are_not_concurrent() -> None:
    outbox = released(9)
    read(outbox)
    read(outbox, again(8))
    read(outbox, delivery(3))
    assert take(outbox) == [8]
    end(outbox, again(8))
    assert take(outbox) == [3]


def test_missed_deliveries_are_requested_after_existing_redeliveries() -> None:
    outbox = released(0)
    outbox.backlog.missed = True
    batches = [read(outbox).part for _ in range(3)]
    assert batches == ["live", "redeliveries", "missed"]
    assert outbox.backlog.empty


def test_missed_deliveries_are_requested_until_none_is_left() -> None:
    outbox = caught_up(4)
    outbox.backlog.missed = True
    batch = read(outbox, more=True)
    assert (batch.part, batch.limit) == ("missed", 4)
    assert read(outbox, more=False).part == "missed"
    assert outbox.wants_batch(0) is None


def test_no_part_holds_more_than_its_memory() -> None:
    outbox = released(20, memory=2)
    read(outbox, delivery(21, 21), retry(delivery(22, 22), 99), more=True)
    assert read(outbox).part in ("live", "redeliveries")
    while (batch := outbox.wants_batch(0)) is not None:
        rows = [delivery(batch.after + 1 + each, batch.after + 1 + each) for each in range(batch.limit)]
        outbox.end_batch(batch, rows, 0, more=True)
        assert outbox.held <= 6
    assert outbox.held >= 4


@pytest.mark.parametrize(("memory", "waiting"), [(3, 1), (8, 5), (100, 50), (500, 300)])
def test_a_refused_conversation_does_not_block_held_ones(memory: int, waiting: int) -> None:
    """If a receiver delays one event indefinitely, it must get the others, however many wait in that conversation."""
    outbox = released(1_000, memory=memory)
    assert [read(outbox).part, read(outbox).part] == ["live", "redeliveries"]
    rows = [delivery(position) for position in range(1, waiting + 1)]
    read(outbox, *rows, more=True)
    assert take(outbox) == [1]
    outbox.repeat(repeated(rows[0], due_at=1_000), 0)
    assert read(outbox, delivery(900, 8)).part == "held"
    assert take(outbox) == [900]
