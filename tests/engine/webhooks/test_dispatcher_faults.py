"""Deliveries despite faults: the disk, a worker's bug, an unreadable secret.

Source: decisions 6.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TypeVar

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Reader, Transaction
from deskwire.engine.webhooks.http.address import IPAddress, ThreadUnavailable
from deskwire.engine.webhooks.retry.circuit_breaker import SECRET_LOST
from deskwire.storage.sqlite.store import SqliteStore
from tests.support.failures import failures_logged
from tests.support.sockets.receivers import Receivers, answering, opened

T = TypeVar("T")
FAILING = answering("500 Internal Server Error", b"no")


@dataclass
class Faulty:
    """A store that raises each planted exception once, and otherwise works."""

    store: SqliteStore
    reads: list[Exception] = field(default_factory=list)
    writes: list[Exception] = field(default_factory=list)

    async def write(self, job: Callable[[Transaction], T]) -> T:
        if self.writes:
            raise self.writes.pop()
        return await self.store.write(job)

    def submit(self, job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]) -> None:
        self.store.submit(job, ended)

    async def read(self, query: Callable[[Reader], T]) -> T:
        if self.reads:
            raise self.reads.pop()
        return await self.store.read(query)


async def test_attempt_that_the_disk_refuses_is_recorded_later_and_not_repeated(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Contract 6.4.4."""
    receiver = await receivers()
    async with opened(tmp_path, between=Faulty) as installation:
        await installation.endpoint(receiver)
        installation.between.writes += [Unavailable("full")] * 3
        await installation.send(1, 2)
        await receiver.wait(2)
        await trio.sleep(30)  # virtual time: the mock clock jumps
        assert [row[1:] for row in await installation.rows()] == [("delivered", 1), ("delivered", 1)]
    assert receiver.sequences == [1, 2]


async def test_rows_that_the_disk_refuses_are_read_later(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Contract 6.4.4."""
    receiver = await receivers()
    async with opened(tmp_path, between=Faulty) as installation:
        installation.between.reads += [Unavailable("broken")] * 2
        await installation.endpoint(receiver)
        await installation.send(1)
        await receiver.wait(1)


async def test_a_bug_in_one_worker_restarts_it_and_leaves_the_others_alone(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: endpoints are isolated."""
    unlucky, other = await receivers(), await receivers()
    async with opened(tmp_path, between=Faulty) as installation:
        installation.between.reads.append(RuntimeError("a bug"))
        await installation.endpoint(unlucky)
        await installation.endpoint(other)
        await installation.send(1)
        await other.wait(1)
        assert unlucky.requests == []
        await unlucky.wait(1)
        assert 4 < unlucky.requests[0].at - other.requests[0].at < 7


async def test_any_exception_of_a_bug_is_a_failed_attempt(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """The exception group looks like a cancellation, and would silently end all workers."""
    receiver = await receivers()
    bugs: list[BaseException] = [
        ValueError("a bug"),
        ExceptionGroup("bugs", [ValueError("a bug"), trio.ClosedResourceError()]),
        BaseExceptionGroup("bugs", [ValueError("a bug"), ExceptionGroup("more", [KeyError("another")])]),
    ]

    async def resolve(_host: str, _port: int) -> Sequence[IPAddress]:
        await trio.lowlevel.checkpoint()
        if bugs:
            raise bugs.pop()
        return [ip_address("127.0.0.1")]

    with failures_logged() as failures:
        async with opened(tmp_path, resolver=resolve) as installation:
            await installation.endpoint(receiver)
            await installation.send(1)
            await receiver.wait(1)
            await trio.sleep(1)  # virtual time: the mock clock jumps
            assert await installation.rows() == [(1, "delivered", 4)]
            log = await installation.log()
        assert log[:3] == [(number, None, "internal error") for number in (1, 2, 3)]
        assert [entry["event"] for entry in failures()] == ["delivery.attempt_failed"] * 3


@pytest.mark.parametrize(
    ("shortage", "what"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "file descriptor"),
        (OSError(errno.ENFILE, "Too many open files in system"), "file descriptor"),
        (OSError(errno.ENOBUFS, "No buffer space available"), "memory"),
        (MemoryError(), "memory"),
        (ThreadUnavailable("can't start new thread"), "thread"),
    ],
)
async def test_a_local_shortage_uses_up_no_attempt_and_opens_no_circuit(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock, shortage: Exception, what: str
) -> None:
    """The receiver is healthy and got no request."""
    receiver = await receivers()
    lacking = True

    async def resolve(_host: str, _port: int) -> Sequence[IPAddress]:
        await trio.lowlevel.checkpoint()
        if lacking:
            raise shortage
        return [ip_address("127.0.0.1")]

    async with opened(tmp_path, resolver=resolve) as installation:
        await installation.endpoint(receiver)
        await installation.send(1)
        await trio.sleep(60)  # virtual time: the mock clock jumps
        words = f"this server had no {what} left; the attempt is made again and does not count"
        assert set(await installation.log()) == {(1, None, words)}
        assert [row[1:] for row in await installation.rows()] == [("pending", 0)]
        lacking = False
        await receiver.wait(1)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert [row[1:] for row in await installation.rows()] == [("delivered", 1)]


async def test_a_secret_that_cannot_be_opened_leaves_deliveries_pending(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """A start with the wrong installation secret must not use up the retries of pending deliveries."""
    receiver = await receivers()
    async with opened(tmp_path) as installation:
        endpoint = await installation.endpoint(receiver)
        installation.dispatcher.add(
            replace(endpoint, sealed_secret=Encryption(Secrets("another")).seal("whsec_x"))
        )
        await installation.send(1)
        await trio.sleep(20)  # virtual time: the mock clock jumps
        assert await installation.rows() == [(1, "pending", 0)]
        (stored,) = await installation.store.read(lambda reader: reader.endpoints())
        assert stored.circuit.probe_at is not None
        assert stored.circuit.reason == SECRET_LOST
    async with opened(tmp_path):
        await receiver.wait(1)
