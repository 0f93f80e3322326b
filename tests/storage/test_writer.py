"""The writer: group commits, and the jobs that a failure affects (decisions 4.3; the docstring of `writer`)."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from deskwire.engine.core.errors import DomainError, NotFound, Unavailable
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EventDraft
from deskwire.engine.ports import Commit, Transaction
from deskwire.storage.sqlite.database import connect_reader, migrate
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.transaction import SqliteReader, SqliteTransaction
from deskwire.storage.sqlite.writer import Writer
from tests.support.builders import NOON, OTHER_PROJECT, PROJECT, endpoint, found_projects
from tests.support.deadlines import HANG_TIMEOUT_S


class Disk(sqlite3.Connection):
    """A connection that counts its commits and fails at the statements in `fails_at`."""

    commits = 0
    fails_at: frozenset[str] = frozenset()

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql in self.fails_at:
            raise sqlite3.OperationalError("disk I/O error")
        self.commits += sql == "COMMIT"
        return super().execute(sql, *values)


class Bench:
    """A running writer on a fresh database."""

    def __init__(self, path: Path, batch: int) -> None:
        migrate(path)
        self.disk = sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Disk)
        self.disk.execute("PRAGMA foreign_keys = ON")
        self.told: list[Commit | str] = []
        self.file = os.open(path, os.O_RDWR)
        self.writer = Writer(self.disk, self.file, batch, self.told.append)
        self.reader = SqliteReader(connect_reader(path))

    def stored(self) -> list[str]:
        """Return the names of the organisations that a reader sees."""
        rows = self.reader.conn.execute("SELECT name FROM organisations ORDER BY rowid").fetchall()
        return [name for (name,) in rows]

    async def together(self, *jobs: Callable[[Transaction], Any]) -> list[Any]:
        """Queue all these jobs before the writer takes the first; return each job's result or exception."""
        answers: list[Any] = [None] * len(jobs)
        hold, held = threading.Event(), trio.Event()
        token = trio.lowlevel.current_trio_token()

        def occupy(tx: Transaction) -> None:
            token.run_sync_soon(held.set)
            assert hold.wait(5)

        async def hand_in(n: int) -> None:
            try:
                answers[n] = await self.writer.write(jobs[n])
            except (DomainError, sqlite3.Error) as error:
                answers[n] = error
            self.told.append(f"answer {n}")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.writer.write, occupy)
            await held.wait()
            for n in range(len(jobs)):
                nursery.start_soon(hand_in, n)
                await wait_all_tasks_blocked()
            hold.set()
        return answers


@asynccontextmanager
async def bench(directory: Path, batch: int = 64) -> AsyncIterator[Bench]:
    opened = Bench(directory / FILE_NAME, batch)
    with trio.fail_after(HANG_TIMEOUT_S):  # a job that is never answered fails its test
        async with at_work(opened):
            yield opened
    opened.reader.conn.close()
    opened.disk.close()
    os.close(opened.file)


@asynccontextmanager
async def at_work(opened: Bench) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        await nursery.start(opened.writer.run)
        await opened.writer.write(found_projects)
        opened.told.clear()
        opened.disk.commits = 0
        yield
        nursery.cancel_scope.cancel()


def adds(name: str) -> Callable[[Transaction], int]:
    """Return a job that stores an organisation."""
    return lambda tx: tx.insert_organisation(f"org_{name}", name, NOON)


def refuses(tx: Transaction) -> None:
    raise NotFound("nothing written")


def refuses_late(tx: Transaction) -> None:
    tx.insert_organisation("org_late", "late", NOON)
    raise NotFound("something written")


def announces(text: str) -> Callable[[Transaction], int]:
    """Return a job that stores an event."""
    return lambda tx: (
        tx.append_event(PROJECT, EventDraft("contact.updated", None, {"t": text}), None, NOON).position
    )


async def test_jobs_that_wait_together_share_one_commit(tmp_path: Path) -> None:
    async with bench(tmp_path) as desk:
        answers = await desk.together(*(adds(str(n)) for n in range(20)))
        assert answers == sorted(answers)
        assert desk.disk.commits == 2  # one for the job that kept the writer busy, one for all of these
        assert desk.stored()[1:] == [str(n) for n in range(20)]


async def test_commit_has_at_most_one_batch_of_jobs(tmp_path: Path) -> None:
    async with bench(tmp_path, batch=4) as desk:
        await desk.together(*(adds(str(n)) for n in range(10)))
        assert desk.disk.commits == 1 + 3


async def test_readers_see_the_events_before_the_jobs_are_answered_and_in_order(tmp_path: Path) -> None:
    async with bench(tmp_path) as desk:
        await desk.together(*(announces(str(n)) for n in range(3)))
        commits = [told for told in desk.told if isinstance(told, Commit)]
        positions = [event.position for commit in commits for event in commit.events]
        assert positions == [1, 2, 3]
        first_answer = min(desk.told.index(f"answer {n}") for n in range(3))
        assert all(isinstance(told, Commit) for told in desk.told[:first_answer])
        assert {str(told) for told in desk.told[first_answer:]} == {f"answer {n}" for n in range(3)}


async def test_answered_jobs_are_visible_to_every_reader(tmp_path: Path) -> None:
    async with bench(tmp_path) as desk:
        for n in range(5):
            await desk.writer.write(adds(str(n)))
            assert desk.stored()[-1] == str(n)


async def test_job_that_raises_before_a_write_affects_no_other_job(tmp_path: Path) -> None:
    async with bench(tmp_path) as desk:
        first, refused, last = await desk.together(adds("a"), refuses, adds("b"))
        assert isinstance(refused, NotFound)
        assert (last, desk.stored()[1:], desk.disk.commits) == (first + 1, ["a", "b"], 2)


async def test_job_that_raises_after_a_write_is_rolled_back_alone(tmp_path: Path) -> None:
    async with bench(tmp_path) as desk:
        answers = await desk.together(adds("a"), refuses_late, adds("b"), refuses_late, adds("c"))
        assert [type(answer) for answer in answers] == [int, NotFound, int, NotFound, int]
        assert desk.stored()[1:] == ["a", "b", "c"]


async def test_job_that_is_rolled_back_and_repeated_publishes_once(tmp_path: Path) -> None:
    async with bench(tmp_path) as desk:
        answers = await desk.together(announces("a"), refuses_late, announces("b"))
        events = [event for told in desk.told if isinstance(told, Commit) for event in told.events]
        assert [event.position for event in events] == [answers[0], answers[2]]
        stored = desk.reader.events(PROJECT.rowid, 0, 10, frozenset())
        assert [event.id for event in stored] == [event.id for event in events]


async def test_refusal_based_on_rolled_back_state_is_repeated(tmp_path: Path) -> None:
    """The second job refuses because of the first, whose work is rolled back with the third's."""
    attempts: list[str] = []

    def once(tx: Transaction) -> None:
        attempts.append("first")
        if len(attempts) == 1:
            tx.insert_organisation("org_x", "x", NOON)

    def only_without(tx: Transaction) -> str:
        assert isinstance(tx, SqliteTransaction)
        if tx.conn.execute("SELECT 1 FROM organisations WHERE name = 'x'").fetchone():
            raise NotFound("x is there")
        return "free"

    async with bench(tmp_path) as desk:
        _, answer, refused = await desk.together(once, only_without, refuses_late)
        assert (answer, type(refused)) == ("free", NotFound)


async def test_rolled_back_change_of_endpoints_has_no_effect(tmp_path: Path) -> None:
    def adds_and_refuses(tx: Transaction) -> None:
        tx.insert_endpoint(endpoint())
        assert len(tx.routed_endpoints(PROJECT.rowid)) == 1
        raise NotFound("taken back")

    async with bench(tmp_path) as desk:
        await desk.together(adds_and_refuses)
        assert await desk.writer.write(lambda tx: list(tx.routed_endpoints(PROJECT.rowid))) == []


async def test_a_deleted_endpoint_gets_nothing_of_the_same_commit(tmp_path: Path) -> None:
    async with bench(tmp_path) as desk:
        kept = await desk.writer.write(lambda tx: tx.insert_endpoint(endpoint()))
        gone = await desk.writer.write(lambda tx: tx.insert_endpoint(endpoint()))

        def sends(tx: Transaction) -> None:
            event = tx.append_event(PROJECT, EventDraft("contact.updated", None, {}), None, NOON)
            for target in (kept, gone):
                tx.insert_delivery(target.rowid, event, None, None, NOON)

        await desk.together(sends, lambda tx: tx.save_endpoint(replace(gone, status="removed")))
        deliveries = [d for told in desk.told if isinstance(told, Commit) for d in told.deliveries]
        assert [delivery.endpoint for delivery in deliveries] == [kept.rowid]
        while await desk.writer.write(lambda tx: tx.close_deliveries(gone.rowid, NOON, 10)):
            pass
        assert desk.reader.pending_deliveries(gone.rowid, 0, 10) == []
        assert len(desk.reader.pending_deliveries(kept.rowid, 0, 10)) == 1


async def test_a_failed_commit_stores_and_publishes_nothing_and_the_next_one_works(tmp_path: Path) -> None:
    async with bench(tmp_path) as desk:
        desk.disk.fails_at = frozenset({"COMMIT"})
        hold = [adds("a"), announces("b"), refuses]
        answers = [await answer_of(desk, job) for job in hold]
        assert [answer.reason for answer in answers] == ["storage_failed"] * 3
        desk.disk.fails_at = frozenset()
        assert desk.told == []
        assert desk.stored() == ["Acme"]
        await desk.writer.write(adds("c"))
        assert desk.stored() == ["Acme", "c"]
        assert await desk.writer.write(announces("d")) > 1  # a position that was seen by a job is not reused


async def answer_of(desk: Bench, job: Callable[[Transaction], Any]) -> Any:
    """Return the job's result, or its refusal."""
    try:
        return await desk.writer.write(job)
    except DomainError as refusal:
        return refusal


async def test_a_commit_that_the_database_itself_refuses_stores_nothing_of_the_batch(tmp_path: Path) -> None:
    def breaks_a_reference(tx: Transaction) -> None:
        assert isinstance(tx, SqliteTransaction)
        tx.conn.execute("PRAGMA defer_foreign_keys = ON")
        tx.put_network_logs(12345, b"[]", NOON)

    async with bench(tmp_path) as desk:
        answers = await desk.together(adds("a"), breaks_a_reference, adds("b"))
        assert [answer.reason for answer in answers] == ["storage_failed"] * 3
        assert desk.stored() == ["Acme"]
        await desk.writer.write(adds("c"))
        assert desk.stored() == ["Acme", "c"]


async def test_all_queued_jobs_fail_if_the_transaction_cannot_begin(tmp_path: Path) -> None:
    async with bench(tmp_path) as desk:
        desk.disk.fails_at = frozenset({"BEGIN IMMEDIATE"})
        assert (await answer_of(desk, adds("a"))).reason == "storage_failed"
        desk.disk.fails_at = frozenset()
        await desk.writer.write(adds("b"))
        assert desk.stored() == ["Acme", "b"]


async def test_full_disk_is_reported_and_writes_recover(tmp_path: Path) -> None:
    def pages(limit: int) -> Callable[[Transaction], None]:
        def set_limit(tx: Transaction) -> None:
            assert isinstance(tx, SqliteTransaction)
            tx.conn.execute(f"PRAGMA max_page_count = {limit}")

        return set_limit

    async with bench(tmp_path) as desk:
        await desk.writer.write(pages(1))  # SQLite takes this as the current size
        answers = await desk.together(adds("small"), announces("x" * 100_000), adds("small too"))
        assert [answer.reason for answer in answers] == ["storage_failed"] * 3
        assert desk.stored() == ["Acme"]
        assert [told for told in desk.told if isinstance(told, Commit) and told.events] == []
        await desk.writer.write(pages(1_000_000))
        await desk.writer.write(announces("x" * 100_000))
        assert len(desk.reader.events(PROJECT.rowid, 0, 10, frozenset())) == 1
        (verdict,) = desk.reader.conn.execute("PRAGMA integrity_check").fetchone()
        assert verdict == "ok"


async def test_closing_commits_queued_jobs_and_refuses_later_ones(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    desk = Bench(path, batch=3)
    answers: list[Any] = []
    hold = threading.Event()

    async def hand_in(job: Callable[[Transaction], Any]) -> None:
        answers.append(await desk.writer.write(job))

    async with trio.open_nursery() as askers, trio.open_nursery() as nursery:
        await nursery.start(desk.writer.run)
        askers.start_soon(hand_in, lambda tx: hold.wait(5))
        await wait_all_tasks_blocked()
        for n in range(10):
            askers.start_soon(hand_in, adds(str(n)))
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        hold.set()
    assert len(answers) == 11
    assert sorted(desk.stored()) == [str(n) for n in range(10)]
    with pytest.raises(Unavailable) as refused:
        await desk.writer.write(adds("late"))
    assert refused.value.reason == "shutting_down"
    desk.reader.conn.close()
    desk.disk.close()
    os.close(desk.file)


async def test_a_broken_writer_ends_the_program_and_not_only_itself(tmp_path: Path) -> None:
    with (
        pytest.RaisesGroup(sqlite3.OperationalError, flatten_subgroups=True),
        trio.fail_after(HANG_TIMEOUT_S),
    ):
        async with bench(tmp_path) as desk:
            desk.disk.fails_at = frozenset({"COMMIT", "ROLLBACK"})
            await desk.writer.write(adds("a"))
    with pytest.raises(Unavailable), trio.fail_after(HANG_TIMEOUT_S):
        await desk.writer.write(adds("b"))
    assert desk.stored() == ["Acme"]
    desk.reader.conn.close()
    desk.disk.close()
    os.close(desk.file)


async def test_another_projects_events_are_not_in_a_projects_feed(tmp_path: Path) -> None:
    async with bench(tmp_path) as desk:
        await desk.writer.write(announces("mine"))
        theirs = EventDraft("contact.updated", None, {"t": "theirs"})
        await desk.writer.write(lambda tx: tx.append_event(OTHER_PROJECT, theirs, None, NOON))
        assert [e.position for e in desk.reader.events(PROJECT.rowid, 0, 10, frozenset())] == [1]
