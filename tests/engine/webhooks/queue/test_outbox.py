"""The outbox: new deliveries, retries, and erased conversations."""

from __future__ import annotations

from deskwire.engine.webhooks.queue.outbox import POSITION_MAX
from tests.engine.webhooks.queue.boxes import (
    caught_up,
    deletion,
    end,
    fail,
    offered,
    outbox_of,
    read,
    repeated,
    retry,
    take,
)
from tests.support.sockets.receivers import delivery

# New deliveries


def test_conversation_continues_after_its_attempt_before_the_outcome_is_recorded() -> None:
    outbox = caught_up()
    first, *_ = offered(outbox, delivery(1), delivery(2), delivery(4, 8), delivery(5, None))
    assert take(outbox) == [1, 4, 5]
    outbox.attempt_ended(first)
    assert take(outbox) == [2]
    outbox.end(first)
    assert (take(outbox), outbox.held) == ([], 3)


def test_no_delivery_starts_when_all_are_under_way() -> None:
    outbox = caught_up()
    offered(outbox, delivery(1), delivery(2))
    assert outbox.next_due() == 0
    take(outbox)
    assert (outbox.next_due(), outbox.under_way, outbox.held) == (None, 1, 2)


def test_the_first_rows_are_read_before_anything_is_taken_in() -> None:
    outbox = outbox_of(10)
    offered(outbox, delivery(5))
    assert take(outbox) == []
    batch = read(outbox, delivery(4), delivery(5))
    assert (batch.part, batch.after, batch.upto, batch.limit) == ("live", 0, POSITION_MAX, 10)
    offered(outbox, delivery(5))
    assert not outbox.wants_live_rows
    assert outbox.held == 2


def test_a_commit_that_a_batch_has_missed_is_read_for_again() -> None:
    outbox = outbox_of(10)
    batch = outbox.wants_batch(0)
    assert batch is not None
    offered(outbox, delivery(5))
    outbox.end_batch(batch, [], 0, more=False)
    assert read(outbox, delivery(5)).after == 0
    assert take(outbox) == [5]


def test_known_deliveries_that_a_batch_finds_gone_are_not_read_for_again() -> None:
    outbox = outbox_of(10)
    offered(outbox, delivery(5))
    read(outbox)
    assert not outbox.wants_live_rows


def test_a_delivery_read_before_its_offer_is_not_added_twice() -> None:
    outbox = outbox_of(10)
    read(outbox, delivery(1, None))
    offered(outbox, delivery(1, None), delivery(2, None))
    assert take(outbox) == [1, 2]


def test_a_full_batch_is_followed_by_the_next_one() -> None:
    outbox = outbox_of(2)
    read(outbox, delivery(1, None), delivery(2, None), more=True)
    assert not outbox.wants_live_rows
    assert take(outbox) == [1, 2]
    end(outbox, delivery(1, None), delivery(2, None))
    assert read(outbox, delivery(3, None)).after == 2
    assert take(outbox) == [3]


def test_deliveries_offered_to_a_full_memory_are_read_later() -> None:
    outbox = caught_up(2)
    offered(outbox, *(delivery(number, None) for number in (1, 2, 3)))
    assert (outbox.held, take(outbox)) == (2, [1, 2])
    end(outbox, delivery(1, None))
    offered(outbox, delivery(4, None))
    assert take(outbox) == []
    assert read(outbox, delivery(3, None), more=True).after == 2
    end(outbox, delivery(2, None))
    read(outbox, delivery(4, None))
    assert take(outbox) == [3, 4]


def test_batch_is_read_with_half_the_memory_free_or_none_ready() -> None:
    outbox = caught_up(8)
    offered(outbox, *(delivery(number, None) for number in range(1, 10)))
    started = [outbox.take_next(0, 0.0) for _ in range(8)]
    assert not outbox.wants_live_rows
    end(outbox, *(each for each in started[:1] if each is not None))
    assert outbox.wants_live_rows


def test_a_failed_batch_is_requested_again() -> None:
    outbox = outbox_of(10)
    batch = outbox.wants_batch(0)
    assert batch is not None
    assert outbox.wants_batch(0) is None
    outbox.give_up_batch(batch, 0)
    assert read(outbox, delivery(1)).after == 0


# Retries


def test_retries_start_when_due_and_block_no_delivery() -> None:
    outbox = caught_up()
    (first,) = offered(outbox, delivery(1))
    take(outbox)
    fail(outbox, first, 2_000)
    assert outbox.next_due() == 2_000
    offered(outbox, delivery(2, due_at=1_000))
    assert outbox.next_due() == 0
    assert take(outbox, 1_999) == [2]
    assert take(outbox, 2_000) == [1]
    assert outbox.next_due() is None


def test_the_retry_due_longest_starts_first() -> None:
    outbox = outbox_of()
    read(outbox, retry(delivery(1, 1), 500), delivery(2, 2, due_at=400))
    offered(outbox, delivery(3, 3, due_at=600))
    assert take(outbox, 1_000) == [2, 1, 3]


def test_retries_have_a_share_alone_while_first_attempts_are_ready() -> None:
    """Live events do not wait for retries."""
    outbox = outbox_of(share=2)
    rows = [retry(delivery(number, number), number) for number in range(1, 6)]
    read(outbox, *rows)
    offered(outbox, delivery(6, 6, due_at=900), delivery(7, 7, due_at=900))
    assert take(outbox, 1_000) == [1, 2, 6, 7, 3, 4, 5]


def test_ended_retry_makes_way_for_the_next_in_their_share() -> None:
    outbox = outbox_of(share=1)
    read(outbox, *(retry(delivery(number, number), number) for number in (1, 2, 3)))
    assert outbox.take_next(1_000, 0.0) == retry(delivery(1, 1), 1)
    offered(outbox, *(delivery(number, number, due_at=900) for number in (4, 5)))
    outbox.attempt_ended(delivery(1, 1))
    outbox.end(delivery(1, 1))
    assert take(outbox, 1_000) == [2, 4, 5, 3]


def test_retries_for_which_there_is_no_room_are_read_again() -> None:
    outbox = outbox_of(2)
    rows = [retry(delivery(number, number), 1_000 * number) for number in (1, 2, 3)]
    read(outbox, *rows[:2], more=True)
    read(outbox, rows[2], now=500)
    assert (outbox.held, take(outbox, 2_000)) == (2, [1, 2])
    end(outbox, rows[0])
    batch = outbox.wants_batch(3_000)
    assert batch is not None
    assert (batch.part, batch.upto) == ("retries", 3)
    outbox.end_batch(batch, rows[1:], 3_000, more=False)
    assert take(outbox, 3_000) == [3]


def test_query_for_retries_reaches_a_retry_of_the_last_batch() -> None:
    """The commit is announced only later: rows that do not fit into memory must be found up to the batch's end."""
    outbox = outbox_of(1)
    read(outbox, retry(delivery(1, 1), 1_000), more=True)
    assert take(outbox, 1_000) == [1]
    read(outbox, retry(delivery(2, 2), 1_000), now=1_000)
    end(outbox, retry(delivery(1, 1)))
    batch = outbox.wants_batch(1_000)
    assert batch is not None
    assert (batch.part, batch.upto) == ("retries", 2)


def test_a_row_in_memory_at_the_request_is_ignored_in_the_batch() -> None:
    """The delivery may have ended since the batch was requested."""
    outbox = outbox_of(2)
    rows = [retry(delivery(number, number), 1_000) for number in (1, 2, 3)]
    read(outbox, *rows[:2], more=True)
    read(outbox, rows[2])
    assert take(outbox, 1_000) == [1, 2]
    end(outbox, rows[0])
    batch = outbox.wants_batch(1_000)
    assert batch is not None
    end(outbox, rows[1])
    outbox.end_batch(batch, rows[1:], 1_000, more=False)
    assert take(outbox, 1_000) == [3]


def test_a_clock_that_is_set_back_does_not_hold_up_retries() -> None:
    outbox, day = caught_up(), 86_400_000
    (first,) = offered(outbox, delivery(1, None))
    assert take(outbox, day) == [1]
    fail(outbox, first, day + 2_000, day)
    assert (take(outbox, 100), outbox.next_due()) == ([], 2_100)
    assert take(outbox, 2_100) == [1]


# Attempts that use up none


def test_an_attempt_that_is_repeated_keeps_its_place_in_its_conversation() -> None:
    """Decisions 6: after a `Retry-After` the conversation continues in its order."""
    outbox = caught_up()
    first, *_ = offered(outbox, delivery(1), delivery(2), delivery(3, 8))
    assert take(outbox) == [1, 3]
    outbox.repeat(repeated(first, 60_000), 0)
    assert outbox.next_due() == 60_000
    assert (take(outbox, 59_999), take(outbox, 60_000)) == ([], [1])
    end(outbox, first)
    assert take(outbox, 60_000) == [2]


def test_an_attempt_that_is_repeated_goes_last() -> None:
    outbox = caught_up()
    first, *_ = offered(outbox, delivery(1), delivery(2, 8))
    assert take(outbox) == [1, 2]
    outbox.repeat(repeated(first, 60_000), 0)
    offered(outbox, delivery(3, 9), delivery(4, 10))
    assert take(outbox, 60_000) == [3, 4, 1]


def test_waiting_conversation_loses_its_order_when_it_fills_the_memory() -> None:
    """Otherwise other conversations' rows could not be read."""
    outbox = caught_up(memory=8)
    first, *_ = offered(outbox, *[delivery(number) for number in range(1, 12)])
    assert take(outbox) == [1]
    outbox.repeat(repeated(first, 60_000), 0)
    assert (take(outbox), outbox.given_up) == ([2], 1)
    end(outbox, delivery(2))
    assert take(outbox) == [3]
    assert take(outbox, 60_000) == [1]


def test_a_retry_that_is_repeated_waits_for_its_time() -> None:
    outbox = caught_up()
    (first,) = offered(outbox, delivery(1))
    take(outbox)
    fail(outbox, first, 2_000)
    assert take(outbox, 2_000) == [1]
    outbox.repeat(repeated(retry(first), 9_000), 2_000)
    assert (take(outbox, 8_999), take(outbox, 9_000)) == ([], [1])


def test_a_repeated_attempt_is_not_sent_after_an_erasure() -> None:
    outbox = caught_up()
    (first,) = offered(outbox, delivery(1))
    take(outbox)
    outbox.forget(frozenset({7}))
    outbox.repeat(repeated(first), 0)
    assert (take(outbox, 10), outbox.held) == ([], 0)


# Erasure


def test_an_attempt_that_ends_after_its_conversation_was_erased_is_not_retried() -> None:
    """Decisions 4."""
    outbox = caught_up()
    (first,) = offered(outbox, delivery(1))
    take(outbox)
    outbox.forget(frozenset({7}))
    fail(outbox, first, 5)
    assert take(outbox, 10) == []


def test_waiting_deliveries_of_an_erased_conversation_are_not_sent() -> None:
    outbox = outbox_of()
    read(outbox, retry(delivery(1), 5), delivery(2), delivery(3), delivery(4, 8))
    outbox.forget(frozenset({7}))
    assert (take(outbox, 10), outbox.held) == ([4], 1)


def test_a_batch_omits_conversations_erased_since_its_request() -> None:
    outbox = outbox_of(10)
    batch = outbox.wants_batch(0)
    assert batch is not None
    outbox.forget(frozenset({7}))
    outbox.end_batch(batch, [delivery(1), delivery(2, 8), deletion(3)], 0, more=False)
    assert take(outbox) == [2, 3]


def test_deletion_waits_for_the_running_attempts_of_its_conversation() -> None:
    """Decisions 6: every event waits for the response to its predecessor, whether a first attempt or a retry."""
    outbox = outbox_of()
    read(outbox, retry(delivery(1), 5), delivery(2, due_at=6))
    assert take(outbox, 10) == [1, 2]
    outbox.forget(frozenset({7}))
    offered(outbox, deletion(3), delivery(4, 8))
    assert take(outbox, 10) == [4]
    end(outbox, delivery(2))
    assert take(outbox, 10) == []
    end(outbox, retry(delivery(1)))
    assert take(outbox, 10) == [3]


def test_a_deletion_event_read_before_its_offer_is_sent() -> None:
    outbox = outbox_of()
    read(outbox, delivery(1), delivery(2), deletion(3))
    assert take(outbox) == [1]
    outbox.forget(frozenset({7}))
    end(outbox, delivery(1))
    offered(outbox, deletion(3))
    assert take(outbox) == [3]
    end(outbox, deletion(3))
    assert outbox.held == 0
