"""Stuck sessions, deadlocks, and commits that may be lost."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any, Final

import psycopg
import pytest
import trio

from deskwire.engine.accounts.people import Project
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.ports import Transaction
from deskwire.storage.postgres.admin.watchdog import end_stuck_sessions, run_wait_watchdog, run_watchdog
from deskwire.storage.postgres.commit.batch_run import Job
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.pipeline import PipelineConnection, Statement
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.migrations.apply import migrate
from tests.support.builders import NOON, OTHER_PROJECT, PROJECT, create, endpoint
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.postgres import PostgresServer
from tests.support.postgres_nodes import check_whole, node, rows, until_found, until_one_waits

HEAD: Final = "SELECT 1 FROM project_heads WHERE project = 1 FOR UPDATE"
STOPPED: Final = (
    "SELECT 1 FROM pg_stat_activity "
    "WHERE application_name = 'deskwire/batch/stopped' AND datname = current_database()"
)


async def test_server_ends_a_session_that_stops_in_a_transaction(postgres_url: str) -> None:
    async with node(postgres_url) as here:
        conversation = await here.new_conversation()
        stopped = PipelineConnection(Database(postgres_url, "stopped"), "batch")
        # No further statement follows, as if the client were stopped.
        await stopped.exchange([Statement("BEGIN"), Statement(HEAD)])

        began = trio.current_time()
        await here.post(conversation)

        assert 0.5 < trio.current_time() - began < 9
        stopped.close()
    check_whole(postgres_url)


async def test_watchdog_ends_a_session_that_stops_in_a_pipeline(postgres_url: str) -> None:
    async with node(postgres_url) as here:
        conversation = await here.new_conversation()
        stopped = await stop_in_a_pipeline(postgres_url)
        run_watchdog = BlockingConnection(Database(postgres_url, "watch"), "beat")
        young = end_stuck_sessions(run_watchdog)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(here.post, conversation)
            await trio.sleep(0.6)  # the transaction has to become that old
            assert rows(postgres_url, "SELECT count(*) FROM messages") == [(0,)]
            assert young == 0
            assert await trio.to_thread.run_sync(end_stuck_sessions, run_watchdog, 0.5) >= 1
        run_watchdog.close()
        stopped.close()
    assert rows(postgres_url, "SELECT count(*) FROM messages") == [(1,)]
    check_whole(postgres_url)


async def stop_in_a_pipeline(url: str) -> PipelineConnection:
    """Stop a batch's session that holds the head; without a Sync it is active to the server, not idle."""
    stopped = PipelineConnection(Database(url, "stopped"), "batch")
    await stopped.open()
    connection: Any = stopped._session()
    for text in (b"BEGIN", HEAD.encode()):
        connection.send_query_params(text, None)
    connection.send_flush_request()
    assert connection.flush() == 0
    await until_found(url, f"{STOPPED} AND query LIKE '%FOR UPDATE' AND wait_event = 'ClientRead'")
    return stopped


@pytest.mark.parametrize("who", ["the duty's holder", "a node that waits"])
async def test_stuck_session_is_ended_by_a_waiting_node_and_by_the_leader(
    postgres_url: str, who: str
) -> None:
    async with node(postgres_url) as here, trio.open_nursery() as nursery:
        conversation = await here.new_conversation()
        database = here.store.database
        assert here.store.waited_s() == 0
        stopped = await stop_in_a_pipeline(postgres_url)
        if who == "a node that waits":
            nursery.start_soon(run_wait_watchdog, database, here.store.waited_s, 0.3, 0.5)
        else:
            nursery.start_soon(run_watchdog, database, 0.2, 0.5)
        began = trio.current_time()
        await here.post(conversation)
        assert trio.current_time() - began < 9, "the server alone ends it after ten seconds, the younger ones"
        await until_found(postgres_url, f"SELECT 1 WHERE NOT EXISTS ({STOPPED})")  # so the head was free
        stopped.close()
        nursery.cancel_scope.cancel()
    check_whole(postgres_url)


async def test_node_without_waiting_writes_opens_no_watchdog_session(postgres_url: str) -> None:
    """The leader watches the sessions of other nodes."""
    async with node(postgres_url) as here, trio.open_nursery() as nursery:
        await here.new_conversation()
        looks = 0

        def waited_s() -> float:
            nonlocal looks
            looks += 1
            if looks == 3:
                nursery.cancel_scope.cancel()
            return here.store.waited_s()

        stopped = await stop_in_a_pipeline(postgres_url)
        await run_wait_watchdog(here.store.database, waited_s, 0.2, 0.0)
    assert looks == 3
    assert rows(postgres_url, STOPPED) == [(1,)]
    stopped.close()


async def test_change_of_an_endpoint_locks_the_head_before_the_epoch(postgres_url: str) -> None:
    """Batches lock in this order: the holder of the head may wait for the epoch, and never for a session that
    waits for the head.
    """
    async with node(postgres_url) as here:
        await here.store.write(lambda tx: tx.insert_endpoint(endpoint()))
        [(before,)] = rows(postgres_url, "SELECT epoch FROM installation")
        with psycopg.connect(postgres_url) as batch:
            batch.execute(HEAD)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(here.store.write, change_url)
                await until_one_waits(postgres_url)
                batch.execute("SET LOCAL lock_timeout = '200ms'")  # shorter than the deadlock timeout
                batch.execute("UPDATE installation SET epoch = epoch + 1")
                batch.commit()
    assert rows(postgres_url, "SELECT epoch FROM installation") == [(before + 2,)]
    assert rows(postgres_url, "SELECT url FROM endpoints") == [("https://example.com/b",)]


async def test_pruning_locks_heads_after_all_other_locks(postgres_url: str) -> None:
    """Otherwise it deadlocks with a batch that has a delivery of the second project and needs the first one's
    head.
    """
    async with node(postgres_url) as here:
        for project in (PROJECT, OTHER_PROJECT):
            await here.store.write(partial(insert_endpoint, project))
            for user in ("ada", "bob"):
                await here.actors.create(project, create(user, project=project))
        with psycopg.connect(postgres_url) as batch:
            batch.execute("SELECT 1 FROM deliveries WHERE position >> 40 = 2 FOR UPDATE")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(here.store.write, lambda tx: tx.prune_events(2 * NOON, 500, NOON))
                await until_one_waits(postgres_url)
                batch.execute(HEAD + " NOWAIT")
                batch.commit()
    assert rows(postgres_url, "SELECT project, pruned_position > 0 FROM project_heads ORDER BY 1") == [
        (1, True),
        (2, True),
    ]


def insert_endpoint(project: Project, tx: Transaction) -> None:
    tx.insert_endpoint(endpoint(project))


def change_url(tx: Any) -> None:
    tx.conn.execute("UPDATE endpoints SET url = 'https://example.com/b'")


async def test_deadlocked_jobs_are_both_done_in_the_end(postgres_url: str) -> None:
    meet = threading.Barrier(2)

    def crossing(first: str, second: str) -> Any:
        tries = 0

        def job(tx: Any) -> int:
            nonlocal tries
            tries += 1
            for number, name in enumerate((first, second)):
                tx.conn.execute("UPDATE contacts SET name = ? WHERE user_id = ?", (name, name))
                if number == 0 and tries == 1:
                    meet.wait(10)
            return tries

        return job

    async with node(postgres_url, "a") as one, node(postgres_url, "b") as two:
        for user in ("ada", "bob"):
            await one.new_conversation(user)
        tries: list[int] = []

        async def run(store: Any, job: Any) -> None:
            # As jobs with a transaction of their own, several of which run concurrently.
            lone = store._writer._runners[0]
            done = await trio.to_thread.run_sync(lone.carry_out, Job(job, True, print))
            tries.append(done.outcome)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, one.store, crossing("ada", "bob"))
            nursery.start_soon(run, two.store, crossing("bob", "ada"))

        assert len(tries) == 2
        assert max(tries) > 1, "one of them was rolled back, and run again"
    assert rows(postgres_url, "SELECT count(*) FROM contacts WHERE name = user_id") == [(2,)]


async def test_jobs_that_are_not_brief_run_one_at_a_time_on_all_nodes(postgres_url: str) -> None:
    def count_up(tx: Any) -> None:
        (count,) = tx.conn.execute("SELECT count(*) FROM organisations").fetchone()
        threading.Event().wait(0.01)  # time for another session to read the same rows
        tx.insert_organisation(f"org_{count}", f"{count}", 1)

    async with node(postgres_url, "a") as one, node(postgres_url, "b") as two, trio.open_nursery() as nursery:
        for _ in range(5):
            for here in (one, two):
                nursery.start_soon(here.store.write, count_up)
    names = [name for (name,) in rows(postgres_url, "SELECT name FROM organisations WHERE name <> 'Acme'")]
    assert sorted(names, key=int) == [f"{number}" for number in range(1, 11)]


@pytest.fixture(scope="module")
def pair() -> Any:
    """Start a server and its synchronous standby."""
    primary = PostgresServer(settings={"fsync": "on"})
    standby = PostgresServer(settings={"fsync": "on"})
    try:
        primary.create()
        primary.start()
        migrate(primary.url())
        standby.create_standby(primary)
        standby.start()
        primary.run(f"ALTER SYSTEM SET synchronous_standby_names = '\"{standby.directory.name}\"'")
        yield primary, standby
    finally:
        standby.close()
        primary.close()


async def break_off(url: str) -> None:
    """Abort the wait of commits for the standby, once one waits."""
    found: list[Any] = []
    with trio.fail_after(HANG_TIMEOUT_S):
        while not found:
            found = await trio.to_thread.run_sync(
                rows, url, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            )


async def test_commit_with_an_aborted_wait_for_the_standby_is_not_acknowledged(pair: Any) -> None:
    primary, standby = pair
    url = primary.url()
    async with node(url, patience_s=3) as here:
        conversation = await here.new_conversation()
        await here.post(conversation)
        primary.run("SELECT pg_reload_conf()")
        await here.post(conversation)
        standby.run("SELECT pg_wal_replay_pause()")
        standby.stop()  # now no COMMIT gets a response
        refused: list[str] = []

        async def post() -> None:
            try:
                await here.post(conversation)
            except Unavailable as refusal:
                refused.append(refusal.reason)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(post)
            await break_off(url)
        assert rows(url, "SELECT count(*) FROM messages") == [(3,)], "it can be read"
        assert refused == ["outcome_unknown"], "and yet nobody was told that it is stored"

        standby.start()
        with trio.fail_after(HANG_TIMEOUT_S):
            await here.post(conversation)
    check_whole(url)


async def test_aborted_commit_is_looked_up_when_the_standby_is_back(pair: Any) -> None:
    primary, standby = pair
    url = primary.url()
    primary.run("SELECT pg_reload_conf()")
    async with node(url, "c", patience_s=20) as here:
        conversation = await here.new_conversation("user-2")
        before = rows(url, "SELECT count(*) FROM messages")[0][0]
        standby.stop()

        async def cancel_and_return() -> None:
            await break_off(url)
            await trio.to_thread.run_sync(standby.start)

        with trio.fail_after(HANG_TIMEOUT_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(cancel_and_return)
                await here.post(conversation)
        assert rows(url, "SELECT count(*) FROM messages") == [(before + 1,)]
    check_whole(url)


async def test_a_transaction_sees_its_own_writes_and_others_only_committed_ones(postgres_url: str) -> None:
    seen: list[int] = []

    def job(tx: Transaction) -> None:
        tx.insert_organisation("org_1", "One", 1)
        seen.append(len(tx.organisations()))
        with psycopg.connect(postgres_url) as other:
            (count,) = other.execute("SELECT count(*) FROM organisations").fetchone() or (None,)
            seen.append(count)

    async with node(postgres_url) as here:
        await here.store.write(job)
    assert seen == [2, 1]


async def test_no_write_is_acknowledged_while_the_standby_is_gone(pair: Any) -> None:
    primary, standby = pair
    url = primary.url()
    primary.run("SELECT pg_reload_conf()")
    async with node(url, "d", patience_s=1) as here:
        conversation = await here.new_conversation("user-3")
        await here.post(conversation)
        await here.store.write(lambda tx: tx.insert_organisation("org_before", "Before", 1))
        standby.stop()
        reasons: list[str] = []

        async def refused(work: Any) -> None:
            with pytest.raises(Unavailable) as refusal:
                await work()
            reasons.append(refusal.value.reason)

        def insert(tx: Transaction) -> int:
            return tx.insert_organisation("org_meanwhile", "Meanwhile", 1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(refused, lambda: here.post(conversation))
            nursery.start_soon(refused, lambda: here.store.write(insert))
        assert reasons == ["outcome_unknown"] * 2
        await trio.to_thread.run_sync(standby.start)
        with trio.fail_after(HANG_TIMEOUT_S):
            await here.post(conversation)
    check_whole(url)
