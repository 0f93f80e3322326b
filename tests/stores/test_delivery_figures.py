"""Deliveries counted by the hour in which they were made, and how long they took (ADR 10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from deskwire.engine.core.store import InlineQuery
from deskwire.engine.events.types import EventDraft
from deskwire.engine.ports import Transaction
from deskwire.engine.webhooks.delivery import Attempt, Delivery
from deskwire.engine.webhooks.figures import (
    Figures,
    bucket_batches,
    bucket_starts,
    figures_view,
    merged_figures,
    percentile,
)
from tests.support.builders import NOON, OTHER_PROJECT, PROJECT, InlineStore, endpoint
from tests.support.seeing import seen

HOUR = 3_600_000
START = NOON // HOUR * HOUR


class Shelf:
    """A store with an endpoint in each of two projects."""

    def __init__(self, directory: Path) -> None:
        self.store = InlineStore(directory)
        self.ours = self.store.at_once(lambda tx: tx.insert_endpoint(endpoint())).rowid
        self.theirs = self.store.at_once(lambda tx: tx.insert_endpoint(endpoint(OTHER_PROJECT))).rowid

    def put(self, at: int, count: int = 1, *, theirs: bool = False) -> list[Delivery]:
        project, whom = (OTHER_PROJECT, self.theirs) if theirs else (PROJECT, self.ours)

        def job(tx: Transaction) -> Delivery:
            event = tx.append_event(project, EventDraft("contact.updated", None, {}), None, at)
            return tx.insert_delivery(whom, event, None, None, at)

        return [self.store.at_once(job) for _ in range(count)]

    def end(self, delivery: Delivery, took: int, status: str = "delivered") -> None:
        attempt = Attempt(1, delivery.created_at, took, 200, None, b"")
        assert self.store.at_once(lambda tx: tx.record_end(delivery, attempt, status, None))  # type: ignore[arg-type]

    def figures(self, starts: Sequence[int], until: int | None = None, *, theirs: bool = False) -> Figures:
        project, whom = (OTHER_PROJECT, self.theirs) if theirs else (PROJECT, self.ours)
        return seen(self.store, lambda reader: reader.delivery_figures(project.rowid, whom, starts, until))


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    made = Shelf(tmp_path)
    yield made
    made.store.close()


def counted(figures: Figures) -> list[list[int]]:
    """Delivered, dropped, skipped and pending of each bucket."""
    names = ("delivered", "dropped", "skipped", "pending")
    return [[each.of[name] for name in names] for each in figures.buckets]  # type: ignore[index]


def test_deliveries_are_counted_in_the_hour_in_which_they_were_made(shelf: Shelf) -> None:
    shelf.put(START - 1, 2)
    first = shelf.put(START, 4)
    shelf.put(START + HOUR + 5, 3, theirs=True)
    third = shelf.put(START + 2 * HOUR, 2)
    shelf.put(START + 3 * HOUR - 1)
    shelf.put(START + 3 * HOUR)
    shelf.end(first[0], 40)
    shelf.end(first[1], 10, "dropped")
    shelf.end(first[2], 20)
    shelf.end(third[0], 30, "skipped")
    starts = [START + number * HOUR for number in range(4)]
    found = shelf.figures(starts)
    assert [each.at for each in found.buckets] == starts
    assert counted(found) == [[2, 1, 0, 1], [0, 0, 0, 0], [0, 0, 1, 2], [0, 0, 0, 1]]
    assert sorted(found.took) == [20, 40]
    assert counted(shelf.figures(starts, theirs=True))[1] == [0, 0, 0, 3]


def test_there_are_figures_of_an_endpoint_that_was_never_sent_anything(shelf: Shelf) -> None:
    assert counted(shelf.figures([START, START + HOUR])) == [[0, 0, 0, 0], [0, 0, 0, 0]]
    shelf.put(START, theirs=True)
    assert counted(shelf.figures([START + HOUR])) == [[0, 0, 0, 0]]


def test_buckets_before_and_after_all_deliveries_are_empty(shelf: Shelf) -> None:
    shelf.put(START)
    assert counted(shelf.figures([START - HOUR, START, START + HOUR, START + 2 * HOUR])) == [
        [0, 0, 0, 0],
        [0, 0, 0, 1],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
    ]


def test_parts_counted_separately_add_up_to_the_whole(shelf: Shelf) -> None:
    for hour in range(30):
        for delivery in shelf.put(START + hour * HOUR, hour % 3):
            shelf.end(delivery, hour)
    starts = [START + hour * HOUR for hour in range(30)]
    parts = [shelf.figures(part, until) for part, until in bucket_batches(starts, "hour")]
    assert [len(each.buckets) for each in parts] == [24, 6]
    assert merged_figures(parts) == shelf.figures(starts)
    assert sum(counts[0] for counts in counted(merged_figures(parts))) == 30


def test_rolled_back_delivery_leaves_no_trace_in_the_figures(shelf: Shelf) -> None:
    def fail(tx: Transaction) -> None:
        event = tx.append_event(PROJECT, EventDraft("contact.updated", None, {}), None, START)
        tx.insert_delivery(shelf.ours, event, None, None, START)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        shelf.store.at_once(InlineQuery(fail))
    shelf.put(START)
    assert counted(shelf.figures([START])) == [[0, 0, 0, 1]]


def test_buckets_start_at_whole_hours_or_days_and_are_limited() -> None:
    assert bucket_starts(START + 5, START + HOUR + 5, "hour") == [START, START + HOUR]
    assert len(bucket_starts(0, START, "hour")) == 168
    assert bucket_starts(0, START, "hour")[-1] == START
    assert bucket_starts(START + 9 * HOUR, START, "hour") == [START]
    assert all(each % (24 * HOUR) == 0 for each in bucket_starts(START - 90 * HOUR, START, "day"))


def test_percentile_of_times_is_one_of_the_times() -> None:
    assert percentile([], 50) is None
    assert percentile([7], 99) == 7
    assert percentile([1, 2, 3, 4], 50) == 2
    assert percentile(range(1, 101), 99) == 99
    assert figures_view(Figures([], [30, 10, 20]), "hour")["latency"] == {
        "deliveries": 3,
        "p50Ms": 20,
        "p99Ms": 30,
    }
