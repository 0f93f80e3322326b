"""Events partitioned by day: dropped, moved and kept rows, and the addition of days (ADR 104)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import psycopg
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from psycopg import errors
from structlog.testing import capture_logs

from deskwire.engine.accounts.people import Project
from deskwire.engine.core.ids import DAY_MS, day_of, id_before, new_id
from deskwire.engine.events.types import EventDraft, StoredEvent
from deskwire.engine.privacy.retention import BATCH_SIZE
from deskwire.storage.postgres import retention
from deskwire.storage.postgres.admin.check import _missing_days, _row_counts
from deskwire.storage.postgres.admin.days import add_days
from deskwire.storage.postgres.admin.scrub import VacuumDuty
from deskwire.storage.postgres.driver.errors import LOCK_NOT_AVAILABLE, DatabaseError
from deskwire.storage.postgres.schema import days
from deskwire.storage.postgres.schema.days import DAYS_AHEAD, EVENTS, add_day, unblock_default
from tests.storage.postgres.test_following import nodes, shown
from tests.support.builders import OTHER_PROJECT, PROJECT, endpoint
from tests.support.postgres import binaries, fresh_database, own_server, shared_server
from tests.support.postgres_nodes import NodeHere, node, rows, without_ownership

P: Final = PROJECT.rowid
HOUR: Final = DAY_MS // 24
MARK: Final = b"UNDER-THE-ROSE"
SPARED: Final = "SELECT 1 FROM pg_constraint WHERE conname = 'events_default_spared'"
RAW: Final = "INSERT INTO events (position, id, project, type, created_at, body, day) VALUES (%s, %s, 1, 'x', 0, '', %s)"


@pytest.fixture
def today(postgres_url: str) -> int:
    [(day,)] = rows(postgres_url, days.TODAY)
    return int(day)


def add(url: str, *wanted: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for day in wanted:
            assert add_day(connection, EVENTS, day)


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def append(at: int, conversation: int | None, sequence: int | None, project: Project, tx: Any) -> StoredEvent:
    event: StoredEvent = tx.append_event(
        project, EventDraft("message.created", sequence, {}), conversation, at
    )
    return event


async def fill(
    here: NodeHere, times: list[int], conversation: int = 7, project: Project = PROJECT
) -> list[StoredEvent]:
    return [
        await here.store.write(partial(append, at, conversation, sequence, project))
        for sequence, at in enumerate(times, 1)
    ]


def append_marked(at: int, tx: Any) -> None:
    tx.append_event(PROJECT, EventDraft("message.created", 1, {"text": MARK.decode()}), None, at)


def deliver(to: int, event: StoredEvent, at: int, tx: Any) -> None:
    tx.insert_delivery(to, event, 7, None, at)


def found_by_id(event_id: str, reader: Any) -> object:
    return reader.event(P, event_id)


def erase_seven(tx: Any) -> None:
    tx.erase_events(7)


async def prune(here: NodeHere, older_than: int) -> int:
    return await here.store.write(lambda tx: tx.prune_events(older_than, BATCH_SIZE, older_than))


def partitions(url: str) -> list[str]:
    return [name for (name,) in rows(url, EVENTS.partitions)]


def placed(url: str) -> list[tuple[int, str]]:
    """Return the events' positions within the project, each with its partition."""
    return rows(url, "SELECT position & 1048575, tableoid::regclass::text FROM events ORDER BY position")


@given(st.integers(0, (1 << 47)))
def test_day_of_an_id_is_the_day_of_its_time(ms: int) -> None:
    assert day_of(new_id("evt", ms)) == ms // DAY_MS
    first = id_before("evt", ms // DAY_MS * DAY_MS)
    assert day_of(first) == ms // DAY_MS


def test_names_of_partitions_are_dates_in_utc() -> None:
    assert EVENTS.partition(20_785) == "events_20261128"
    assert EVENTS.day("events_20261128") == 20_785
    assert EVENTS.day("events_default") is EVENTS.day("events_undated") is None


async def test_retention_drops_a_whole_day_and_counts_its_events(postgres_url: str, today: int) -> None:
    old = today - 9
    add(postgres_url, old, old + 1)
    async with node(postgres_url) as here:
        begin = old * DAY_MS
        made = await fill(here, [begin, begin + HOUR, begin + DAY_MS - 1, begin + DAY_MS, begin + 9 * DAY_MS])
        assert {name for _, name in placed(postgres_url)} == {
            EVENTS.partition(day) for day in (old, old + 1, today)
        }
        with capture_logs() as logs:
            assert await prune(here, begin + DAY_MS - 1) == 0
            assert await prune(here, begin + DAY_MS + 2 * HOUR) == 3
            assert await prune(here, begin + DAY_MS + 2 * HOUR) == 0
        assert [entry["rows"] for entry in logs if entry["event"] == "retention.day_dropped"] == [3]
        assert EVENTS.partition(old) not in partitions(postgres_url)
        assert EVENTS.partition(old + 1) in partitions(postgres_url)
        left = await here.store.read(lambda reader: reader.events(P, 0, 100, frozenset()))
        assert list(left) == made[3:]
        window = await here.store.read(lambda reader: reader.event_window(P))
        assert window == (made[2].id, made[4].id)
        assert await here.store.read(lambda reader: reader.pruned_position(P)) == made[2].position


async def test_newest_event_is_read_without_those_before_it(postgres_url: str, today: int) -> None:
    """A project without events for agents has no event of their level, however far back one looks."""

    def work(tx: Any) -> list[int]:
        for number in range(2_000):
            last = append(today * DAY_MS + number, 7, number + 1, PROJECT, tx)
        taken = []
        for newest in (tx.newest_event_id, tx.newest_id_of_any_event):
            before = _rows_read(tx)
            assert newest(P) == last.id
            taken.append(_rows_read(tx) - before)
        return taken

    async with node(postgres_url) as here:
        newest, of_any_level = await here.store.write(work)
    assert newest <= 2
    assert of_any_level <= 2


def _rows_read(tx: Any) -> int:
    """Return the number of events that this transaction has read from the tables."""
    sql = "SELECT coalesce(sum(idx_tup_fetch + seq_tup_read), 0) FROM pg_stat_xact_user_tables WHERE relname ~ '^events'"
    ((count,),) = tx.conn.execute(sql).fetchall()
    return int(count)


async def test_the_newest_event_of_a_quiet_project_outlives_its_day(postgres_url: str, today: int) -> None:
    old = today - 9
    add(postgres_url, old)
    async with node(postgres_url) as here:
        quiet = await fill(here, [old * DAY_MS, old * DAY_MS + 1], 8, OTHER_PROJECT)
        await fill(here, [old * DAY_MS, today * DAY_MS])
        assert await prune(here, (old + 1) * DAY_MS) == 2
        assert {name for _, name in placed(postgres_url)} == {EVENTS.undated, EVENTS.partition(today)}
        window = await here.store.read(lambda reader: reader.event_window(OTHER_PROJECT.rowid))
        assert window == (quiet[0].id, quiet[1].id)
        [kept] = await here.store.read(lambda reader: reader.events(OTHER_PROJECT.rowid, 0, 9, frozenset()))
        assert kept == quiet[1]

        await here.store.write(partial(append, today * DAY_MS, 8, 3, OTHER_PROJECT))
        assert await prune(here, (old + 1) * DAY_MS) == 1  # the project has a newer event


async def test_dropping_a_day_ends_deliveries_of_its_events(postgres_url: str, today: int) -> None:
    old = today - 9
    add(postgres_url, old)
    async with node(postgres_url) as here:
        whom = await here.store.write(lambda tx: tx.insert_endpoint(endpoint()))
        for at in (old * DAY_MS, today * DAY_MS):
            event = await here.store.write(partial(append, at, 7, None, PROJECT))
            await here.store.write(partial(deliver, whom.rowid, event, at))
        assert await prune(here, (old + 1) * DAY_MS) == 1
        found = rows(postgres_url, "SELECT status, reason IS NULL FROM deliveries ORDER BY position")
        assert found == [("dropped", False), ("pending", True)]


async def test_day_that_a_reader_locks_is_dropped_later(postgres_url: str, today: int) -> None:
    old = today - 9
    add(postgres_url, old)
    async with node(postgres_url) as here:
        await fill(here, [old * DAY_MS, old * DAY_MS + 1, today * DAY_MS])
        with psycopg.connect(postgres_url, application_name="a long export") as reader:
            reader.execute("SELECT count(*) FROM events")
            before = placed(postgres_url)
            with capture_logs() as logs:
                assert await prune(here, (old + 1) * DAY_MS) == 0
            [held] = [entry for entry in logs if entry["event"] == "retention.day_held_up"]
            assert "a long export" in held["sessions"][0]
            assert placed(postgres_url) == before
            assert rows(postgres_url, f"SELECT pruned_position FROM project_heads WHERE project = {P}") == [
                (0,)
            ]
            await fill(here, [today * DAY_MS + 1], 9)  # writers do not wait for the reader
        assert await prune(here, (old + 1) * DAY_MS) == 2


async def test_later_days_are_not_dropped_before_a_locked_day(
    postgres_url: str, today: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the log would have events before its pruned position."""
    old = today - 9
    add(postgres_url, old, old + 1)
    real, refused = retention._drop_events_partition, [EVENTS.partition(old)]

    def drop(conn: Any, partition: str, day: int, at: int) -> int:
        if partition in refused:
            raise DatabaseError(LOCK_NOT_AVAILABLE, "held")
        return real(conn, partition, day, at)

    monkeypatch.setattr(retention, "_drop_events_partition", drop)
    async with node(postgres_url) as here:
        made = await fill(here, [old * DAY_MS, (old + 1) * DAY_MS, today * DAY_MS])
        assert await prune(here, (old + 2) * DAY_MS) == 0
        assert len(placed(postgres_url)) == 3
        refused.clear()
        assert await prune(here, (old + 2) * DAY_MS) == 2
        assert await here.store.read(lambda reader: reader.pruned_position(P)) == made[1].position


async def test_event_stored_during_the_drop_of_its_day_is_kept(
    postgres_url: str, today: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a node whose clock is days late can write such an event."""
    old = today - 9
    add(postgres_url, old)
    late = (9 << 40) + 1
    async with node(postgres_url) as here:
        await fill(here, [old * DAY_MS, today * DAY_MS])
        execute(
            postgres_url,
            "INSERT INTO project_heads (project, position, delivery) VALUES (9, 9 << 40, 9 << 40)",
        )

        real = retention._lock_against_writes

        def write_late(conn: Any, partition: str) -> None:
            with psycopg.connect(postgres_url) as other:
                other.execute(RAW, (late, new_id("evt", old * DAY_MS), old))
            real(conn, partition)

        monkeypatch.setattr(retention, "_lock_against_writes", write_late)
        assert await prune(here, (old + 1) * DAY_MS) == 0
        monkeypatch.undo()
        assert rows(postgres_url, f"SELECT 1 FROM events WHERE position = {late}") == [(1,)]
        assert await prune(here, (old + 1) * DAY_MS) == 1


async def test_an_account_that_does_not_own_the_tables_deletes_rows(postgres_url: str, today: int) -> None:
    old = today - 9
    add(postgres_url, old)
    with without_ownership(postgres_url) as url:
        with capture_logs() as logs:
            assert add_days(url)  # all partitions exist
            execute(postgres_url, f"DROP TABLE {EVENTS.partition(today + DAYS_AHEAD)}")
            assert not add_days(url)
        assert "own the tables" in logs[-1]["advice"]
        async with node(url) as here:
            await fill(here, [old * DAY_MS, old * DAY_MS + 1, today * DAY_MS])
            assert await prune(here, (old + 1) * DAY_MS) == 2
        assert placed(postgres_url)[0][1] == EVENTS.partition(today)
        assert EVENTS.partition(old) in partitions(postgres_url)


async def test_events_of_a_day_without_a_partition_are_kept_and_pruned_by_row(
    postgres_url: str, today: int
) -> None:
    async with node(postgres_url) as here:
        times = [(today - 20) * DAY_MS, today * DAY_MS, (today + 40) * DAY_MS, (today + 40) * DAY_MS + 5]
        made = await fill(here, times)
        assert [name for _, name in placed(postgres_url)] == [
            EVENTS.default,
            EVENTS.partition(today),
            EVENTS.default,
            EVENTS.default,
        ]
        read = await here.store.read(lambda reader: reader.events(P, 0, 100, frozenset()))
        assert list(read) == made
        assert await prune(here, (today - 10) * DAY_MS) == 1
        assert await prune(here, (today + 40) * DAY_MS + 6) == 2


def test_days_are_added_while_the_default_partition_has_rows(postgres_url: str, today: int) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(RAW, ((P << 40) + 1, "evt_1", today + 40))
        connection.execute(RAW, ((P << 40) + 2, "evt_2", today + 30))
        connection.execute("SET client_min_messages = debug1")
        said: list[str] = []
        connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
        assert add_day(connection, EVENTS, today + 20)
        assert any("implied by existing constraints" in each for each in said), (
            "the default partition was read"
        )
        assert not add_day(connection, EVENTS, today + 40)  # it has rows of that day
        assert not add_day(connection, EVENTS, today + 1 - 20)  # the proof would refuse rows
        assert connection.execute(SPARED).fetchall() == []
        connection.execute(RAW, ((P << 40) + 3, "evt_3", today + 40))
    assert EVENTS.partition(today + 20) in partitions(postgres_url)


def test_interrupted_addition_of_a_day_is_undone_before_that_day(postgres_url: str, today: int) -> None:
    """The proof that the default partition has no row of a day refuses such rows until the day's partition
    exists.
    """
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(RAW, ((P << 40) + 1, "evt_1", today + 40))
        assert days._exclude_day(connection, EVENTS, today + 20)
        with pytest.raises(errors.CheckViolation):
            connection.execute(RAW, ((P << 40) + 2, "evt_2", today + 20))
    assert add_days(postgres_url)  # as each node does at its start, and then every hour
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(RAW, ((P << 40) + 2, "evt_2", today + 20))
        unblock_default(connection, EVENTS)


def test_concurrent_nodes_add_each_day_once(postgres_url: str, today: int) -> None:
    with psycopg.connect(postgres_url) as connection:
        for day in range(today, today + DAYS_AHEAD + 1):
            connection.execute(f"DROP TABLE {EVENTS.partition(day)}".encode())
    with ThreadPoolExecutor(4) as pool:
        done = [*pool.map(lambda _: [add_days(postgres_url) for _ in range(5)], range(4))]
    assert all(each[-1] for each in done)
    wanted = [EVENTS.partition(day) for day in range(today, today + DAYS_AHEAD + 1)]
    assert partitions(postgres_url) == [*wanted, EVENTS.default, EVENTS.undated]


def test_addition_of_days_beside_a_long_reader_does_not_block_writers(postgres_url: str, today: int) -> None:
    last = EVENTS.partition(today + DAYS_AHEAD)
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"DROP TABLE {last}".encode())
    with psycopg.connect(postgres_url) as reader:
        reader.execute("SELECT count(*) FROM events")
        with capture_logs() as logs:
            assert not add_days(postgres_url)
        assert logs[-1]["event"] == "storage.days_not_added"
        rows(
            postgres_url,
            "INSERT INTO events (position, id, project, type, created_at, body, day) "
            f"VALUES (1, 'evt_1', 0, 'x', 0, '', {today + DAYS_AHEAD}) RETURNING 1",
        )
    assert not add_days(postgres_url)  # its first row is in the default partition, so it stays there


async def test_followers_read_across_days(today: int) -> None:
    async with nodes(2) as (a, b):
        await b.log.open(P)
        start = b.log.position(P)
        made = []
        for sequence, day in enumerate((today - 30, today, today + 1, today + 1, today + 50), 1):
            made.append(await a.store.write(partial(append, day * DAY_MS, 7, sequence, PROJECT)))
        assert await shown(b, P, start, 5) == made
        behind = await b.store.read(lambda reader: reader.segments([(P, made[1].position)], 10))
        assert list(behind[0].events) == made[2:]
        for event in made:
            assert await b.store.read(partial(found_by_id, event.id)) == event
        lane = await b.store.read(lambda reader: reader.conversation_events(7, 0, 10))
        assert list(lane) == [event.body for event in made]


async def test_an_erasure_reaches_every_day(postgres_url: str, today: int) -> None:
    old = today - 9
    add(postgres_url, old)
    async with node(postgres_url) as here:
        await fill(here, [old * DAY_MS, today * DAY_MS, (today + 40) * DAY_MS])
        other = await fill(here, [(today + 40) * DAY_MS + 1], 8)
        await here.store.write(erase_seven)
        assert rows(postgres_url, "SELECT position FROM events") == [(other[0].position,)]


async def test_files_of_a_dropped_day_are_deleted_and_others_are_vacuumed(
    today: int,
) -> None:
    old, mark = today - 9, MARK
    with fresh_database() as url:
        add(url, old)
        data = shared_server().data
        async with node(url) as here:
            for at in (old * DAY_MS, today * DAY_MS, (today + 50) * DAY_MS):
                await here.store.write(partial(append_marked, at))
            execute(url, "CHECKPOINT")
            paths = [
                data / path
                for (path,) in rows(
                    url,
                    "SELECT pg_relation_filepath(i.inhrelid) FROM pg_inherits i WHERE i.inhparent = 'events'::regclass",
                )
            ]
            assert sum(mark in path.read_bytes() for path in paths) == 3
            assert await prune(here, (old + 1) * DAY_MS) == 1
            execute(url, "CHECKPOINT")
            assert sum(path.exists() and mark in path.read_bytes() for path in paths) == 2
            execute(url, "UPDATE event_window SET scrub_due = 1, erasures = 1")
            assert await trio.to_thread.run_sync(VacuumDuty(url, within_s=1).vacuum_if_due)
            rows(url, "SELECT pg_stat_force_next_flush()")
            after = rows(
                url, "SELECT relname, vacuum_count FROM pg_stat_user_tables WHERE relname LIKE 'events_%'"
            )
            assert {name for name, count in after if count} >= {EVENTS.default, EVENTS.partition(today)}


async def test_kill_during_the_drop_of_a_day_keeps_all_of_it_or_nothing() -> None:
    with own_server(settings={"fsync": "off"}) as server:
        server.run("CREATE DATABASE here")
        url = server.url("here")
        days_before = await trio.to_thread.run_sync(_migrated, url)
        old = days_before - 9
        add(url, old)
        async with node(url, patience_s=30) as here:
            await fill(here, [old * DAY_MS, old * DAY_MS + 1, (old + 9) * DAY_MS])
            killed: list[bool] = []

            def prune_and_die(tx: Any) -> int:
                count: int = tx.prune_events((old + 1) * DAY_MS, BATCH_SIZE, 0)
                if not killed:
                    killed.append(True)
                    server.kill()
                    server.start()
                    with psycopg.connect(url) as beside:
                        assert beside.execute("SELECT count(*) FROM events").fetchone() == (3,)
                return count

            assert await here.store.write(prune_and_die) == 2  # the job is run again
            server.kill()
            server.start()
        assert rows(url, "SELECT count(*) FROM events") == [(1,)]
        assert EVENTS.partition(old) not in partitions(url)
        assert add_days(url)


def _migrated(url: str) -> int:
    from deskwire.storage.postgres.migrations.apply import migrate

    migrate(url)
    return int(rows(url, days.TODAY)[0][0])


async def test_dump_contains_the_days(postgres_url: str, today: int) -> None:
    old = today - 9
    add(postgres_url, old)
    async with node(postgres_url) as here:
        await fill(here, [old * DAY_MS, today * DAY_MS, (today + 50) * DAY_MS])
    with fresh_database(migrated=False) as other:
        dump = await trio.run_process([binaries() / "pg_dump", postgres_url], capture_stdout=True)
        await trio.run_process([binaries() / "psql", "-q", other], stdin=dump.stdout, capture_stdout=True)
        assert placed(other) == placed(postgres_url)
        assert add_days(other)
        async with node(other) as here:
            assert await prune(here, (old + 1) * DAY_MS) == 1


async def test_check_counts_the_table_and_not_its_partitions(postgres_url: str, today: int) -> None:
    async with node(postgres_url) as here:
        await fill(here, [(today - 20) * DAY_MS, today * DAY_MS])
    with psycopg.connect(postgres_url) as connection:
        counts = _row_counts(connection)
    assert counts["events"] == 2
    assert not [name for name in counts if name.startswith("events_")]


def test_check_names_days_without_a_partition(postgres_url: str, today: int) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert [*_missing_days(connection)] == []
        connection.execute(f"DROP TABLE {EVENTS.partition(today + 1)}".encode())
        [note] = _missing_days(connection)
    assert note.startswith(
        f"events has no {EVENTS.partition(today + 1)}: rows of these days are in events_default"
    )
