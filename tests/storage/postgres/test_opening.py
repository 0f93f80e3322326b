"""Opening of sessions: other threads keep running, and the writable server of all hosts is found."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from deskwire.storage.postgres.driver.errors import ConnectionLost
from deskwire.storage.postgres.driver.opening import connect_timeout_s
from deskwire.storage.postgres.driver.servers import Servers
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.postgres import fresh_database


@pytest.fixture
def silent() -> Iterator[int]:
    """Run a server that accepts connections and never responds; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_other_threads_run_while_a_server_does_not_respond(silent: int) -> None:
    began = time.monotonic()
    refusals: list[ConnectionLost] = []

    def connect() -> None:
        with pytest.raises(ConnectionLost) as caught:
            Servers().open(f"host=127.0.0.1 port={silent} connect_timeout=1".encode())
        refusals.append(caught.value)

    thread = threading.Thread(target=connect)
    thread.start()
    turns = 0
    while thread.is_alive():
        time.sleep(0.01)  # counts how often the thread lets others run
        turns += 1
    assert turns > 20, "this thread had its turns"
    assert 0.9 < time.monotonic() - began < HANG_TIMEOUT_S
    assert "no answer within 1 s" in str(refusals[0])


def test_usable_host_is_found_although_others_refuse_or_stay_silent(silent: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        refusing = closed.getsockname()[1]
    with fresh_database() as url:
        port = urlsplit(url).port
        hosts = f"host=nowhere.invalid,127.0.0.1,127.0.0.1,localhost port=1,{refusing},{silent},{port}"
        connection = Servers().open(
            f"{hosts} user=deskwire dbname={urlsplit(url).path[1:]} connect_timeout=1".encode()
        )
        assert connection.port == str(port).encode()
        connection.finish()


def test_read_only_server_is_skipped() -> None:
    with fresh_database() as url:
        parts = urlsplit(url)
        address = (
            f"host=127.0.0.1 port={parts.port} user=deskwire dbname={parts.path[1:]} target_session_attrs="
        )
        Servers().open(f"{address}read-write".encode()).finish()
        with pytest.raises(ConnectionLost, match="standby"):
            Servers().open(f"{address}standby".encode())


def test_every_reason_is_named_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        refusing = closed.getsockname()[1]
    with pytest.raises(ConnectionLost, match=r"look up nowhere.invalid.*refused"):
        Servers().open(f"host=nowhere.invalid,127.0.0.1 port={refusing}".encode())


@pytest.mark.parametrize(
    ("options", "seconds"),
    [(b"", 5), (b"connect_timeout=7", 7), (b"connect_timeout=0", 5), (b"connect_timeout=-1", 5)],
)
def test_zero_connect_timeout_uses_the_default(options: bytes, seconds: float) -> None:
    assert connect_timeout_s(options) == seconds
