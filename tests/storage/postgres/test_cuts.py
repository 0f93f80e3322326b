"""Lost connections, servers and commit responses: nothing is lost, and nothing happens twice."""

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
from deskwire.engine.events.types import EventDraft
from deskwire.engine.ports import Transaction
from deskwire.storage.postgres.commit.batch_run import Job
from deskwire.storage.postgres.driver.errors import ConnectionLost
from deskwire.storage.postgres.driver.pipeline import PipelineConnection
from deskwire.storage.postgres.driver.session import Database, Role
from deskwire.storage.postgres.migrations.apply import migrate
from tests.support.builders import NOON, PROJECT
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.postgres import PostgresServer, fresh_database
from tests.support.postgres_nodes import Line, NodeHere, check_whole, line_to, node, rows, until_one_waits

DURABLE: Final = {"fsync": "on"}
STEPS: Final = 24
PARTS: Final = 16
# A response is cut this many bytes before its end. The last eighteen bytes say that the COMMIT is done and
# the server is ready.
LAST: Final = 8


@asynccontextmanager
async def warm(line: Line) -> AsyncIterator[tuple[NodeHere, list[str]]]:
    """Run a node over a relay, with three conversations, and all statements prepared."""
    async with node(line.url) as here:
        conversations = [await here.new_conversation(f"user-{number}") for number in range(3)]
        for _ in range(2):
            await post_to(here, conversations)
        yield here, conversations


async def post_to(here: NodeHere, conversations: list[str]) -> list[str]:
    """Post to all conversations concurrently; return the ids of acknowledged messages."""
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
    """Cut the connection at one byte of a batch after the other; each message must be stored once in the end."""
    with line_to(url) as line:
        async with warm(line) as (here, conversations):
            line.start_counting()
            await post_to(here, conversations)
            length = line.sent if up else line.received
            for at in range(first, length + 1, stride):
                before = set(stored(url))
                line.start_counting(at if up else None, None if up else at)
                with trio.fail_after(HANG_TIMEOUT_S):
                    acknowledged = await post_to(here, conversations)
                line.start_counting()
                now = stored(url)
                assert len(now) == len(set(now)) == len(before) + len(acknowledged) == len(before) + 3
                assert set(now) - before == set(acknowledged)
            assert line.cuts >= (length // stride) // 2
            assert here.store.commits.refused == 0
    check_whole(url)


@pytest.mark.parametrize("up", [True, False], ids=["to the server", "to the client"])
async def test_batch_survives_a_cut_anywhere(postgres_url: str, up: bool) -> None:
    with line_to(postgres_url) as line:
        async with warm(line) as (here, conversations):
            line.start_counting()
            await post_to(here, conversations)
            length = line.sent if up else line.received
    await cut_and_go_on(postgres_url, up=up, stride=max(1, length // STEPS))


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS) if "CUTS" in os.environ else (3, 11))
@pytest.mark.parametrize("up", [True, False], ids=["to the server", "to the client"])
async def test_batch_survives_a_cut_at_every_byte(postgres_url: str, up: bool, part: int) -> None:
    """An eighth of the positions is tried; with CUTS=all in the environment, every one."""
    await cut_and_go_on(postgres_url, up=up, stride=PARTS, first=part)


async def test_cut_while_a_session_opens_raises_connection_lost(postgres_url: str) -> None:
    """The caller gets ConnectionLost, and no other error."""
    with line_to(postgres_url) as line:
        wire = PipelineConnection(Database(line.url, "test"), "batch")
        line.start_counting()
        await wire.open()
        lost, length = 0, line.received
        for at in range(length):
            wire.close()
            # No server is known yet, so all hosts are tried.
            wire = PipelineConnection(Database(line.url, "test"), "batch")
            line.start_counting(to_client=at)
            try:
                await wire.open()
            except ConnectionLost:
                lost += 1
        wire.close()
        assert lost > length // 2


async def test_opening_gives_up_on_a_server_that_falls_silent(postgres_url: str) -> None:
    """After the greeting, during the session's settings, and while value types are queried."""
    with line_to(postgres_url) as line:
        wire = PipelineConnection(Database(f"{line.url}?connect_timeout=1", "test"), "batch")
        line.start_counting()
        await wire.open()
        greeting = line.received
        await wire.describe(["SELECT CAST($1 AS bigint)"])
        wire.close()
        line.silent = True
        for at in range(greeting - 40, greeting, 13):
            wire = PipelineConnection(Database(f"{line.url}?connect_timeout=1", "test"), "batch")
            line.start_counting(to_client=at)
            with trio.fail_after(HANG_TIMEOUT_S), pytest.raises(ConnectionLost):
                await wire.open()
        line.start_counting()
        await wire.open()
        line.start_counting(to_client=5)
        with trio.fail_after(HANG_TIMEOUT_S), pytest.raises(ConnectionLost):
            await wire.describe(["SELECT CAST($1 AS bigint)"], 0.2)
        assert not wire.is_open
        line.deliver.set()


async def test_session_lost_while_opening_is_not_kept(postgres_url: str) -> None:
    class Ending(Database, frozen=True):
        def connect(self, role: Role) -> pq.abc.PGconn:
            connection = super().connect(role)
            connection.exec_(b"SELECT pg_terminate_backend(pg_backend_pid())")
            return connection

    wire = PipelineConnection(Ending(postgres_url, "test"), "batch")
    with pytest.raises(ConnectionLost):
        await wire.open()
    assert not wire.is_open


async def test_commit_without_a_response_is_looked_up_and_not_repeated(postgres_url: str) -> None:
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
    tx.append_event(PROJECT, EventDraft("conversation.created", None, {}), None, NOON)


async def test_keys_of_new_rows_are_fetched_again_after_a_commit_lookup(
    postgres_url: str,
) -> None:
    """The session that looks up the commit may be with a promoted standby, which gives the same keys again."""
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


async def test_next_job_opens_a_lane_that_failed_to_open(postgres_url: str) -> None:
    async with node(postgres_url) as here:
        await here.store.write(InlineJob(add_event))
        lone = here.store._writer._runners[0]
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("ALTER TABLE lanes RENAME TO away")
            refused = await trio.to_thread.run_sync(lone.carry_out, Job(add_event, True, print))
            connection.execute("ALTER TABLE away RENAME TO lanes")
        assert refused.refused
        done = await trio.to_thread.run_sync(lone.carry_out, Job(add_event, True, print))
        assert not done.refused
    assert rows(postgres_url, "SELECT count(*) FROM events") == [(2,)]


async def test_commit_that_arrives_after_its_lookup_stores_nothing(
    postgres_url: str,
) -> None:
    """The bytes of the last round are delayed, and another batch stores the same changes."""
    with line_to(postgres_url) as line:
        async with node(line.url) as here:
            await here.store.write(InlineJob(add_event))
            line.late = 1  # the packet after the one that locks the head
            with trio.fail_after(HANG_TIMEOUT_S):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(here.store.write, InlineJob(add_event))
                    # The next batch waits for the head, which the lost session holds: the outcome is decided.
                    await until_one_waits(postgres_url)
                    line.deliver.set()
            assert (here.store.shared.found_lost, here.store.shared.found_stored) == (1, 0)
            assert len(here.commits) == 2
            await here.store.write(InlineJob(add_event))
    assert rows(postgres_url, "SELECT count(*) FROM events") == [(3,)]
    check_whole(postgres_url)


async def test_lookup_waits_for_a_running_commit(postgres_url: str) -> None:
    with line_to(postgres_url) as line:
        async with node(line.url) as here:
            await here.store.write(InlineJob(add_event))
            with trio.fail_after(HANG_TIMEOUT_S), psycopg.connect(postgres_url) as other:
                other.execute("SELECT 1 FROM lanes WHERE lane = 0 FOR UPDATE")
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(here.store.write, InlineJob(add_event))
                    await until_one_waits(postgres_url)
                    line.cut()  # all bytes have reached the server
                    await until_one_waits(postgres_url, 2)
                    other.commit()
            assert (here.store.shared.found_lost, here.store.shared.found_stored) == (0, 1)
    assert rows(postgres_url, "SELECT count(*) FROM events") == [(2,)]
    check_whole(postgres_url)


async def test_writes_survive_ended_sessions(postgres_url: str) -> None:
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
                await trio.sleep(0.1)  # allow writes again
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
async def test_writes_survive_a_server_restart(how: signal.Signals) -> None:
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

            with trio.fail_after(HANG_TIMEOUT_S):
                async with trio.open_nursery() as nursery:
                    for _ in range(4):
                        nursery.start_soon(talk)
                    await trio.sleep(0.3)  # allow writes again
                    await trio.to_thread.run_sync(server.restart, how)
                    over.set()
        assert sorted(stored(server.url())) == sorted(acknowledged)
        check_whole(server.url())
    finally:
        await trio.to_thread.run_sync(server.close)


async def test_write_without_a_database_is_refused_and_works_again_later(postgres_url: str) -> None:
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


async def test_commit_with_an_unknown_outcome_is_reported_as_such(postgres_url: str) -> None:
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


async def test_second_process_with_the_same_node_name_is_detected(postgres_url: str) -> None:
    async with node(postgres_url, "same") as one:
        conversation = await one.new_conversation()
        async with node(postgres_url, "same") as two:
            await two.post(conversation)
            with pytest.raises(Unavailable):
                await one.post(conversation)
    check_whole(postgres_url)


def test_relay_cuts_at_the_given_byte() -> None:
    with fresh_database() as url, line_to(url) as line:
        with psycopg.connect(line.url, autocommit=True) as connection:
            connection.execute("SELECT 1")
            line.start_counting(to_server=3)
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 2")
        assert (line.cuts, line.sent) == (1, 3)
