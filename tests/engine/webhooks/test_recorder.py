"""Results of attempts are gathered for a moment, so that they share a commit (ADR 6)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import trio
from trio.testing import MockClock

from deskwire.engine.ports import Reader, Transaction
from deskwire.engine.webhooks.recorder import GATHER_S
from deskwire.storage.sqlite.store import SqliteStore
from tests.support.sockets.receivers import Installation, Receivers, opened

T = TypeVar("T")


class Watched:
    """A store that notes when the dispatcher writes."""

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
    """A store that a process is killed before it writes to."""

    async def write(self, job: Callable[[Transaction], T]) -> T:
        await trio.sleep_forever()
        raise AssertionError(job)


async def sent(installation: Installation, count: int) -> float:
    """Send events of as many conversations; return when the first began to be sent."""
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
        assert GATHER_S <= at - began <= 3 * GATHER_S


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
        assert last >= began + GATHER_S


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


async def test_a_stop_stores_what_is_gathered(
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


async def test_what_is_gathered_when_the_process_is_killed_is_sent_again(
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
