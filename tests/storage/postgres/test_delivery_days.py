"""Deliveries and attempts partitioned by day: dropped, moved and kept rows (ADR 104).

Statements must find rows in every partition.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
import trio
from structlog.testing import capture_logs

from deskwire.engine.core.ids import DAY_MS, day_of, new_id
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EventDraft
from deskwire.engine.privacy.retention import BATCH_SIZE
from deskwire.engine.webhooks.delivery import Attempt, Delivery, DeliveryFilter
from deskwire.storage.dialect import POSTGRES
from deskwire.storage.files import DiskFiles
from deskwire.storage.postgres import retention
from deskwire.storage.postgres.admin.check import check
from deskwire.storage.postgres.admin.days import add_days
from deskwire.storage.postgres.commit.batch_statements import query_per_row, shape_of
from deskwire.storage.postgres.driver.codec import translate_placeholders
from deskwire.storage.postgres.migrations.apply import migrate
from deskwire.storage.postgres.schema import days
from deskwire.storage.postgres.schema.days import ATTEMPTS, DELIVERIES, DayTable, add_day
from tests.storage.postgres.test_batches import at_once
from tests.support.builders import PROJECT, endpoint
from tests.support.postgres import fresh_database, own_server, shared_server
from tests.support.postgres_nodes import NodeHere, node, rows, until_one_waits, without_ownership

P: Final = PROJECT.rowid
LANE: Final = 7
MARK: Final = b"ANSWERED-UNDER-THE-ROSE"
EVERYTHING: Final = DeliveryFilter()
PLACED: Final = (
    "SELECT d.position & 1048575, d.tableoid::regclass::text, a.tableoid::regclass::text FROM deliveries d "
    "LEFT JOIN attempts a ON a.delivery = d.position ORDER BY 1, a.number"
)


@pytest.fixture
def today(postgres_url: str) -> int:
    [(day,)] = rows(postgres_url, days.TODAY)
    return int(day)


def add(url: str, *wanted: int, tables: tuple[DayTable, ...] = (DELIVERIES, ATTEMPTS)) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for day in wanted:
            assert all(add_day(connection, table, day) for table in tables)


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def partitions(url: str, table: DayTable = DELIVERIES) -> list[str]:
    return [name for (name,) in rows(url, table.partitions)]


def placed(url: str) -> list[tuple[int, str, str | None]]:
    """Return the deliveries' positions within the project, and the partitions of deliveries and attempts."""
    return rows(url, PLACED)


def attempt(number: int, answer: bytes = b"no", status: int = 500) -> Attempt:
    return Attempt(number, 5, 3, status, None, answer)


def deliver(whom: int, at: int, tx: Any) -> Delivery:
    event = tx.append_event(PROJECT, EventDraft("contact.updated", None, {}), None, at)
    made: Delivery = tx.insert_delivery(whom, event, LANE, None, at)
    return made


def erase_lane(tx: Any) -> None:
    tx.erase_deliveries(LANE)


def fail_one(number: int, delivery: Delivery, tx: Any) -> bool:
    planned = replace(delivery, attempts=number, due_at=9, planned_from=1)
    recorded: bool = tx.record_retry(planned, attempt(number))
    return recorded


def end_one(delivery: Delivery, tx: Any) -> bool:
    recorded: bool = tx.record_end(delivery, attempt(1, b"ok", 200), "delivered", None)
    return recorded


class Shelf:
    """A node with an endpoint and its deliveries."""

    def __init__(self, here: NodeHere, whom: int) -> None:
        self.here = here
        self.whom = whom

    @classmethod
    async def of(cls, here: NodeHere) -> Shelf:
        """Store the endpoint."""
        return cls(here, (await here.store.write(lambda tx: tx.insert_endpoint(endpoint()))).rowid)

    async def put(self, *times: int) -> list[Delivery]:
        """Store a pending delivery for each time."""
        return [await self.here.store.write(partial(deliver, self.whom, at)) for at in times]

    async def fail(self, delivery: Delivery, number: int = 1, answer: bytes = b"no") -> bool:
        """Record a failed attempt that will be retried."""
        planned = replace(delivery, attempts=number, due_at=9, planned_from=1)
        recorded: bool = await self.here.store.write(
            lambda tx: tx.record_retry(planned, attempt(number, answer))
        )
        return recorded

    async def end(self, delivery: Delivery, number: int = 1, answer: bytes = b"ok") -> bool:
        """Record a successful attempt."""
        recorded: bool = await self.here.store.write(
            lambda tx: tx.record_end(delivery, attempt(number, answer, 200), "delivered", None)
        )
        return recorded

    async def prune(self, older_than: int) -> int:
        """Prune deliveries in one commit, as retention does."""
        count: int = await self.here.store.write(lambda tx: tx.prune_deliveries(older_than, BATCH_SIZE))
        return count

    async def attempts(self, delivery: Delivery) -> list[int] | None:
        """Return the numbers of a delivery's attempts; None if the delivery is gone."""
        record = await self.here.store.read(lambda reader: reader.delivery_record(P, delivery.id))
        return None if record is None else [each.number for each in record.attempts]


@asynccontextmanager
async def shelf_beside(url: str, *wanted: int) -> AsyncIterator[Shelf]:
    """Run a node with an endpoint and partitions for these days."""
    add(url, *wanted)
    async with node(url) as here:
        yield await Shelf.of(here)


async def test_retention_drops_a_day_of_deliveries_with_their_attempts(postgres_url: str, today: int) -> None:
    old = today - 9
    add(postgres_url, old, old + 1)
    begin = old * DAY_MS
    async with node(postgres_url) as here:
        shelf = await Shelf.of(here)
        made = await shelf.put(begin, begin + 1, begin + DAY_MS - 1, begin + DAY_MS, today * DAY_MS)
        for each in made[:4]:
            await shelf.fail(each)
            assert await shelf.end(each, 2)
        assert {(dlv, att) for _, dlv, att in placed(postgres_url)} == {
            (DELIVERIES.partition(old), ATTEMPTS.partition(old)),
            (DELIVERIES.partition(old + 1), ATTEMPTS.partition(old + 1)),
            (DELIVERIES.partition(today), None),
        }
        assert await shelf.prune(begin + DAY_MS - 1) == 0
        with capture_logs() as logs:
            assert await shelf.prune(begin + DAY_MS + 5) == 3
        assert [each["rows"] for each in logs if each["event"] == "retention.day_dropped"] == [3]
        assert await shelf.prune(begin + DAY_MS + 5) == 0
        assert DELIVERIES.partition(old) not in partitions(postgres_url)
        assert ATTEMPTS.partition(old) not in partitions(postgres_url, ATTEMPTS)
        assert await shelf.attempts(made[2]) is None
        assert await shelf.attempts(made[3]) == [1, 2]
        assert await shelf.attempts(made[4]) == []
        listed = await here.store.read(
            lambda reader: reader.delivery_records(P, shelf.whom, EVERYTHING, None, 10)
        )
        assert [each.id for each in listed.records] == [made[4].id, made[3].id]
    assert rows(postgres_url, "SELECT count(*) FROM attempts") == [(2,)]


async def test_a_pending_delivery_outlives_its_day_with_its_attempts(postgres_url: str, today: int) -> None:
    old = today - 9
    add(postgres_url, old)
    async with node(postgres_url) as here:
        shelf = await Shelf.of(here)
        live, over = await shelf.put(old * DAY_MS, old * DAY_MS + 1)
        assert await shelf.fail(live)
        assert await shelf.end(over)
        assert await shelf.prune((old + 1) * DAY_MS) == 1
        assert DELIVERIES.partition(old) not in partitions(postgres_url)
        assert placed(postgres_url) == [(1, DELIVERIES.default, ATTEMPTS.default)]
        pending = await here.store.read(lambda reader: reader.pending_deliveries(shelf.whom, 0, 10))
        assert [each.id for each in pending] == [live.id]
        assert await shelf.attempts(live) == [1]

        assert await shelf.fail(live, 1, b"again"), "the same attempt once more"
        assert await shelf.attempts(live) == [1]
        assert await shelf.end(live, 2)
        assert await shelf.attempts(live) == [1, 2]
        again = await here.store.write(lambda tx: tx.redeliver(live.position, today * DAY_MS))
        assert again is not None
        assert await shelf.prune((old + 1) * DAY_MS) == 1
        assert await shelf.attempts(live) is None
        assert await shelf.attempts(again) == []
    assert rows(postgres_url, "SELECT count(*) FROM attempts") == [(0,)]


async def test_day_with_many_pending_deliveries_is_pruned_by_row(
    postgres_url: str, today: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = today - 9
    add(postgres_url, old, old + 1)
    real = retention._pending
    monkeypatch.setattr(retention, "_pending", lambda conn, partition, _: real(conn, partition, 1))
    async with node(postgres_url) as here:
        shelf = await Shelf.of(here)
        made = await shelf.put(*[old * DAY_MS + number for number in range(5)])
        for each in made[2:]:
            await shelf.fail(each)
            await shelf.end(each, 2)
        assert await shelf.prune((old + 1) * DAY_MS) == 3
        assert [place for _, place, _ in placed(postgres_url)] == [DELIVERIES.partition(old)] * 2
        assert rows(postgres_url, "SELECT count(*) FROM attempts") == [(0,)]
        [later] = await shelf.put((old + 1) * DAY_MS)
        await shelf.end(later)
        assert await shelf.prune((old + 2) * DAY_MS) == 1, "the next day does not wait for this one"
        assert DELIVERIES.partition(old + 1) not in partitions(postgres_url)
        assert await shelf.end(made[0])
        assert await shelf.prune((old + 1) * DAY_MS) == 1
        assert placed(postgres_url) == [(2, DELIVERIES.default, None)]


async def test_result_recorded_during_the_drop_of_its_day_is_kept(
    postgres_url: str, today: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = today - 9
    add(postgres_url, old)
    async with node(postgres_url) as here, node(postgres_url, "b") as other:
        shelf = await Shelf.of(here)
        live, ended = await shelf.put(old * DAY_MS, old * DAY_MS + 1)
        real = retention._detach
        results: list[Any] = []

        def end_before(conn: Any, table: DayTable, partition: str) -> None:
            if not results:
                end = f"UPDATE deliveries SET status = 'delivered' WHERE position = {ended.position} RETURNING 1"
                results.extend(rows(postgres_url, end))
            real(conn, table, partition)

        monkeypatch.setattr(retention, "_detach", end_before)
        await shelf.prune((old + 1) * DAY_MS)
        assert placed(postgres_url) == [(1, DELIVERIES.default, None)]
        assert await Shelf(other, shelf.whom).end(live)
        assert await shelf.attempts(live) == [1]


async def test_day_of_deliveries_that_a_reader_locks_is_dropped_later(postgres_url: str, today: int) -> None:
    old = today - 9
    add(postgres_url, old)
    async with node(postgres_url) as here:
        shelf = await Shelf.of(here)
        live, over = await shelf.put(old * DAY_MS, old * DAY_MS)
        await shelf.fail(live)
        await shelf.end(over)
        before = placed(postgres_url)
        for table in ("deliveries", "attempts"):
            with psycopg.connect(postgres_url, application_name="a long export") as reader:
                reader.execute(f"SELECT count(*) FROM {table}".encode())
                with capture_logs() as logs:
                    assert await shelf.prune((old + 1) * DAY_MS) == 0
                [held] = [each for each in logs if each["event"] == "retention.day_held_up"]
                assert "a long export" in held["sessions"][0]
                assert placed(postgres_url) == before
                assert await shelf.fail(live)  # results do not wait for the reader
        assert await shelf.prune((old + 1) * DAY_MS) == 1
        assert placed(postgres_url) == [(1, DELIVERIES.default, ATTEMPTS.default)]


@pytest.mark.parametrize("there", [DELIVERIES, ATTEMPTS])
async def test_day_with_one_partition_is_pruned_by_row_and_then_dropped(
    postgres_url: str, today: int, there: DayTable
) -> None:
    old = today - 9
    add(postgres_url, old, tables=(there,))
    async with node(postgres_url) as here:
        shelf = await Shelf.of(here)
        live, over = await shelf.put(old * DAY_MS, old * DAY_MS)
        await shelf.fail(live)
        await shelf.end(over)
        assert await shelf.prune((old + 1) * DAY_MS) == 1
        assert await shelf.attempts(live) == [1]
        assert there.partition(old) in partitions(postgres_url, there)
        await shelf.end(live, 2)
        assert await shelf.prune((old + 1) * DAY_MS) == 1
        assert placed(postgres_url) == []
        assert await shelf.prune((old + 1) * DAY_MS) == 0
        assert there.partition(old) not in partitions(postgres_url, there)
    assert rows(postgres_url, "SELECT count(*) FROM attempts") == [(0,)]


@pytest.mark.parametrize("there", [DELIVERIES, ATTEMPTS])
async def test_delivery_of_a_node_with_a_late_clock_prevents_the_drop_of_its_day(
    postgres_url: str, today: int, there: DayTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = today - 9
    add(postgres_url, old, tables=(there,))
    async with node(postgres_url) as here:
        shelf = await Shelf.of(here)
        [first] = await shelf.put((old - 1) * DAY_MS)
        real = retention._detach
        begin = old * DAY_MS
        late_id = new_id("dlv", begin)
        late = (
            "INSERT INTO deliveries (position, id, endpoint, event, lane, status, attempts, due_at, created_at, day) "
            f"SELECT position + 1, '{late_id}', endpoint, event, lane, status, 0, 0, {begin}, {old} "
            f"FROM deliveries WHERE position = {first.position}"
        )

        def add_before(conn: Any, table: DayTable, partition: str) -> None:
            execute(postgres_url, late)
            real(conn, table, partition)

        monkeypatch.setattr(retention, "_detach", add_before)
        assert await shelf.prune((old + 1) * DAY_MS) == 0
        assert there.partition(old) in partitions(postgres_url, there)
        stored = rows(postgres_url, f"SELECT day FROM deliveries WHERE position = {first.position + 1}")
        assert stored == [(old,)]


async def test_an_account_that_does_not_own_the_tables_deletes_deliveries_by_row(
    postgres_url: str, today: int
) -> None:
    old = today - 9
    add(postgres_url, old)
    with without_ownership(postgres_url) as url:
        async with shelf_beside(url) as shelf:
            made = await shelf.put(old * DAY_MS, old * DAY_MS + 1)
            for each in made:
                await shelf.end(each)
            assert await shelf.prune((old + 1) * DAY_MS) == 2
            assert placed(postgres_url) == []
            assert rows(postgres_url, "SELECT count(*) FROM attempts") == [(0,)]
            assert DELIVERIES.partition(old) in partitions(postgres_url)


async def test_rows_of_today_are_deleted_by_row_where_they_are_kept_for_hours(
    postgres_url: str, today: int
) -> None:
    async with node(postgres_url) as here:
        shelf = await Shelf.of(here)
        made = await shelf.put(today * DAY_MS, today * DAY_MS + 10_000)
        for each in made:
            await shelf.end(each)
        assert await shelf.prune(today * DAY_MS + 5_000) == 1
        assert await shelf.attempts(made[1]) == [1]


async def test_results_of_several_days_are_recorded_in_one_batch_and_each_once(
    postgres_url: str, today: int
) -> None:
    """Also a repeated result: the second one is refused, or replaces the first."""
    async with shelf_beside(postgres_url, today - 9, today - 1) as shelf:
        times = [(today - back) * DAY_MS + number for number, back in enumerate((0, 1, 9, 30, 0, 1, 9, 30))]
        made = await shelf.put(*times)
        assert await at_once(shelf.here, [partial(fail_one, 1, each) for each in made]) == [True] * 8
        assert await at_once(shelf.here, [partial(fail_one, 1, each) for each in made]) == [True] * 8
        assert await at_once(shelf.here, [partial(end_one, each) for each in made[:4]]) == [True] * 4
        assert (
            await at_once(shelf.here, [partial(end_one, each) for each in made]) == [False] * 4 + [True] * 4
        )
        found = rows(postgres_url, "SELECT delivery, number, answer, day FROM attempts ORDER BY delivery")
        assert found == [(each.position, 1, b"ok", day_of(each.id)) for each in made]
        assert rows(postgres_url, "SELECT DISTINCT status FROM deliveries") == [("delivered",)]


async def test_results_of_several_days_wait_for_another_recorder_and_are_all_kept(
    postgres_url: str, today: int
) -> None:
    """PostgreSQL reads a row again after it has waited for its lock.

    With partitions chosen by a joined day it loses the rows after it.
    """
    async with shelf_beside(postgres_url, today - 9, today - 1) as shelf:
        times = [(today - back) * DAY_MS + number for number in range(2) for back in (9, 1, 0)]
        made = await shelf.put(*sorted(times))
        for number in range(8):  # so that generic plans are in use
            assert all(await at_once(shelf.here, [partial(fail_one, number + 1, each) for each in made]))
        outcomes: list[Any] = []

        async def record() -> None:
            outcomes.extend(await at_once(shelf.here, [partial(end_one, each) for each in made]))

        with psycopg.connect(postgres_url) as other:
            positions = [each.position for each in made[1::2]]
            other.execute("UPDATE deliveries SET status = 'skipped' WHERE position = ANY(%s)", (positions,))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(record)
                await until_one_waits(postgres_url)
                other.commit()
        assert outcomes == [True, False] * 3


def test_merged_update_reads_only_the_days_of_its_rows(postgres_url: str, today: int) -> None:
    """PostgreSQL skips the other partitions when the statement starts, without planning it again for other
    days.
    """
    add(postgres_url, *range(today - 9, today))
    change = "UPDATE deliveries SET status = ? WHERE position = ? {of_day} AND status = 'pending'"
    query = "SELECT position FROM deliveries WHERE position = ? {of_day} AND status = 'pending' FOR UPDATE"
    change, query = (translate_placeholders(POSTGRES.text(each))[0] for each in (change, query))
    shape = shape_of(change)
    assert shape.merged is not None
    assert (shape.day, shape_of(query).day) == (2, 1)
    many = (
        (change, "text, bigint, int", f"'x', 1, {today}"),
        (
            shape.merged,
            "text[], bigint[], int[], int, int",
            f"'{{x}}', '{{1}}', '{{{today}}}', {today}, {today}",
        ),
        (query_per_row(query, 2), "bigint[], int[], int, int", f"'{{1}}', '{{{today}}}', {today}, {today}"),
    )
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SET plan_cache_mode = force_generic_plan")
        for number, (text, types, values) in enumerate(many):
            connection.execute(f"PREPARE p{number} ({types}) AS {text}".encode())
            rows_ = connection.execute(f"EXPLAIN EXECUTE p{number} ({values})".encode()).fetchall()
            plan = " ".join(line for (line,) in rows_)
            # Before version 18 the plan also lists the other partitions.
            scanned = " ".join(line for (line,) in rows_ if " Scan " in line)
            assert DELIVERIES.partition(today) in scanned
            assert DELIVERIES.partition(today - 1) not in scanned
            assert DELIVERIES.default not in scanned
            assert "Subplans Removed: 14" in plan


async def test_plan_made_on_an_empty_day_does_not_scan_the_filled_day(postgres_url: str, today: int) -> None:
    execute(postgres_url, "VACUUM ANALYZE deliveries", "VACUUM ANALYZE attempts")
    async with node(postgres_url) as here:
        shelf = await Shelf.of(here)
        for _ in range(3):
            made = await shelf.put(*[today * DAY_MS] * 9)
            results: list[Any] = [partial(end_one, each) for each in made]
            assert all(await at_once(here, results))
            assert all([await shelf.end(each) for each in await shelf.put(*[today * DAY_MS] * 9)])
    partition = DELIVERIES.partition(today)  # its sessions have ended, so that their statistics are stored
    [(scans,)] = rows(postgres_url, f"SELECT seq_scan FROM pg_stat_user_tables WHERE relname = '{partition}'")
    assert scans < 5, "the VACUUM and the ANALYZE alone"


async def test_deliveries_are_found_by_id_and_by_time_in_every_partition(
    postgres_url: str, today: int
) -> None:
    """Before the split, in partitions, and on days without one."""
    add(postgres_url, today - 9, today - 2)
    async with node(postgres_url) as here:
        shelf = await Shelf.of(here)
        times = [(today - back) * DAY_MS + ms for back in (40, 39, 30, 9, 5, 2, 0) for ms in (0, 7, 7, 9_000)]
        made = await shelf.put(*times)
        for each in made:
            await shelf.end(each)
        first = "SELECT min(position) + 9 FROM deliveries"
        for table, column in (("attempts", "delivery"), ("deliveries", "position")):
            execute(postgres_url, f"UPDATE {table} SET day = 0 WHERE {column} < ({first})")
        assert DELIVERIES.undated in {place for _, place, _ in placed(postgres_url)}

        def ask(reader: Any) -> None:
            for each in made:
                assert reader.delivery_position(P, each.id) == each.position
            for at in [time + ms for time in times for ms in (-1, 0, 1, 10_000)]:
                earlier = [each.position for each in made if each.created_at < at]
                later = [each.position for each in made if each.created_at >= at]
                found = reader.delivery_position_before(P, at)
                assert max(earlier, default=P << 40) <= found < min(later, default=1 << 62)
            for unknown in (new_id("dlv", times[3]), new_id("dlv", 5), "dlv_x", "evt_1"):
                assert reader.delivery_position(P, unknown) is None

        await here.store.read(ask)
        for each in made:
            assert await shelf.attempts(each) == [1]


async def test_an_erasure_reaches_deliveries_and_attempts_of_all_days(postgres_url: str, today: int) -> None:
    add(postgres_url, today - 9)
    async with node(postgres_url) as here:
        shelf = await Shelf.of(here)
        made = await shelf.put(*[(today - back) * DAY_MS for back in (40, 9, 0)])
        for each in made:
            await shelf.end(each)
        execute(
            postgres_url,
            f"UPDATE attempts SET day = 0 WHERE delivery = {made[0].position}",
            f"UPDATE deliveries SET day = 0 WHERE position = {made[0].position}",
        )
        await here.store.write(erase_lane)
        assert placed(postgres_url) == []
        assert rows(postgres_url, "SELECT count(*) FROM attempts") == [(0,)]


async def test_responses_in_the_files_of_a_dropped_day_are_gone(today: int) -> None:
    old = today - 9
    with fresh_database() as url:
        add(url, old)
        data = shared_server().data
        async with node(url) as here:
            shelf = await Shelf.of(here)
            for each in await shelf.put(old * DAY_MS, today * DAY_MS, (today - 50) * DAY_MS):
                await shelf.end(each, 1, MARK)
            execute(url, "CHECKPOINT")
            paths = [
                data / path
                for (path,) in rows(
                    url,
                    "SELECT pg_relation_filepath(i.inhrelid) FROM pg_inherits i WHERE i.inhparent = 'attempts'::regclass",
                )
            ]
            assert sum(MARK in path.read_bytes() for path in paths) == 2  # ids do not go back with the clock
            assert await shelf.prune((old + 1) * DAY_MS) == 1
            execute(url, "CHECKPOINT")
            assert sum(path.exists() and MARK in path.read_bytes() for path in paths) == 1


async def test_kill_during_the_drop_of_deliveries_keeps_the_day_or_nothing() -> None:
    with own_server(settings={"fsync": "off"}) as server:
        server.run("CREATE DATABASE here")
        url = server.url("here")
        await trio.to_thread.run_sync(migrate, url)
        old = int(rows(url, days.TODAY)[0][0]) - 9
        add(url, old)
        async with node(url, patience_s=30) as here:
            shelf = await Shelf.of(here)
            live, over = await shelf.put(old * DAY_MS, old * DAY_MS)
            await shelf.fail(live)
            await shelf.end(over)
            before = placed(url)
            killed: list[bool] = []

            def prune_and_die(tx: Any) -> int:
                count: int = tx.prune_deliveries((old + 1) * DAY_MS, BATCH_SIZE)
                if not killed:
                    killed.append(True)
                    server.kill()
                    server.start()
                    assert placed(url) == before
                return count

            assert await here.store.write(prune_and_die) == 1  # the job is run again
            server.kill()
            server.start()
        assert placed(url) == [(1, DELIVERIES.default, ATTEMPTS.default)]
        assert add_days(url)


async def test_check_finds_deliveries_and_attempts_under_a_wrong_day(
    postgres_url: str, today: int, tmp_path: Path
) -> None:
    async with node(postgres_url) as here:
        shelf = await Shelf.of(here)
        made = await shelf.put(today * DAY_MS, today * DAY_MS)
        await shelf.fail(made[0])

        def codes() -> set[str]:
            report = check(postgres_url, Secrets("s" * 32), DiskFiles(tmp_path), contents=False)
            return {each.code for each in report.problems} & {"delivery_day", "attempt_day"}

        assert await trio.to_thread.run_sync(codes) == set()
        execute(postgres_url, f"UPDATE deliveries SET day = 0 WHERE position = {made[1].position}")
        assert await trio.to_thread.run_sync(codes) == {"delivery_day"}
        execute(postgres_url, f"UPDATE deliveries SET day = {today} WHERE position = {made[1].position}")
        execute(postgres_url, "UPDATE attempts SET day = 0")
        assert await trio.to_thread.run_sync(codes) == {"attempt_day"}
