"""Results of attempts are collected briefly, so that they share a commit (ADR 6)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import trio
from trio.testing import MockClock

from deskwire.engine.events.types import EventDraft
from deskwire.engine.ports import Reader, Transaction
from deskwire.engine.webhooks.delivery import Attempt, Delivery
from deskwire.engine.webhooks.recorder import BATCH_INTERVAL_S, AttemptResult, Recorder
from deskwire.engine.webhooks.retry.circuit_breaker import CLOSED, CircuitBreaker
from deskwire.engine.webhooks.retry.schedule import DeliveryEnd
from deskwire.storage.sqlite.store import SqliteStore
from tests.support.builders import NOON, PROJECT, InlineStore, endpoint
from tests.support.sockets.receivers import Installation, Receivers, opened

T = TypeVar("T")


class Watched:
    """A store that records when the dispatcher writes."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.written_at: list[float] = []

    async def read(self, query: Callable[[Reader], T]) -> T:
        return await self._store.read(query)

    async def write(self, job: Callable[[Transaction], T]) -> T:
        self.written_at.append(trio.current_time())
        return await self._store.write(job)

    def submit(self, job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]) -> None:
        self._store.submit(job, ended)


class Killed(Watched):
    """A store whose process is killed before a write."""

    async def write(self, job: Callable[[Transaction], T]) -> T:
        await trio.sleep_forever()
        raise AssertionError(job)


async def sent(installation: Installation, count: int) -> float:
    """Send events of this many conversations; return when the first was sent."""
    began = trio.current_time()
    for number in range(1, count + 1):
        await installation.send(number, conversation=number)
    return began


async def test_results_that_come_within_a_moment_are_stored_in_one_commit(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers()
    async with opened(tmp_path, between=Watched) as installation:
        await installation.endpoint(receiver)
        began = await sent(installation, 5)
        await receiver.wait(5)
        assert [row[1] for row in await installation.rows()] == ["pending"] * 5
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert [row[1] for row in await installation.rows()] == ["delivered"] * 5
        (at,) = installation.between.written_at
        assert BATCH_INTERVAL_S <= at - began <= 3 * BATCH_INTERVAL_S


async def test_as_many_as_a_short_transaction_takes_do_not_wait_for_others(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers()
    async with opened(tmp_path, between=Watched) as installation:
        await installation.endpoint(receiver)
        began = await sent(installation, 33)
        await receiver.wait(33)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert {row[1] for row in await installation.rows()} == {"delivered"}
        first, last = installation.between.written_at
        assert first == began
        assert last >= began + BATCH_INTERVAL_S


async def test_a_deletion_that_is_committed_before_the_record_is_sent_after_it(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers()
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1)
        await receiver.wait(1)
        await installation.delete(7, 2)
        await receiver.wait(2)
    assert [each.headers["Service-Event"] for each in receiver.requests] == [
        "message.created",
        "conversation.deleted",
    ]


async def test_a_stop_stores_collected_results(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers()
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1)
        await receiver.wait(1)
    async with opened(tmp_path) as installation:
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert await installation.rows() == [(1, "delivered", 1)]
    assert len(receiver.requests) == 1


async def test_deliveries_with_unstored_results_are_sent_again_after_a_kill(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Contract 6.4.4: at least once."""
    receiver = await receivers()
    async with opened(tmp_path, between=Killed, stop_grace_s=0) as installation:
        await installation.endpoint(receiver)
        await installation.send(1)
        await receiver.wait(1)
    async with opened(tmp_path) as installation:
        await receiver.wait(2)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert await installation.rows() == [(1, "delivered", 1)]
    first, second = receiver.requests
    assert first.headers["Service-Delivery-Id"] == second.headers["Service-Delivery-Id"]


async def test_node_that_shares_the_store_records_bounded_parts_without_waits(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    store = InlineStore(tmp_path)
    whom = store.at_once(lambda tx: tx.insert_endpoint(endpoint()))
    generation = store.at_once(lambda tx: tx.acquire_endpoint_lease(whom.rowid, 0, 1))
    recorder = Recorder(store, whom, CircuitBreaker(CLOSED), 1.0, lambda: NOON, generation)
    for number in range(1, 301):
        recorder.add(_delivered(store, whom.rowid, number))
    began, sizes = trio.current_time(), list[int]()
    for _ in range(3):
        recorded = await recorder.next()
        assert recorded is not None
        assert all(kept for _, kept in recorded.results)
        sizes.append(len(recorded.results))
    assert sizes == [128, 128, 44]
    assert trio.current_time() == began
    store.close()


def _delivered(store: InlineStore, whom: int, number: int) -> AttemptResult:
    def make(tx: Transaction) -> Delivery:
        event = tx.append_event(PROJECT, EventDraft("contact.updated", None, {}), None, NOON)
        return tx.insert_delivery(whom, event, number, None, NOON)

    return AttemptResult(
        store.at_once(make), Attempt(1, NOON, 5, 204, None, b""), DeliveryEnd("delivered"), NOON + 5
    )
