"""The servers that tests start: crashes, standbys, and separate databases."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.postgres import PostgresServer, fresh_database, own_server, shared_server


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """Start a server for this test."""
    with own_server() as server:
        yield server


def test_server_keeps_its_url_and_rows_after_a_restart_and_a_kill(server: PostgresServer) -> None:
    url = server.url()
    server.run("CREATE TABLE kept (a int)")
    server.restart()
    server.run("INSERT INTO kept VALUES (1)")
    server.kill()
    with pytest.raises(psycopg.OperationalError):
        server.run("SELECT 1")
    server.start()

    assert server.url() == url
    assert server.run("SELECT a FROM kept") == [(1,)]


def test_standby_follows_and_is_promoted(server: PostgresServer) -> None:
    standby = PostgresServer()
    try:
        standby.create_standby(server)
        standby.start()
        server.run("ALTER SYSTEM SET synchronous_standby_names = '*'")
        server.run("ALTER SYSTEM SET synchronous_commit = 'remote_apply'")
        server.run("SELECT pg_reload_conf()")
        server.run("CREATE TABLE followed (a int)")
        server.kill()
        standby.promote()

        assert standby.run("SELECT count(*) FROM followed") == [(0,)]
        standby.run("INSERT INTO followed VALUES (1)")
    finally:
        standby.close()
    assert not standby.directory.exists()


def test_each_test_database_is_separate() -> None:
    with fresh_database(migrated=False) as one, fresh_database(migrated=False) as other:
        with psycopg.connect(one) as connection:
            connection.execute("CREATE TABLE mine (a int)")
        with psycopg.connect(other) as connection:
            assert connection.execute("SELECT to_regclass('mine')").fetchone() == (None,)
        name = one.rpartition("/")[2]
    assert (name,) not in shared_server().run("SELECT datname FROM pg_database")
