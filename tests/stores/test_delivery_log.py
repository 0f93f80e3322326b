"""Searches in the delivery log: each combination of filters, and how many rows one call reads (ADR 54)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.core.ids import new_id
from deskwire.engine.events.types import EventDraft, StoredEvent
from deskwire.engine.ports import Transaction
from deskwire.engine.webhooks.delivery import DeliveryFilter, DeliveryStatus, FoundDeliveries
from deskwire.storage.tables.webhooks import delivery_log
from tests.support.builders import NOON, OTHER_PROJECT, PROJECT, InlineStore, endpoint
from tests.support.seeing import seen

TYPES = ("message.created", "conversation.updated", "conversation.closed")
NEVER = "conversation.assigned"
STATUSES: Sequence[DeliveryStatus] = get_args(DeliveryStatus)


class Row:
    """A delivery as a test knows it."""

    def __init__(self, position: int, at: int, kind: str, status: str, conversation: str | None) -> None:
        self.position, self.at, self.kind, self.status = position, at, kind, status
        self.conversation = conversation

    def fits(self, wanted: DeliveryFilter) -> bool:
        return (
            wanted.status in (None, self.status)
            and wanted.event_type in (None, self.kind)
            and wanted.conversation_id in (None, self.conversation)
            and (wanted.since is None or self.at >= wanted.since)
            and (wanted.until is None or self.at < wanted.until)
        )


def conversation(tx: Transaction) -> Conversation:
    """Store a conversation."""
    contact = tx.insert_contact(PROJECT.rowid, Contact(0, new_id("con", NOON), "u1", NOON, NOON))
    return tx.insert_conversation(
        Conversation(new_id("cnv", NOON), PROJECT.rowid, NOON, NOON), contact.rowid, {}
    )


class Shelf:
    """A store with an endpoint in each of two projects, whose deliveries are mixed."""

    def __init__(self, directory: Path) -> None:
        self.store = InlineStore(directory)
        self.ours = self.store.at_once(lambda tx: tx.insert_endpoint(endpoint())).rowid
        self.theirs = self.store.at_once(lambda tx: tx.insert_endpoint(endpoint(OTHER_PROJECT))).rowid
        self.conversation = self.store.at_once(conversation)
        self.rows: list[Row] = []

    def fill(self, count: int, statuses: Sequence[str] = STATUSES, types: Sequence[str] = TYPES) -> None:
        draw = Random(87)

        def job(tx: Transaction) -> None:
            for number in range(count):
                kind, status, about = draw.choice(types), draw.choice(statuses), draw.random() < 0.3
                self._put(tx, NOON + number * 10, kind, status, about)

        self.store.at_once(job)

    def _put(self, tx: Any, at: int, kind: str, status: str, about: bool) -> None:
        lane = self.conversation.rowid if about else None
        for project, whom in ((OTHER_PROJECT, self.theirs), (PROJECT, self.ours)):
            event: StoredEvent = tx.append_event(project, EventDraft("contact.updated", None, {}), None, at)
            made = tx.insert_delivery(whom, event, lane if project is PROJECT else None, None, at)
            tx.conn.execute(
                "UPDATE deliveries SET status = ?, type = ? WHERE position = ?", (status, kind, made.position)
            )
        self.rows.append(Row(made.position, at, kind, status, self.conversation.id if about else None))

    def search(self, wanted: DeliveryFilter, before: int | None = None, limit: int = 7) -> FoundDeliveries:
        return seen(
            self.store,
            lambda reader: reader.delivery_records(PROJECT.rowid, self.ours, wanted, before, limit),
        )

    def walk(self, wanted: DeliveryFilter) -> list[int]:
        """Follow a search to its end, as the pages of the API do."""
        found: list[int] = []
        before: int | None = None
        while True:
            page = self.search(wanted, before)
            found += [each.position for each in page.records]
            if len(page.records) == 7:
                before = found[-1]
            elif page.reached is not None:
                assert before is None or page.reached[0] < before
                before = page.reached[0]
            else:
                return found


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    made = Shelf(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def short_sighted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit a search to ten deliveries of each status."""
    monkeypatch.setattr(delivery_log, "SEARCH_MAX", 10)


@pytest.mark.usefixtures("short_sighted")
def test_search_followed_to_its_end_finds_exactly_the_matches(shelf: Shelf) -> None:
    shelf.fill(150)
    times = [None, NOON, NOON + 500, NOON + 505, NOON + 1_490, NOON + 9_000]
    conversations = (None, shelf.conversation.id, "cnv_00000000000000000000000000")
    for status, kind, since, until, conversation in product(
        (None, *STATUSES), (None, TYPES[0], NEVER), times[:4], times[2:], conversations
    ):
        wanted = DeliveryFilter(status, kind, conversation, since, until)
        expected = [each.position for each in reversed(shelf.rows) if each.fits(wanted)]
        assert shelf.walk(wanted) == expected, wanted


@pytest.mark.usefixtures("short_sighted")
def test_search_for_a_type_returns_how_far_it_has_read(shelf: Shelf) -> None:
    shelf.fill(25, ["delivered"])
    first = shelf.search(DeliveryFilter(event_type=NEVER))
    assert (first.records, first.reached) == ([], (shelf.rows[15].position, shelf.rows[15].at))
    second = shelf.search(DeliveryFilter(event_type=NEVER), shelf.rows[15].position)
    assert second.reached == (shelf.rows[5].position, shelf.rows[5].at)
    assert shelf.search(DeliveryFilter(event_type=NEVER), shelf.rows[5].position).reached is None


@pytest.mark.usefixtures("short_sighted")
def test_a_search_stops_at_no_delivery_that_another_status_has_not_reached(shelf: Shelf) -> None:
    shelf.fill(10, ["dropped"], [NEVER])
    dropped = [each.position for each in shelf.rows]
    shelf.fill(12, ["delivered"])
    found = shelf.search(DeliveryFilter(event_type=NEVER))
    assert (found.records, found.reached) == ([], (shelf.rows[12].position, shelf.rows[12].at))
    assert shelf.walk(DeliveryFilter(event_type=NEVER)) == dropped[::-1]


@pytest.mark.usefixtures("short_sighted")
def test_page_without_a_type_filter_is_full_despite_distant_deliveries(shelf: Shelf) -> None:
    shelf.fill(150)
    found = shelf.search(DeliveryFilter(status="dropped", until=NOON + 900))
    assert (len(found.records), found.reached) == (7, None)


@pytest.mark.sqlite
def test_the_work_of_a_search_does_not_grow_with_the_log(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_log, "SEARCH_MAX", 50)

    def work(wanted: DeliveryFilter) -> int:
        """Return the hundreds of steps that SQLite takes."""
        steps = 0

        def step() -> None:
            nonlocal steps
            steps += 1

        connection = shelf.store.connection
        connection.set_progress_handler(step, 100)
        try:
            shelf.search(wanted)
        finally:
            connection.set_progress_handler(None, 0)
        return steps

    searches = [
        DeliveryFilter(event_type=NEVER),
        DeliveryFilter(event_type=NEVER, status="dropped"),
        DeliveryFilter(event_type=NEVER, since=NOON + 200, until=NOON + 1_900),
        DeliveryFilter(until=NOON + 200),
    ]
    shelf.fill(200)
    small = [work(each) for each in searches]
    for _ in range(9):
        shelf.fill(200)
    for before, after, wanted in zip(small, [work(each) for each in searches], searches, strict=True):
        assert after < 2 * before + 10, wanted
