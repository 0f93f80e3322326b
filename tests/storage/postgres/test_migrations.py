"""Migrations of a PostgreSQL database: applied once by the first node, and refused to unfit programs."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlite_utils import Database

from deskwire.engine.core.build import version
from deskwire.storage.postgres.driver.errors import DatabaseUnusableError
from deskwire.storage.postgres.migrations import apply
from deskwire.storage.postgres.migrations.apply import migrate, require_migrated
from deskwire.storage.postgres.migrations.list import MIGRATIONS, TABLES, Migration
from deskwire.storage.sqlite.migrations.apply import migrations
from tests.support.postgres import shared_server

TABLE_NAMES = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition"
# Tables whose purpose another table or an index serves on PostgreSQL, or that PostgreSQL does not need.
SQLITE_ALONE = {
    "message_times",
    "project_events",
    "search_source",
    "search_changes",
    "search_upkeep",
    "ticket_search",
}
# Columns that PostgreSQL has in the projects' heads or replaces by an index.
DIFFERENT = {
    "event_window": {"pruned_position", "pruned_id", "spent_position", "spent_id"},
    "kept_answers": {"near"},
}
NEXT = Migration("m9001_next", "m0001_baseline", "ALTER TABLE teams ADD COLUMN next bigint")
INDEX = Migration(
    "m9002_index",
    "m0001_baseline",
    indexes=("CREATE INDEX CONCURRENTLY IF NOT EXISTS teams_next ON teams (next)",),
)
UNIQUE = Migration(
    "m9002_unique",
    "m0001_baseline",
    indexes=("CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS doomed_once ON doomed_files (sha256)",),
)
HARD = Migration("m9003_hard", "m9003_hard", "ALTER TABLE teams DROP COLUMN name")


def applied(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM schema_migrations ORDER BY name")]


def test_empty_database_is_migrated_once(empty_postgres_url: str) -> None:
    assert migrate(empty_postgres_url) == [each.name for each in MIGRATIONS]
    assert migrate(empty_postgres_url) == []
    require_migrated(empty_postgres_url)


@pytest.mark.parametrize("beyond", [(), (NEXT, INDEX)], ids=["baseline", "index"])
def test_one_of_several_starting_nodes_migrates_and_the_others_wait(
    empty_postgres_url: str, beyond: tuple[Migration, ...]
) -> None:
    wanted = (*MIGRATIONS, *beyond)
    together = threading.Barrier(4)

    def start() -> list[str]:
        together.wait()
        return migrate(empty_postgres_url, wanted)

    with ThreadPoolExecutor(4) as pool:
        done = [each.result() for each in [pool.submit(start) for _ in range(4)]]
    assert sorted(done, key=len) == [[], [], [], [each.name for each in wanted]]


def test_database_with_tables_of_another_program_is_refused(empty_postgres_url: str) -> None:
    with psycopg.connect(empty_postgres_url) as connection:
        connection.execute("CREATE TABLE users (name text)")
    with pytest.raises(
        DatabaseUnusableError, match=r"tables of another program \(users\): name an empty one"
    ):
        migrate(empty_postgres_url)
    with psycopg.connect(empty_postgres_url) as connection:
        assert connection.execute(TABLE_NAMES).fetchall() == [("users",)]


def test_list_of_tables_is_complete(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert {name for (name,) in connection.execute(TABLE_NAMES)} == TABLES


def test_every_table_and_column_of_sqlite_exists(postgres_url: str) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrations.apply(Database(connection, execute_plugins=False))
    with psycopg.connect(postgres_url) as postgres:
        for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            if table.startswith(("_sqlite", "sqlite_", *SQLITE_ALONE)):
                continue
            wanted = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            rows = postgres.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0", (table,)
            )
            found = {row[0] for row in rows}
            assert wanted - found == DIFFERENT.get(table, set()), table
    connection.close()


def test_every_text_column_compares_by_bytes(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        others = connection.execute(
            "SELECT a.attrelid::regclass::text, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
            "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attcollation <> 0 "
            "AND a.attcollation <> '\"C\"'::regcollation"
        ).fetchall()
    assert others == []


def test_tables_that_a_message_adds_to_have_no_foreign_keys(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        rows = connection.execute(
            "SELECT DISTINCT conrelid::regclass::text FROM pg_constraint WHERE contype = 'f'"
        ).fetchall()
    referring = {table for (table,) in rows}
    assert not referring & {"messages", "events", "deliveries", "attempts", "kept_answers", "audit"}
    assert {"conversations", "conversation_tags", "server_keys"} <= referring


def test_additive_migration_allows_an_older_program(
    postgres_url: str,
) -> None:
    before = applied(postgres_url)
    assert migrate(postgres_url, (*MIGRATIONS, NEXT, INDEX)) == [NEXT.name, INDEX.name]
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT to_regclass('teams_next')::text").fetchone() == ("teams_next",)
    assert applied(postgres_url) == [*before, NEXT.name, INDEX.name]
    assert migrate(postgres_url) == []  # an older program


def test_failed_migration_leaves_nothing_and_can_be_repeated(postgres_url: str) -> None:
    before = applied(postgres_url)
    broken = Migration("m9001_next", "m0001_baseline", f"{NEXT.sql}; SELECT 1 / 0")
    with pytest.raises(DatabaseUnusableError, match="division by zero"):
        migrate(postgres_url, (*MIGRATIONS, broken))
    assert applied(postgres_url) == before
    assert migrate(postgres_url, (*MIGRATIONS, NEXT)) == [NEXT.name]


def test_invalid_index_of_a_failed_migration_is_rebuilt(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("INSERT INTO doomed_files (project, sha256) VALUES (1, 'a'), (1, 'a')")
    with pytest.raises(DatabaseUnusableError, match="could not create unique index"):
        migrate(postgres_url, (*MIGRATIONS, UNIQUE))
    with psycopg.connect(postgres_url) as connection:
        connection.execute("DELETE FROM doomed_files")
    assert migrate(postgres_url, (*MIGRATIONS, UNIQUE)) == [UNIQUE.name]
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = 'doomed_once'::regclass")
        assert row.fetchone() == (True,)


def test_migration_has_exactly_one_kind_of_change() -> None:
    for sql, indexes in (("", ()), (NEXT.sql, INDEX.indexes)):
        with pytest.raises(AssertionError):
            Migration("m9001_both", "m0001_baseline", sql, indexes)


def test_a_program_too_old_for_the_schema_is_refused(postgres_url: str) -> None:
    migrate(postgres_url, (*MIGRATIONS, HARD))
    with pytest.raises(DatabaseUnusableError, match=r"newer Deskwire, \S+ \(it has m9003_hard\)"):
        migrate(postgres_url)


def test_refusal_of_an_older_program_names_both_versions(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(apply, "version", lambda: "9.9.0.dev0+g0123456789ab")
        migrate(postgres_url, (*MIGRATIONS, HARD))
    with pytest.raises(DatabaseUnusableError) as refused:
        migrate(postgres_url)
    assert "a newer Deskwire, 9.9.0.dev0+g0123456789ab (it has m9003_hard)" in str(refused.value)
    assert f"({version()}, which knows {MIGRATIONS[-1].name})" in str(refused.value)


def test_migrations_of_the_first_release_have_no_program(postgres_url: str) -> None:
    """Version 0.1.0 kept no program with a migration; the column is added with the next migration."""
    with psycopg.connect(postgres_url) as connection:
        connection.execute("ALTER TABLE schema_migrations DROP COLUMN program")
    assert migrate(postgres_url, (*MIGRATIONS, HARD)) == [HARD.name]
    with psycopg.connect(postgres_url) as connection:
        rows = connection.execute("SELECT name, program FROM schema_migrations").fetchall()
    found: dict[str, str | None] = dict(rows)
    assert found.pop(HARD.name) == version()
    assert set(found.values()) == {None}


def test_incompatible_migration_is_refused_while_older_nodes_run(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute(
            "INSERT INTO nodes (incarnation, node, version, epoch_seen, expires) VALUES "
            "(1, 'a', '1', 0, clock_timestamp() + interval '1 minute'), "
            "(2, 'b', '1', 0, clock_timestamp() - interval '1 minute')"
        )
    with pytest.raises(DatabaseUnusableError, match=r"Stop all of them first \(a\)"):
        migrate(postgres_url, (*MIGRATIONS, HARD))
    with psycopg.connect(postgres_url) as connection:
        connection.execute("UPDATE nodes SET expires = clock_timestamp()")
    assert migrate(postgres_url, (*MIGRATIONS, HARD)) == [HARD.name]


def test_account_without_schema_rights_gets_advice(postgres_url: str) -> None:
    server = shared_server()
    account = f"reader_{postgres_url.rpartition('_')[2]}"
    server.run(f"CREATE ROLE {account} LOGIN")
    url = postgres_url.replace("//deskwire@", f"//{account}@")
    try:
        with psycopg.connect(postgres_url) as connection:
            connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {account}".encode())
        assert migrate(url) == []
        with pytest.raises(DatabaseUnusableError, match="deskwire migrate"):
            migrate(url, (*MIGRATIONS, NEXT))
    finally:
        with psycopg.connect(postgres_url) as connection:
            connection.execute(f"DROP OWNED BY {account}".encode())
        server.run(f"DROP ROLE {account}")


def test_a_database_of_another_encoding_is_refused() -> None:
    server = shared_server()
    server.run("CREATE DATABASE other_bytes ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        with pytest.raises(DatabaseUnusableError, match="encoding LATIN1"):
            migrate(server.url("other_bytes"))
    finally:
        server.run("DROP DATABASE other_bytes")


def test_unreachable_server_is_reported_by_migrations() -> None:
    with pytest.raises(DatabaseUnusableError, match="can't be reached"):
        migrate("postgresql://deskwire@127.0.0.1:1/nothing")
