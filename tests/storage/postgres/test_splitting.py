"""The split of a filled `events` by days: online, without a rewrite, and resumable (ADR 104)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg
import pytest

from deskwire.storage.postgres.admin.scrub import VacuumDuty
from deskwire.storage.postgres.migrations.apply import migrate
from deskwire.storage.postgres.migrations.list import MIGRATIONS
from deskwire.storage.postgres.schema import days
from deskwire.storage.postgres.schema.days import DAYS_AHEAD, EVENTS, split_by_day
from tests.support.postgres import fresh_database, shared_server
from tests.support.postgres_nodes import rows

NAME: Final = "m0027_events_by_day"
BEFORE: Final = tuple(each for each in MIGRATIONS if each.name < NAME)
# the statement of an older program, which does not know days
OLD_INSERT: Final = (
    "INSERT INTO events (position, id, project, conversation, sequence, type, created_at, body) "
    "VALUES (%s, %s, 1, %s, 1, 'message.created', 5, 'body')"
)
FILES: Final = (
    "SELECT relname, relfilenode FROM pg_class WHERE relkind IN ('r', 'i', 't') AND relfilenode <> 0"
)
STORED: Final = (
    "SELECT position, id, conversation, sequence, type, created_at, body FROM events ORDER BY position"
)
INDEXES: Final = """
SELECT replace(pg_get_indexdef(indexrelid), ' ONLY', '') FROM pg_index WHERE indrelid = '{}'::regclass ORDER BY 1
"""


@pytest.fixture
def filled() -> Iterator[str]:
    """Make a database from before the split, with events."""
    with fresh_database(migrated=False) as url:
        migrate(url, BEFORE)
        with psycopg.connect(url) as connection:
            for number in range(1, 500):
                connection.execute(OLD_INSERT, ((1 << 40) + number, f"evt_{number:026d}", number))
        yield url


class CutOff(Exception):
    """Raised where the process is killed."""


class Cut:
    """A connection that is cut before its n-th statement."""

    closed = False

    def __init__(self, connection: psycopg.Connection[Any], after: int) -> None:
        self._connection = connection
        self._left = after

    def execute(self, sql: Any, values: Sequence[Any] = ()) -> Any:
        """Run a statement, or raise CutOff."""
        if not self._left:
            raise CutOff
        self._left -= 1
        return self._connection.execute(sql, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin a transaction, which is rolled back by the cut."""
        with self._connection.transaction():
            yield


def test_split_rewrites_no_file_and_keeps_all_events(filled: str) -> None:
    files, stored = dict(rows(filled, FILES)), rows(filled, STORED)
    assert NAME in migrate(filled)
    after = dict(rows(filled, FILES))
    assert after[EVENTS.undated] == files["events"]
    for index in ("events_pkey", "events_by_sequence", "deletions_by_contact", "erasures_of_events"):
        assert after[index] == files[index]
    assert rows(filled, STORED) == stored
    assert rows(filled, "SELECT DISTINCT tableoid::regclass::text FROM events") == [(EVENTS.undated,)]
    assert NAME not in migrate(filled)


def test_each_partition_has_the_keys_and_indexes_of_the_table(filled: str) -> None:
    wanted = [text.split(" USING ")[1] for (text,) in rows(filled, INDEXES.format("events"))]
    migrate(filled)
    [(today,)] = rows(filled, days.TODAY)
    names = [name for (name,) in rows(filled, EVENTS.partitions)]
    dated = [EVENTS.partition(day) for day in range(today, today + DAYS_AHEAD + 1)]
    assert names == [*dated, EVENTS.default, EVENTS.undated]
    for name in names:
        found = [text.split(" USING ")[1] for (text,) in rows(filled, INDEXES.format(name))]
        assert sorted(found) == sorted(wanted), name
    with psycopg.connect(filled) as connection:
        twice = OLD_INSERT.replace("created_at", "created_at, day").replace("5,", "5, %s,")
        connection.execute(twice, ((2 << 40) + 1, "evt_a", None, today))
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute(twice, ((2 << 40) + 1, "evt_b", None, today))


def test_older_program_works_during_the_split(filled: str) -> None:
    with psycopg.connect(filled, autocommit=True, prepare_threshold=0) as older:
        older.execute(OLD_INSERT, ((1 << 40) + 1_000, "evt_a", 1_000))
        older.execute("SELECT count(*) FROM events WHERE position > %s", (0,))
        migrate(filled)
        older.execute(OLD_INSERT, ((1 << 40) + 1_001, "evt_b", 1_001))
        assert older.execute("SELECT count(*) FROM events WHERE position > %s", (0,)).fetchone() == (501,)
        older.execute("DELETE FROM events WHERE position <= %s AND created_at < 6", ((1 << 40) + 1_000,))
    assert rows(filled, "SELECT position, day, tableoid::regclass::text FROM events") == [
        ((1 << 40) + 1_001, 0, EVENTS.undated)
    ]


def test_interrupted_split_continues_and_refuses_no_row(filled: str) -> None:
    run, number, cuts = split_by_day(EVENTS), 1_000, 0
    while True:
        with psycopg.connect(filled, autocommit=True) as connection:
            try:
                run(Cut(connection, cuts))  # type: ignore[arg-type]
            except CutOff:
                cuts += 1
            else:
                break
            number += 1
            connection.execute(OLD_INSERT, ((1 << 40) + number, f"evt_{number}", number))
            assert connection.execute("SELECT count(*) FROM events").fetchone() == (number - 1_000 + 499,)
        if cuts % 4 == 0:
            with fresh_copy(filled) as other:  # the rest without a cut
                migrate(other)
                assert rows(other, STORED) == rows(filled, STORED)
                assert len(rows(other, EVENTS.partitions)) == DAYS_AHEAD + 3
    assert cuts > 12
    assert len(rows(filled, EVENTS.partitions)) == DAYS_AHEAD + 3


@contextmanager
def fresh_copy(url: str) -> Iterator[str]:
    """Copy a database without sessions; yield the copy's URL."""
    source = url.rpartition("/")[2]
    shared_server().run(f"CREATE DATABASE {source}_copy TEMPLATE {source}")
    try:
        yield shared_server().url(f"{source}_copy")
    finally:
        shared_server().run(f"DROP DATABASE {source}_copy WITH (FORCE)")


def test_split_waits_for_a_long_reader_without_blocking_writers(
    filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(days, "_RETRY_DELAY_S", 0.05)
    with psycopg.connect(filled) as reader, psycopg.connect(filled, autocommit=True) as writer:
        reader.execute("SELECT count(*) FROM events")
        migrating = threading.Thread(target=migrate, args=(filled,))
        migrating.start()
        longest = 0.0
        for number in range(1_000, 1_100):
            began = time.monotonic()
            writer.execute(OLD_INSERT, ((1 << 40) + number, f"evt_{number}", number))
            longest = max(longest, time.monotonic() - began)
            time.sleep(0.01)  # spreads the inserts, so that some of them meet an attempt of the migration
        assert migrating.is_alive()
        reader.rollback()
        migrating.join(60)
        assert not migrating.is_alive()
    assert longest < 30, "one try of a tenth of a second was waited for"
    assert rows(filled, "SELECT count(*) FROM events") == [(599,)]


def test_split_keeps_grants_of_other_accounts(filled: str) -> None:
    role = f"reader_{filled.rpartition('_')[2]}"
    with psycopg.connect(filled) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN; GRANT SELECT, INSERT ON events TO {role}".encode())
    try:
        migrate(filled)
        url = filled.replace("deskwire@", f"{role}@")
        [(today,)] = rows(filled, days.TODAY)
        for name in ("events", EVENTS.default, EVENTS.partition(today), EVENTS.partition(today + DAYS_AHEAD)):
            assert rows(url, f"SELECT has_table_privilege('{name}', 'INSERT, SELECT')") == [(True,)]
            assert rows(url, f"SELECT has_table_privilege('{name}', 'DELETE')") == [(False,)]
        assert rows(url, "SELECT count(*) FROM events") == [(499,)]
    finally:
        with psycopg.connect(filled) as owner:
            owner.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


def test_vacuum_of_an_older_program_leaves_erasures_due(filled: str) -> None:
    """The older program skips the partitions, which may hold erased bytes."""
    migrate(filled)
    with psycopg.connect(filled, autocommit=True) as erasing:
        erasing.execute("UPDATE event_window SET scrub_due = 5, erasures = erasures + 1")
    with psycopg.connect(filled, autocommit=True, application_name="deskwire/vacuum") as older:
        older.execute("UPDATE event_window SET scrub_due = 0")
    assert rows(filled, "SELECT scrub_due FROM event_window") == [(5,)]
    assert VacuumDuty(filled, within_s=1).vacuum_if_due()
    assert rows(filled, "SELECT scrub_due FROM event_window") == [(0,)]
