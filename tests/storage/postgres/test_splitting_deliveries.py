"""The split of filled `deliveries` and `attempts` by days: resumable, without rewriting ended deliveries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest

from deskwire.engine.core.ids import DAY_MS, day_of, new_id
from deskwire.storage.postgres.driver.errors import DatabaseUnusableError
from deskwire.storage.postgres.migrations.apply import migrate
from deskwire.storage.postgres.migrations.list import MIGRATIONS
from deskwire.storage.postgres.schema import days
from deskwire.storage.postgres.schema.days import (
    ATTEMPTS,
    DAYS_AHEAD,
    DELIVERIES,
    TODAY,
    DayTable,
    split_deliveries,
)
from tests.storage.postgres.test_splitting import FILES, INDEXES, Cut, CutOff, fresh_copy
from tests.support.postgres import fresh_database
from tests.support.postgres_nodes import node, rows

NAME: Final = "m0032_deliveries_by_day"
BEFORE: Final = tuple(each for each in MIGRATIONS if each.name < NAME)
DELIVERY: Final = (
    "INSERT INTO deliveries (position, id, endpoint, event, lane, status, attempts, due_at, created_at) "
    "VALUES (%s, %s, 1, 1, 7, %s, 1, 5, 5)"
)
ATTEMPT: Final = "INSERT INTO attempts VALUES (%s, %s, 1, 2, 500, NULL, 'answer')"
STORED: Final = (
    "SELECT d.position, d.id, d.status, d.project, a.number, a.answer FROM deliveries d "
    "LEFT JOIN attempts a ON a.delivery = d.position ORDER BY d.position, a.number"
)
PLACES: Final = (
    "SELECT d.id, d.status, d.day, d.tableoid::regclass::text FROM deliveries d ORDER BY d.position"
)
KEYS: Final = (
    "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = '{}'::regclass AND indisprimary"
)
OPTIONS: Final = "SELECT reloptions FROM pg_class WHERE oid = '{}'::regclass"
ENDED: Final = 300
PENDING: Final = 30


@pytest.fixture
def filled() -> Iterator[str]:
    """Make a database from before the split, with ended deliveries, and pending ones of several days."""
    with fresh_database(migrated=False) as url:
        migrate(url, BEFORE)
        [(today,)] = rows(url, TODAY)
        with psycopg.connect(url) as connection:
            connection.execute("SET session_replication_role = replica")
            connection.execute(
                "INSERT INTO endpoints (id, project, url, events, sealed_secret, secret_tail, status, created_at, updated_at) "
                "VALUES ('whk_1', 1, 'u', '', '', '', 'enabled', 1, 1)"
            )
            for number in range(1, ENDED + PENDING + 1):
                position, status = (1 << 40) + number, "delivered" if number <= ENDED else "pending"
                back = max(0, ENDED + 20 - number)
                identifier = new_id("dlv", (today - back) * DAY_MS + number)
                connection.execute(DELIVERY, (position, identifier, status))
                for attempt in range(1, number % 3 + 1):
                    connection.execute(ATTEMPT, (position, attempt))
        yield url


def partitions(url: str, table: DayTable) -> list[str]:
    return [name for (name,) in rows(url, table.partitions)]


def test_split_keeps_all_deliveries_and_rewrites_no_ended_one(filled: str) -> None:
    files, stored = dict(rows(filled, FILES)), rows(filled, STORED)
    assert NAME in migrate(filled)
    after = dict(rows(filled, FILES))
    assert after[DELIVERIES.undated] == files["deliveries"]
    assert after[ATTEMPTS.undated] == files["attempts"]
    for index in ("deliveries_pkey", "deliveries_by_status", "deliveries_by_sequence", "deliveries_missed"):
        assert after[index] == files[index]
    assert rows(filled, STORED) == stored
    assert NAME not in migrate(filled)


def test_split_dates_pending_deliveries_and_their_attempts(filled: str) -> None:
    migrate(filled)
    [(today,)] = rows(filled, TODAY)
    found = rows(filled, PLACES)
    ended, pending = found[:ENDED], found[ENDED:]
    assert {(status, day, place) for _, status, day, place in ended} == {("delivered", 0, DELIVERIES.undated)}
    assert [(status, day) for _, status, day, _ in pending] == [
        ("pending", day_of(identifier)) for identifier, *_ in pending
    ]
    assert {place for *_, day, place in pending if day < today} == {DELIVERIES.default}
    assert {place for *_, day, place in pending if day == today} == {DELIVERIES.partition(today)}
    assert rows(
        filled,
        "SELECT count(*) FROM attempts a JOIN deliveries d ON d.position = a.delivery WHERE a.day <> d.day",
    ) == [(0,)]


def test_each_partition_has_the_keys_indexes_and_settings_of_its_table(filled: str) -> None:
    wanted = {
        table: sorted(text.split(" USING ")[1] for (text,) in rows(filled, INDEXES.format(table.name)))
        for table in (DELIVERIES, ATTEMPTS)
    }
    wanted[ATTEMPTS] = ["btree (delivery, number, day)"]
    migrate(filled)
    for table, indexes in wanted.items():
        for name in partitions(filled, table):
            found = [text.split(" USING ")[1] for (text,) in rows(filled, INDEXES.format(name))]
            assert sorted(found) == indexes, name
            if name != table.undated or table == DELIVERIES:
                [(options,)] = rows(filled, OPTIONS.format(name))
                assert ", ".join(options or ()) == table.options.replace(" = ", "="), name
    assert rows(filled, KEYS.format("attempts"))
    with psycopg.connect(filled) as connection, pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute(ATTEMPT.replace("'answer'", "'answer', 0"), ((1 << 40) + 1, 1))


def test_interrupted_split_of_deliveries_continues(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(days, "_BATCH_SIZE", 7)
    stored, cuts = rows(filled, STORED), 0
    while True:
        with psycopg.connect(filled, autocommit=True) as connection:
            cut: Any = Cut(connection, cuts)
            try:
                split_deliveries(cut)
            except CutOff:
                cuts += 1
            else:
                break
        assert rows(filled, STORED) == stored
        if cuts % 10 == 0:
            with fresh_copy(filled) as other:  # the rest without a cut
                migrate(other)
                assert rows(other, STORED) == stored
                assert {day for _, status, day, _ in rows(other, PLACES) if status == "pending"} - {0}
    assert cuts > 20
    for table in (DELIVERIES, ATTEMPTS):
        assert len(partitions(filled, table)) == DAYS_AHEAD + 3
    undated = "SELECT count(*) FROM deliveries WHERE status = 'pending' AND day = 0"
    assert rows(filled, undated) == [(0,)]


async def test_split_of_deliveries_is_refused_while_nodes_run(filled: str) -> None:
    """A program that does not name the day could not record an attempt."""
    with psycopg.connect(filled) as connection:
        connection.execute(
            "INSERT INTO nodes (node, run, files, expires, version, epoch_seen) "
            "VALUES ('older', 'r', 'database', clock_timestamp() + interval '1 minute', '0', -1)"
        )
    with pytest.raises(DatabaseUnusableError, match=rf"{NAME}.*Stop all of them first \(older\)"):
        migrate(filled)
    assert rows(filled, "SELECT relkind::text FROM pg_class WHERE relname = 'deliveries'") == [("r",)]
    with psycopg.connect(filled) as connection:
        connection.execute("DELETE FROM nodes")
    async with node(filled) as here:
        assert await here.store.read(lambda reader: reader.outstanding(1, 1_000)) == PENDING
