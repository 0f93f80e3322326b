"""Lines that are cut, servers that go away, and commits whose answer never comes: nothing is lost, and nothing done twice."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import psycopg
import pytest
import trio
from psycopg import pq

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineJob
from deskwire.engine.events.types import Draft
from deskwire.engine.ports import Transaction
from deskwire.storage.postgres.commit.jobs import Job
from deskwire.storage.postgres.driver.refusals import ConnectionLost
from deskwire.storage.postgres.driver.session import Database, Role
from deskwire.storage.postgres.driver.wire import Wire
from deskwire.storage.postgres.migrations.apply import migrate
from tests.support.builders import NOON, PROJECT
from tests.support.postgres import PostgresServer, fresh_database
from tests.support.postgres_nodes import Line, NodeHere, check_whole, line_to, node, rows, until_one_waits

DURABLE: Final = {"fsync": "on"}
STEPS: Final = 24
PARTS: Final = 16
LAST: Final = 8
"""So many bytes before its end an answer is cut: within the last eighteen, which say that the COMMIT is through and the server ready."""


@asynccontextmanager
async def warm(line: Line) -> AsyncIterator[tuple[NodeHere, list[str]]]:
    """A node behind a line, all of whose statements are prepared, with three conversations."""
    async with node(line.url) as here:
        conversations = [await here.new_conversation(f"user-{number}") for number in range(3)]
        for _ in range(2):
            await post_to(here, conversations)
        yield here, conversations


async def post_to(here: NodeHere, conversations: list[str]) -> list[str]:
    """Post to all of them at once; the ids of what was acknowledged."""
    acknowledged: list[str] = []

    async def one(conversation: str) -> None:
        acknowledged.append(await here.post(conversation))

    async with trio.open_nursery() as nursery:
        for conversation in conversations:
            nursery.start_soon(one, conversation)
    return acknowledged


def stored(url: str) -> list[str]:
    return [message for (message,) in rows(url, "SELECT id FROM messages ORDER BY rowid")]


async def cut_and_go_on(url: str, *, up: bool, stride: int, first: int = 0) -> None:
    """Cut the line at one byte after the other of a batch; each time all is acknowledged in the end, and there once."""
    with line_to(url) as line:
        async with warm(line) as (here, conversations):
            line.start_counting()
            await post_to(here, conversations)
            length = line.sent if up else line.received
            for at in range(first, length + 1, stride):
                before = set(stored(url))
                line.start_counting(at if up else None, None if up else at)
                with trio.fail_after(30):
                    acknowledged = await post_to(here, conversations)
                line.start_counting()
                now = stored(url)
                assert len(now) == len(set(now)) == len(before) + len(acknowledged) == len(before) + 3
                assert set(now) - before == set(acknowledged)
            assert line.cuts >= (length // stride) // 2
            assert here.store.commits.refused == 0
    check_whole(url)


@pytest.mark.parametrize("up", [True, False], ids=["to the server", "to the client"])
async def test_a_batch_may_be_cut_anywhere(postgres_url: str, up: bool) -> None:
    with line_to(postgres_url) as line:
        async with warm(line) as (here, conversations):
            line.start_counting()
            await post_to(here, conversations)
            length = line.sent if up else line.received
    await cut_and_go_on(postgres_url, up=up, stride=max(1, length // STEPS))


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS) if "CUTS" in os.environ else (3, 11))
@pytest.mark.parametrize("up", [True, False], ids=["to the server", "to the client"])
async def test_a_batch_may_be_cut_at_every_byte(postgres_url: str, up: bool, part: int) -> None:
    """An eighth of the places is tried; with CUTS=all in the environment it is every one."""
    await cut_and_go_on(postgres_url, up=up, stride=PARTS, first=part)


async def test_a_session_may_be_cut_anywhere_while_it_begins(postgres_url: str) -> None:
    """Whoever opens it hears of a lost connection, and of nothing else."""
    with line_to(postgres_url) as line:
        wire = Wire(Database(line.url, "test"), "batch")
        line.start_counting()
        await wire.open()
        lost, length = 0, line.received
        for at in range(length):
            wire.close()
            wire = Wire(Database(line.url, "test"), "batch")  # knows no server yet, so it looks at all hosts
            line.start_counting(to_client=at)
            try:
                await wire.open()
            except ConnectionLost:
                lost += 1
        wire.close()
        assert lost > length // 2


async def test_a_server_that_falls_silent_is_not_waited_for_without_end(postgres_url: str) -> None:
    """Behind its greeting, while the settings of the session are made, and while types are asked for."""
    with line_to(postgres_url) as line:
        wire = Wire(Database(f"{line.url}?connect_timeout=1", "test"), "batch")
        line.start_counting()
        await wire.open()
        greeting = line.received
        await wire.describe(["SELECT CAST($1 AS bigint)"])
        wire.close()
        line.silent = True
        for at in range(greeting - 40, greeting, 13):
            wire = Wire(Database(f"{line.url}?connect_timeout=1", "test"), "batch")
            line.start_counting(to_client=at)
            with trio.fail_after(10), pytest.raises(ConnectionLost):
                await wire.open()
        line.start_counting()
        await wire.open()
        line.start_counting(to_client=5)
        with trio.fail_after(10), pytest.raises(ConnectionLost):
            await wire.describe(["SELECT CAST($1 AS bigint)"], 0.2)
        assert not wire.is_open
        line.deliver.set()


async def test_a_session_that_is_lost_as_it_begins_is_no_session(postgres_url: str) -> None:
    class Ending(Database, frozen=True):
        def connect(self, role: Role) -> pq.abc.PGconn:
            connection = super().connect(role)
            connection.exec_(b"SELECT pg_terminate_backend(pg_backend_pid())")
            return connection

    wire = Wire(Ending(postgres_url, "test"), "batch")
    with pytest.raises(ConnectionLost):
        await wire.open()
    assert not wire.is_open


async def test_a_commit_whose_answer_is_lost_is_asked_for_and_not_repeated(postgres_url: str) -> None:
    with line_to(postgres_url) as line:
        async with warm(line) as (here, conversations):
            for _ in range(3):
                line.start_counting()
                await here.post(conversations[0])
            here.commits.clear()
            line.start_counting(to_client=line.received - LAST)
            await here.post(conversations[0])
            assert line.cuts == 1
            assert len(here.commits) == 1
    assert len(stored(postgres_url)) == 6 + 4
    check_whole(postgres_url)


def add_event(tx: Transaction) -> None:
    tx.append_event(PROJECT, Draft("conversation.created", None, {}), None, NOON)


async def test_keys_of_new_rows_are_fetched_anew_behind_a_commit_that_was_asked_for(
    postgres_url: str,
) -> None:
    """The session that asks may be with a standby that has taken over, and gives the same keys again."""
    with line_to(postgres_url) as line:
        async with warm(line) as (here, conversations):
            for _ in range(3):
                line.start_counting()
                await here.post(conversations[0])
            line.start_counting(to_client=line.received - LAST)
            await here.post(conversations[0])
            assert here.store.shared.found_stored == 1
            keys = "SELECT max(rowid), pg_sequence_last_value('conversations_rowid_seq') FROM conversations"
            [(_, given)] = rows(postgres_url, keys)
            await here.new_conversation("another")
            [(made, _)] = rows(postgres_url, keys)
    assert made > given


async def test_a_lane_that_could_not_be_opened_is_opened_by_the_next_job(postgres_url: str) -> None:
    async with node(postgres_url) as here:
        await here.store.write(InlineJob(add_event))
        lone = here.store._writer._lones[0]
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("ALTER TABLE lanes RENAME TO away")
            refused = await trio.to_thread.run_sync(lone.carry_out, Job(add_event, True, print))
            connection.execute("ALTER TABLE away RENAME TO lanes")
        assert refused.refused
        done = await trio.to_thread.run_sync(lone.carry_out, Job(add_event, True, print))
        assert not done.refused
    assert rows(postgres_url, "SELECT count(*) FROM events") == [(2,)]


async def test_a_commit_that_comes_when_it_was_said_not_to_be_stored_stores_nothing(
    postgres_url: str,
) -> None:
    """The bytes of the last round are held up on their way, and what they would store is stored by another batch."""
    with line_to(postgres_url) as line:
        async with node(line.url) as here:
            await here.store.write(InlineJob(add_event))
            line.late = 1  # the piece behind the one that locks the head
            with trio.fail_after(30):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(here.store.write, InlineJob(add_event))
                    # The next batch waits for the head, which the session has that is cut off: the outcome is decided.
                    await until_one_waits(postgres_url)
                    line.deliver.set()
            assert (here.store.shared.found_lost, here.store.shared.found_stored) == (1, 0)
            assert len(here.commits) == 2
            await here.store.write(InlineJob(add_event))
    assert rows(postgres_url, "SELECT count(*) FROM events") == [(3,)]
    check_whole(postgres_url)


async def test_a_commit_that_is_under_way_while_it_is_asked_for_is_waited_for(postgres_url: str) -> None:
    with line_to(postgres_url) as line:
        async with node(line.url) as here:
            await here.store.write(InlineJob(add_event))
            with trio.fail_after(30), psycopg.connect(postgres_url) as other:
                other.execute("SELECT 1 FROM lanes WHERE lane = 0 FOR UPDATE")
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(here.store.write, InlineJob(add_event))
                    await until_one_waits(postgres_url)
                    line.cut()  # all of it has reached the server
                    await until_one_waits(postgres_url, 2)
                    other.commit()
            assert (here.store.shared.found_lost, here.store.shared.found_stored) == (0, 1)
    assert rows(postgres_url, "SELECT count(*) FROM events") == [(2,)]
    check_whole(postgres_url)


async def test_sessions_may_be_ended_at_any_time(postgres_url: str) -> None:
    async with node(postgres_url) as here:
        conversations = [await here.new_conversation(f"user-{number}") for number in range(3)]
        acknowledged: list[str] = []

        async def talk(conversation: str) -> None:
            while not over:
                acknowledged.append(await here.post(conversation))

        over = False
        async with trio.open_nursery() as nursery:
            for conversation in conversations:
                nursery.start_soon(talk, conversation)
            for _ in range(10):
                await trio.sleep(0.1)  # let them write
                rows(
                    postgres_url,
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'deskwire/%' "
                    "AND datname = current_database()",
                )
            over = True
        assert here.store.commits.refused == 0
    assert sorted(stored(postgres_url)) == sorted(acknowledged)
    check_whole(postgres_url)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["fast", "immediate"])
async def test_a_server_may_be_restarted(how: signal.Signals) -> None:
    server = PostgresServer(settings=DURABLE)
    try:
        await trio.to_thread.run_sync(server.create)
        await trio.to_thread.run_sync(server.start)
        await trio.to_thread.run_sync(migrate, server.url())
        async with node(server.url(), patience_s=30) as here:
            conversation = await here.new_conversation()
            acknowledged: list[str] = []
            over = trio.Event()

            async def talk() -> None:
                while not over.is_set():
                    acknowledged.append(await here.post(conversation))
                for _ in range(5):
                    acknowledged.append(await here.post(conversation))

            with trio.fail_after(60):
                async with trio.open_nursery() as nursery:
                    for _ in range(4):
                        nursery.start_soon(talk)
                    await trio.sleep(0.3)  # let them write
                    await trio.to_thread.run_sync(server.restart, how)
                    over.set()
        assert sorted(stored(server.url())) == sorted(acknowledged)
        check_whole(server.url())
    finally:
        await trio.to_thread.run_sync(server.close)


async def test_without_a_database_it_is_refused_and_then_goes_on(postgres_url: str) -> None:
    with line_to(postgres_url) as line:
        async with node(line.url, patience_s=0.5) as here:
            conversation = await here.new_conversation()
            line.refuse = True
            line.cut()
            with pytest.raises(Unavailable) as refused:
                await here.post(conversation)
            assert refused.value.reason == "storage_failed"
            with pytest.raises(Unavailable):
                await here.store.read(lambda reader: reader.organisations())
            line.refuse = False
            await here.post(conversation)
    assert len(stored(postgres_url)) == 1
    check_whole(postgres_url)


async def test_whose_end_nobody_knows_is_told_so(postgres_url: str) -> None:
    with line_to(postgres_url) as line:
        async with node(line.url, patience_s=0.5) as here:
            conversation = await here.new_conversation()
            for _ in range(3):
                line.start_counting()
                await here.post(conversation)
            line.start_counting(to_client=line.received - LAST)
            line.refuse_after_cut = True
            with pytest.raises(Unavailable) as refused:
                await here.post(conversation)
            assert refused.value.reason == "outcome_unknown"
            line.refuse = line.refuse_after_cut = False
            before = len(stored(postgres_url))
            await here.post(conversation)
            assert len(stored(postgres_url)) == before + 1
    check_whole(postgres_url)


async def test_two_processes_of_one_name_are_found_out(postgres_url: str) -> None:
    async with node(postgres_url, "same") as one:
        conversation = await one.new_conversation()
        async with node(postgres_url, "same") as two:
            await two.post(conversation)
            with pytest.raises(Unavailable):
                await one.post(conversation)
    check_whole(postgres_url)


def test_the_line_cuts_where_it_is_told_to() -> None:
    with fresh_database() as url, line_to(url) as line:
        with psycopg.connect(line.url, autocommit=True) as connection:
            connection.execute("SELECT 1")
            line.start_counting(to_server=3)
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 2")
        assert (line.cuts, line.sent) == (1, 3)
