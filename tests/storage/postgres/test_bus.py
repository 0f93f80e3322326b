"""The bus on a real server: messages arrive, and its users are notified where they can't."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from urllib.parse import urlsplit

import psycopg
import pytest
import trio
from structlog.testing import capture_logs

from deskwire.storage.postgres.bus import PAYLOAD_MAX, QUEUE_MAX, PostgresBus
from deskwire.storage.postgres.driver.session import Database
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.postgres import fresh_database

NOTIFICATION = b"A"


@pytest.fixture
def url() -> Iterator[str]:
    with fresh_database() as url:
        yield url


class Receiver:
    """Collects the messages of a kind."""

    def __init__(self, bus: PostgresBus, kind: str = "events") -> None:
        self.came: list[bytes] = []
        self._more = trio.Event()
        bus.receive(kind, self._take)

    def _take(self, payload: bytes) -> None:
        self.came.append(payload)
        self._more.set()

    async def until(self, count: int) -> list[bytes]:
        with trio.fail_after(HANG_TIMEOUT_S):
            while len(self.came) < count:
                await self._more.wait()
                self._more = trio.Event()
        return self.came


async def up(bus: PostgresBus) -> None:
    """Wait until the bus listens."""
    began = trio.Event()
    bus.connected(began.set)
    with trio.fail_after(HANG_TIMEOUT_S):
        await began.wait()


@asynccontextmanager
async def buses(*urls: str) -> AsyncIterator[list[PostgresBus]]:
    made = [PostgresBus(Database(url, f"node{number}")) for number, url in enumerate(urls)]
    async with trio.open_nursery() as nursery:
        for bus in made:
            nursery.start_soon(bus.run)
            await up(bus)
        yield made
        nursery.cancel_scope.cancel()


async def test_message_arrives_at_all_other_nodes_and_not_at_its_sender(url: str) -> None:
    async with buses(url, url, url) as (a, b, c):
        there, elsewhere, back = Receiver(b), Receiver(c), Receiver(a)
        other_kind = Receiver(b, "typing")
        a.send("events", b"\x00\xff\n:'")
        a.send("typing", b"")
        a.send("nobody's", b"x")
        assert await there.until(1) == await elsewhere.until(1) == [b"\x00\xff\n:'"]
        assert await other_kind.until(1) == [b""]
        b.send("events", b"answer")
        assert await back.until(1) == [b"answer"]


async def test_messages_of_a_full_queue_arrive_in_order(url: str) -> None:
    async with buses(url, url) as (a, b):
        receiver = Receiver(b)
        sent = [b"%d" % number for number in range(QUEUE_MAX)]
        for each in sent:
            a.send("events", each)
        assert await receiver.until(len(sent)) == sent
        assert (a.counters.sent, a.counters.dropped) == (QUEUE_MAX, 0)


async def test_full_queue_drops_the_oldest_messages_and_long_messages_are_not_sent(url: str) -> None:
    async with buses(url, url) as (a, b):
        receiver = Receiver(b)
        for number in range(QUEUE_MAX + 10):
            a.send("events", b"%d" % number)
        a.send("events", b"x" * (PAYLOAD_MAX + 1))
        came = await receiver.until(QUEUE_MAX)
        assert came[0] == b"10"
        a.send("events", b"y" * PAYLOAD_MAX)
        a.send("events", b"z" * PAYLOAD_MAX)
        assert [len(each) for each in (await receiver.until(QUEUE_MAX + 2))[-2:]] == [PAYLOAD_MAX] * 2
        assert a.counters.dropped == 11


async def test_message_whose_receiver_fails_does_not_affect_others(url: str) -> None:
    async with buses(url, url) as (a, b):
        receiver = Receiver(b)
        b.receive("bad", lambda payload: [][len(payload)])
        with capture_logs() as logs:
            a.send("bad", b"")
            a.send("events", b"good")
            assert await receiver.until(1) == [b"good"]
        assert [entry["event"] for entry in logs] == ["storage.bus_message_failed"]


async def test_lost_bus_session_is_opened_again_and_users_are_notified(url: str) -> None:
    async with buses(url, url) as (a, b):
        receiver, told = Receiver(b), trio.Event()
        b.connected(told.set)
        with capture_logs() as logs:
            with psycopg.connect(url, autocommit=True) as connection:
                ended = connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'deskwire/bus/node1'"
                ).fetchall()
            assert ended == [(True,)]
            with trio.fail_after(HANG_TIMEOUT_S):
                await told.wait()
            a.send("events", b"again")
            assert await receiver.until(1) == [b"again"]
        assert [entry["event"] for entry in logs] == ["storage.bus_lost", "storage.bus_back"]


async def test_bus_does_not_receive_messages_of_another_schema(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA other")
    async with buses(url, url, f"{url}?options=-c%20search_path%3Dother") as (a, b, other):
        receiver, stranger = Receiver(b), Receiver(other)
        other.send("events", b"theirs")
        await trio.sleep(0.2)  # time enough for a message that must not arrive
        a.send("events", b"ours")
        assert await receiver.until(1) == [b"ours"]
        assert not stranger.came


async def test_bus_detects_a_server_without_notifications(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deskwire.storage.postgres.bus._TEST_TIMEOUT_S", 0.3)
    parts = urlsplit(url)
    with deaf(parts.port or 0) as port:
        address = parts._replace(
            netloc=parts.netloc.replace(f":{parts.port}", f":{port}"),
            query="sslmode=disable&gssencmode=disable",
        ).geturl()
        bus = PostgresBus(Database(address, "deaf"))
        with capture_logs() as logs:
            async with buses(url) as (other,), trio.open_nursery() as nursery:
                receiver = Receiver(other)
                nursery.start_soon(bus.run)
                bus.send("events", b"still said")
                assert b"still said" in await receiver.until(1)
                assert not bus.listening
                nursery.cancel_scope.cancel()
        assert "storage.bus_deaf" in [entry["event"] for entry in logs]
        assert "storage.bus_back" not in [entry["event"] for entry in logs]


@contextmanager
def deaf(port: int) -> Iterator[int]:
    """A connection on which no notification arrives, like those of some poolers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=partial(_accept, listener, port), daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def _accept(listener: socket.socket, port: int) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            server = socket.create_connection(("127.0.0.1", port))
            threading.Thread(target=_up, args=(client, server), daemon=True).start()
            threading.Thread(target=_down, args=(server, client), daemon=True).start()


def _up(client: socket.socket, server: socket.socket) -> None:
    with suppress(OSError), client, server:
        while data := client.recv(65_536):
            server.sendall(data)


def _down(server: socket.socket, client: socket.socket) -> None:
    with suppress(OSError, struct.error), server.makefile("rb") as answers:
        while kind := answers.read(1):
            head = answers.read(4)
            body = answers.read(struct.unpack("!i", head)[0] - 4)
            if kind != NOTIFICATION:
                client.sendall(kind + head + body)
