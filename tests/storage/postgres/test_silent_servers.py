"""Silent servers: all sessions end together.

A server that only delays a statement keeps its sessions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest
import trio

from deskwire.engine.core.errors import Unavailable
from deskwire.storage.postgres.admin.preflight import connected
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.errors import ConnectionLost, Stopping
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.heartbeats import ANSWER_TIMEOUT_S, HeartbeatStore
from tests.support.database_pair import hang, wake
from tests.support.postgres import PostgresServer, own_server

SLEEP = "SELECT CAST(pg_sleep(60) AS text)"


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """Start a server that the test may stop."""
    with own_server() as server:
        yield server


@contextmanager
def hanging(server: PostgresServer) -> Iterator[None]:
    """Stop all processes of a server for the block; its kernel still acknowledges packets."""
    stopped = hang(server)
    try:
        yield
    finally:
        wake(stopped)


def test_all_sessions_with_a_silent_server_end_together(server: PostgresServer) -> None:
    database = Database(server.url(), "test")
    connections = [BlockingConnection(database, "read") for _ in range(3)]
    for connection in connections:
        connection.open()
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(connection.command, SLEEP) for connection in connections]
        with hanging(server):
            database.check_hosts(0.5)
            assert [type(each.exception(10)) for each in waiting] == [ConnectionLost] * 3
            assert database.servers.current is None
    for connection in connections:
        connection.execute("SELECT 1")
        connection.close()


def test_busy_server_keeps_its_sessions(server: PostgresServer) -> None:
    database = Database(server.url(), "test")
    connection = BlockingConnection(database, "read")
    connection.open()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(connection.command, "SELECT CAST(pg_sleep(2) AS text)")
        for _ in range(3):
            database.check_hosts(5)
        assert waiting.result(20) is None
    connection.close()


async def test_heartbeat_without_a_response_ends_all_sessions(server: PostgresServer) -> None:
    database = Database(server.url(), "test")
    other = BlockingConnection(database, "read")
    other.open()
    async with trio.open_nursery() as nursery:
        beats = HeartbeatStore(database, nursery)
        assert await beats.read(lambda reader: 1) == 1
        with hanging(server):
            began = trio.current_time()
            async with trio.open_nursery() as both:
                both.start_soon(_refused, beats)
                with pytest.raises(ConnectionLost):
                    await trio.to_thread.run_sync(other.command, SLEEP)
                assert trio.current_time() - began < 3 * ANSWER_TIMEOUT_S
        beats.close()
        other.close()
        nursery.cancel_scope.cancel()


async def _refused(beats: HeartbeatStore) -> None:
    with pytest.raises(Unavailable):
        await beats.read(lambda reader: 1)


def test_stop_ends_waiting_statements_and_opens_no_session(server: PostgresServer) -> None:
    database = Database(server.url(), "test")
    connection = BlockingConnection(database, "read")
    connection.open()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(connection.command, SLEEP)
        time.sleep(0.1)  # lets the statement begin; before that the outcome is the same
        began = time.monotonic()
        database.servers.stop()
        assert isinstance(waiting.exception(10), ConnectionLost)
        assert time.monotonic() - began < 5
    with pytest.raises(Stopping):
        connection.open()
    with hanging(server), pytest.raises(Stopping):
        database.connect("read")


def test_command_ends_when_the_server_stops_answering(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_CHECK_INTERVAL_S", "_SILENCE_TIMEOUT_S"):
        monkeypatch.setattr(f"deskwire.storage.postgres.driver.servers.{name}", 0.3)
    lost = pytest.raises(psycopg.OperationalError)
    with connected(server.url(), "check") as connection, hanging(server), lost:
        connection.execute("SELECT 1")


def test_long_running_command_is_not_ended(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deskwire.storage.postgres.driver.servers._CHECK_INTERVAL_S", 0.2)
    with connected(server.url(), "check") as connection:
        assert connection.execute("SELECT 1 FROM pg_sleep(1.5)").fetchone() == (1,)
