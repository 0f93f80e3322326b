"""Readiness reflects the state of the disk, even if no client writes."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.core.counters import CommitCounters
from deskwire.engine.core.database_identity import DatabaseIdentity
from deskwire.engine.ports import Store
from deskwire.http.api.readiness import COMMIT_FRESH_S, PROBE_TIMEOUT_S, RETRY_DELAY_S, ReadinessProbe
from tests.simulation.disk import Disk, new_disk


@asynccontextmanager
async def on_disk(directory: Path, seed: int = 1) -> AsyncIterator[tuple[ReadinessProbe, Disk]]:
    """A service that is up, and its disk, on which time is virtual."""
    disk = Disk(new_disk(directory), random.Random(seed), lambda *_: None, lambda _: None)
    async with trio.open_nursery() as nursery:
        await nursery.start(disk.run)
        readiness = ReadinessProbe(disk, disk.commits)
        readiness.up = True
        yield readiness, disk
        nursery.cancel_scope.cancel()


async def said(readiness: ReadinessProbe) -> str:
    """Return the result that a load balancer sees."""
    refusal = await readiness.refusal()
    return "ready" if refusal is None else f"{refusal.reason}: {refusal.detail}"


async def stale(seconds: float = COMMIT_FRESH_S) -> None:
    """Let what is known be no longer of now."""
    await trio.sleep(seconds)  # virtual time: the mock clock jumps


async def test_full_disk_and_its_recovery_are_noticed_without_a_client(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with on_disk(tmp_path) as (readiness, disk):
        disk.fill(full=True)  # at once: a trial leaves free pages in the file, which the next one takes
        assert await said(readiness) == "storage_failed: The disk refuses writes: database or disk is full."
        disk.fill(full=False)
        await stale(RETRY_DELAY_S)
        assert await said(readiness) == "ready"


@pytest.mark.parametrize("seed", range(8))
async def test_a_disk_that_fails_once_is_tried_again(
    tmp_path: Path, autojump_clock: MockClock, seed: int
) -> None:
    """Wherever in the commit it fails."""
    async with on_disk(tmp_path, seed) as (readiness, disk):
        disk.fail_soon()
        told = [await said(readiness)]
        while disk.commits.refused == 0:
            await stale()
            told.append(await said(readiness))
        assert told[-1] == "storage_failed: The disk refuses writes: disk I/O error."
        await stale(RETRY_DELAY_S)
        assert await said(readiness) == "ready"


async def test_recent_commit_replaces_the_test_write(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with on_disk(tmp_path) as (readiness, disk):
        disk.fill(full=True)
        assert (await said(readiness)).startswith("storage_failed")
        disk.fill(full=False)
        await disk.write(lambda tx: tx.try_out())
        written = disk.commits.jobs.total
        assert await said(readiness) == "ready"
        assert disk.commits.jobs.total == written


async def test_many_checks_cost_one_write_a_second(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with on_disk(tmp_path) as (readiness, disk):
        disk.fill(full=True)
        until = trio.current_time() + 10 * RETRY_DELAY_S

        async def ask() -> None:
            while trio.current_time() < until:
                await readiness.refusal()
                await trio.sleep(0.1)  # virtual time: the mock clock jumps

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(ask)
        assert 5 <= disk.commits.refused <= 11
        disk.fill(full=False)
        await stale(RETRY_DELAY_S)
        until, written = trio.current_time() + 10 * COMMIT_FRESH_S, disk.commits.jobs.total
        await ask()
        assert 5 <= disk.commits.jobs.total - written <= 11


async def test_check_does_not_wait_for_a_blocked_disk(autojump_clock: MockClock) -> None:
    jobs: list[Callable[[Any], None]] = []

    class Silent:
        """A store whose disk hangs."""

        def submit(self, _: Any, ended: Callable[[Any], None]) -> None:
            jobs.append(ended)

    commits = CommitCounters()
    readiness = ReadinessProbe(cast(Store, Silent()), commits)
    readiness.up = True
    for _ in range(3):
        began = trio.current_time()
        assert await said(readiness) == "storage_failed: The disk has accepted no write for 2 s."
        assert trio.current_time() - began == PROBE_TIMEOUT_S
    (ended,) = jobs
    commits.done_at = trio.current_time()
    ended(None)
    assert await said(readiness) == "ready"


async def test_service_is_not_ready_before_its_start_and_after_its_stop(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with on_disk(tmp_path) as (readiness, disk):
        readiness.up = False
        assert await said(readiness) == "not_ready: The service is not ready."
        assert disk.commits.jobs.total == 0


async def test_service_on_another_database_is_not_ready_and_tries_no_write(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with on_disk(tmp_path) as (_, disk):
        identity = DatabaseIdentity()
        readiness = ReadinessProbe(disk, disk.commits, identity=identity)
        readiness.up = True
        identity.refuse("file_gone", "There is no file.")
        assert await said(readiness) == "wrong_database: There is no file."
        assert disk.commits.seconds.total == 0
        identity.accept()
        assert await said(readiness) == "ready"
