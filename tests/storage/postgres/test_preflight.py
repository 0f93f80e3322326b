"""An unfit PostgreSQL server is refused with advice (ADR 61)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from deskwire.storage.postgres.admin.preflight import examine, unreachable_error
from deskwire.storage.postgres.driver.errors import DatabaseUnusableError
from tests.storage.postgres.pooler import pooled
from tests.support.postgres import USER, PostgresServer, own_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """Run a server that requires a password from one user, and allows few sessions to another."""
    made = PostgresServer()
    made.create()
    rules = made.data / "pg_hba.conf"
    rules.write_text("host all locked 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
    made.start()
    made.run("CREATE ROLE locked LOGIN PASSWORD 'right'")
    made.run("CREATE ROLE few LOGIN CONNECTION LIMIT 0")
    made.run("CREATE ROLE apart LOGIN")
    made.run("CREATE ROLE ten LOGIN CONNECTION LIMIT 10")
    made.run("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    made.run("CREATE DATABASE closed")
    made.run("REVOKE CONNECT ON DATABASE closed FROM PUBLIC")
    yield made
    made.close()


def refusal(url: str, *, require_sync_standby: bool = False) -> str:
    with pytest.raises(DatabaseUnusableError) as caught:
        examine(url, require_sync_standby=require_sync_standby)
    return str(caught.value)


def test_fit_server_is_accepted_with_notes_on_doubtful_settings(server: PostgresServer) -> None:
    found = examine(server.url())
    assert found.version >= 150_000
    assert not found.synchronous
    assert abs(found.clock_s) < 1
    assert [note.split()[0] for note in found.notes] == ["fsync", "full_page_writes"]


def test_connection_limit_below_the_sessions_of_a_node_is_noted(server: PostgresServer) -> None:
    notes = examine(f"postgresql://ten@127.0.0.1:{server.port}/postgres").notes
    assert any("CONNECTION LIMIT is 10, and each node takes up to 23" in note for note in notes)


@pytest.mark.parametrize(
    ("whom", "database", "words"),
    [
        ("locked:wrong@", "postgres", "user and password in DESKWIRE_DATABASE_URL"),
        ("locked@", "postgres", "user and password in DESKWIRE_DATABASE_URL"),
        ("nobody_at_all@", "postgres", "has no such user"),
        (f"{USER}@", "missing", "CREATE DATABASE"),
        ("few@", "postgres", "max_connections"),
        ("apart@", "closed", "GRANT CONNECT"),
        (f"{USER}@", "latin", "ENCODING 'UTF8'"),
    ],
)
def test_each_connection_error_has_advice(
    server: PostgresServer, whom: str, database: str, words: str
) -> None:
    said = refusal(f"postgresql://{whom}127.0.0.1:{server.port}/{database}")
    assert words in said
    assert f"127.0.0.1:{server.port}/{database}" in said
    assert "wrong" not in said


def test_unreachable_server_is_named_with_its_address(server: PostgresServer) -> None:
    port = server.port + 1 if server.port < 65_535 else 1
    said = refusal(f"postgresql://somebody:secret@127.0.0.1:{port}/deskwire")
    assert "can't be reached" in said
    assert f"127.0.0.1:{port}/deskwire" in said
    assert "secret" not in said


def test_a_standby_is_refused_unless_the_url_names_the_primary_as_well(
    server: PostgresServer,
) -> None:
    standby = PostgresServer()
    standby.create_standby(server)
    standby.start()
    try:
        assert "Name the primary" in refusal(standby.url())
        hosts = f"127.0.0.1:{standby.port},127.0.0.1:{server.port}"
        assert examine(f"postgresql://{USER}@{hosts}/postgres").version >= 150_000
    finally:
        standby.close()


@pytest.mark.parametrize(
    "words",
    [
        "FATAL: the database system is starting up",
        "FATAL: the database system is in recovery mode",
        "session is read-only - FATAL: the database system is not yet accepting connections",
    ],
)
def test_starting_server_is_not_reported_as_a_standby(words: str) -> None:
    said = str(unreachable_error("postgresql://one,two/deskwire", words))
    assert "Start the node again when it is up" in said
    assert words in said


def test_server_without_a_synchronous_standby_is_refused_if_one_is_required() -> None:
    with own_server() as server:
        assert "synchronous_standby_names" in refusal(server.url(), require_sync_standby=True)
        server.run("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'")
        server.run("SELECT pg_reload_conf()")
        assert examine(server.url(), require_sync_standby=True).synchronous
        local = f"{server.url()}?options=-c%20synchronous_commit%3Dlocal"
        assert "is local" in refusal(local, require_sync_standby=True)


def test_pooler_that_shares_sessions_is_detected(server: PostgresServer) -> None:
    with pooled(server.port, USER, "postgres") as port:
        said = refusal(f"postgresql://{USER}@127.0.0.1:{port}/postgres?sslmode=disable&gssencmode=disable")
    assert "PgBouncer" in said


def test_pooler_that_drops_session_settings_is_detected(server: PostgresServer) -> None:
    with pooled(server.port, USER, "postgres", shared=False) as port:
        said = refusal(f"postgresql://{USER}@127.0.0.1:{port}/postgres?sslmode=disable&gssencmode=disable")
    assert "drops a session's settings" in said


def test_clocks_that_differ_by_seconds_are_refused(server: PostgresServer) -> None:
    with pytest.raises(DatabaseUnusableError, match=r"differ by 60\.0 s"):
        examine(server.url(), now=lambda: time.time() + 60)
    notes = examine(server.url(), now=lambda: time.time() - 2).notes
    assert any("differ by 2.0 s" in note for note in notes)
