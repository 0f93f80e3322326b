"""Opening sessions: other threads keep running, and a server that can be written to is found among all hosts."""

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
from tests.support.postgres import fresh_database


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections, and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_other_threads_go_on_while_a_server_does_not_answer(silent: int) -> None:
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
        time.sleep(0.01)  # counts the turns that a thread leaves to others
        turns += 1
    assert turns > 20, "this thread had its turns"
    assert 0.9 < time.monotonic() - began < 10
    assert "no answer within 1 s" in str(refusals[0])


def test_usable_host_is_taken_though_others_refuse_or_stay_silent_until_the_timeout(silent: int) -> None:
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


def test_a_server_that_can_only_be_read_is_passed_over() -> None:
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
def test_timeout_without_a_bound_counts_as_none_given(options: bytes, seconds: float) -> None:
    assert connect_timeout_s(options) == seconds
