"""Reads beside the writer."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import AbstractAsyncContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.core.errors import NotFound, Unavailable
from deskwire.engine.core.limits.fair_share import TENANT, Tenant
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.ports import Reader
from deskwire.storage.sqlite.database import connect_writer
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.store import SqliteStore, open_store
from deskwire.storage.sqlite.transaction import SqliteReader
from tests.support.builders import PROJECT, create, post, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.seeing import seen


async def test_read_sees_one_snapshot_despite_later_commits(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        command = create()
        await engine.directory.create(PROJECT, command)

        def sequences(reader: Reader) -> list[int]:
            def look() -> int:
                found = reader.conversation(PROJECT.rowid, command.conversation_id)
                assert found is not None
                return found[0].sequence

            before = look()
            trio.from_thread.run(engine.directory.ask, PROJECT, command.conversation_id, post())
            return [before, look()]

        assert await engine.store.read(sequences) == [1, 1]
        found = seen(engine.store, lambda reader: reader.conversation(PROJECT.rowid, command.conversation_id))
        assert found is not None
        assert found[0].sequence == 2


async def test_equal_values_of_many_states_are_in_memory_once(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:

        async def stored() -> Conversation:
            command = create()
            await engine.directory.create(PROJECT, command)
            wanted = command.conversation_id
            found = seen(engine.store, lambda reader: reader.conversation(PROJECT.rowid, wanted))
            assert found is not None
            assert found[0].id is wanted  # the caller's own, not a second one
            return found[0]

        one, other = await stored(), await stored()
        assert one.status is other.status
        assert one.attributes is other.attributes
        assert one.attributes == {}


async def test_an_inline_query_sees_one_moment_too(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        command = create()
        await engine.directory.create(PROJECT, command)

        def texts(reader: Reader) -> list[int]:
            def look() -> int:
                found = reader.conversation(PROJECT.rowid, command.conversation_id)
                assert found is not None
                return found[0].messages

            before = look()
            with closing(connect_writer(tmp_path / FILE_NAME)) as other:
                other.execute("UPDATE conversations SET messages = messages + 1")
            return [before, look()]

        assert await engine.store.read(InlineQuery(texts)) == [0, 0]
        found = seen(engine.store, lambda reader: reader.conversation(PROJECT.rowid, command.conversation_id))
        assert found is not None
        assert found[0].messages == 1


@pytest.mark.skipif("config.getoption('reads') == 'threaded'", reason="there no query is run inline")
async def test_an_inline_query_is_run_here_and_any_other_in_a_thread(tmp_path: Path) -> None:
    async with store_with(tmp_path, readers=1) as store:
        here = threading.get_ident()
        assert await store.read(InlineQuery(thread)) == here
        assert await store.read(thread) != here


async def test_an_inline_query_can_be_cancelled_as_any_other(tmp_path: Path) -> None:
    asked: list[Reader] = []
    async with store_with(tmp_path, readers=1) as store:
        for query in (asked.append, InlineQuery(asked.append)):
            with trio.CancelScope() as scope:
                scope.cancel()
                await store.read(query)
            assert scope.cancelled_caught
    assert asked == []


async def test_an_inline_query_that_refuses_leaves_no_transaction_open(tmp_path: Path) -> None:
    def refuse(_: Reader) -> None:
        raise NotFound("not there")

    async with store_with(tmp_path, readers=1) as store:
        for _ in range(3):
            with pytest.raises(NotFound):
                await store.read(InlineQuery(refuse))
        assert await store.read(InlineQuery(newest)) == 0


async def test_a_database_that_can_not_be_read_inline_is_unavailable(tmp_path: Path) -> None:
    def broken(reader: Reader) -> None:
        assert isinstance(reader, SqliteReader)
        reader.conn.execute("SELECT * FROM nothing_of_the_kind")

    async with store_with(tmp_path, readers=1) as store:
        with pytest.raises(Unavailable) as refused:
            await store.read(InlineQuery(broken))
    assert refused.value.reason == "storage_failed"


def thread(_: Reader) -> int:
    return threading.get_ident()


def newest(reader: Reader) -> int:
    return reader.last_event_position()


ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"


def endless(reader: Reader) -> None:
    assert isinstance(reader, SqliteReader)
    reader.conn.execute(ENDLESS).fetchone()


@contextmanager
def on_behalf_of(who: Hashable) -> Iterator[Tenant]:
    tenant = Tenant(who)
    token = TENANT.set(tenant)
    try:
        yield tenant
    finally:
        TENANT.reset(token)


async def test_slow_read_of_a_request_is_aborted_and_its_connection_stays_usable(
    tmp_path: Path,
) -> None:
    async with store_with(tmp_path, readers=1, read_timeout_s=0.05) as store:
        for _ in range(3):
            with on_behalf_of("a"), pytest.raises(Unavailable) as refused, trio.fail_after(HANG_TIMEOUT_S):
                await store.read(endless)
            assert (refused.value.reason, refused.value.retry_after_s) == ("read_timeout", 1)
            with on_behalf_of("a"):
                assert await store.read(lambda reader: reader.last_event_position()) == 0


@pytest.mark.thorough
async def test_internal_reads_have_no_timeout(tmp_path: Path) -> None:
    async with store_with(tmp_path, readers=1, read_timeout_s=0.001) as store:

        def long(reader: Reader) -> int:
            assert isinstance(reader, SqliteReader)
            return int(
                reader.conn.execute(f"{ENDLESS.replace('FROM c)', 'FROM c LIMIT 2000000)')}").fetchone()[0]
            )

        assert await store.read(long) == 2_000_000
        with on_behalf_of("a") as tenant:
            tenant.waiting = False  # it has its answer, and the read goes on after it
            assert await store.read(long) == 2_000_000
        with on_behalf_of("a"), pytest.raises(Unavailable):
            await store.read(long)


async def test_reads_of_one_project_leave_a_connection_for_others(tmp_path: Path) -> None:
    held = threading.Event()
    async with store_with(tmp_path, readers=2) as store, trio.open_nursery() as nursery:

        async def hold() -> None:
            with on_behalf_of("greedy"):
                await store.read(lambda _: held.wait())

        for _ in range(10):
            nursery.start_soon(hold)
        await trio.testing.wait_all_tasks_blocked(0.01)
        for who in ("modest", "another", "modest"):
            with on_behalf_of(who), trio.fail_after(HANG_TIMEOUT_S):
                await store.read(lambda reader: reader.last_event_position())
        held.set()


def store_with(directory: Path, **settings: Any) -> AbstractAsyncContextManager[SqliteStore]:
    return open_store(directory, batch=1, on_commit=lambda _: None, **settings)
