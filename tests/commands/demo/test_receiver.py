"""The webhook receiver over real sockets."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx
import pytest
import trio

from tests.support.replay.history import Delivery
from tests.support.replay.journal import Journal
from tests.support.replay.receiver import BODY_MAX, Receiver

HEADERS = {
    "Service-Signature": "t=1,v1=00",
    "Service-Delivery-Id": "dlv_1",
    "Service-Event": "message.created",
    "Service-Previous-Sequence": "4",
}


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture
async def receiver(journal: Journal, nursery: trio.Nursery) -> Receiver:
    receiver = Receiver(journal)
    await nursery.start(receiver.run)
    return receiver


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as client:
        yield client


async def test_a_delivery_is_noted_with_its_raw_bytes_and_headers(
    receiver: Receiver, journal: Journal, client: httpx.AsyncClient
) -> None:
    body = '{"id":"evt_1", "text":"\u05e9\U0001f600"}'.encode()
    answer = await client.post(receiver.url, content=body, headers=HEADERS)
    assert (answer.status_code, answer.content) == (200, b"")
    (noted,) = journal.arrivals
    assert isinstance(noted, Delivery)
    assert (noted.body, noted.label, noted.delivery_id) == (body, "message.created", "dlv_1")
    assert (noted.signature, noted.previous) == ("t=1,v1=00", "4")
    assert noted.at <= trio.current_time()
    assert abs(noted.received_at - time.time()) < 60


async def test_a_delivery_without_the_headers_is_noted_for_the_checks_to_find(
    receiver: Receiver, journal: Journal, client: httpx.AsyncClient
) -> None:
    await client.post(receiver.url, content=b"x")
    (noted,) = journal.arrivals
    assert isinstance(noted, Delivery)
    assert (noted.signature, noted.delivery_id, noted.label, noted.previous) == ("", "", "", None)


async def test_invalid_attempt_number_is_recorded_as_zero(
    receiver: Receiver, journal: Journal, client: httpx.AsyncClient
) -> None:
    """Python makes no number of 5,000 digits, and a receiver takes whatever comes."""
    for attempt in ("3", "9" * 5_000, "-1"):
        answer = await client.post(receiver.url, content=b"{}", headers={"Service-Attempt": attempt})
        assert answer.status_code == 200
    assert [each.attempt for each in journal.arrivals if isinstance(each, Delivery)] == [3, 0, 0]


async def test_many_deliveries_over_few_connections_all_arrive(
    receiver: Receiver, journal: Journal, client: httpx.AsyncClient
) -> None:
    async def post(worker: int) -> None:
        for number in range(50):
            answer = await client.post(receiver.url, content=b'{"id":"evt_%d_%d"}' % (worker, number))
            assert answer.status_code == 200

    async with trio.open_nursery() as posting:
        for worker in range(8):
            posting.start_soon(post, worker)
    assert len({each.body for each in journal.arrivals}) == 400


async def test_invalid_delivery_is_not_recorded(
    receiver: Receiver, journal: Journal, client: httpx.AsyncClient
) -> None:
    assert (await client.get(receiver.url)).status_code == 404
    assert (await client.post(f"{receiver.url}x", content=b"{}")).status_code == 404
    assert (await client.post(receiver.url, content=b"x" * (BODY_MAX + 1))).status_code == 413
    assert journal.arrivals == []


@pytest.mark.parametrize(
    "garbage", [b"", b"\x00\x01\r\n\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"]
)
async def test_a_connection_that_breaks_off_or_talks_nonsense_disturbs_no_other(
    receiver: Receiver, journal: Journal, client: httpx.AsyncClient, garbage: bytes
) -> None:
    port = urlsplit(receiver.url).port
    assert port is not None
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    await stream.send_all(garbage)
    await stream.aclose()
    assert (await client.post(receiver.url, content=b"{}")).status_code == 200
    assert len(journal.arrivals) == 1


async def test_waiting_ends_with_the_last_event_that_is_waited_for(
    receiver: Receiver, journal: Journal, client: httpx.AsyncClient, nursery: trio.Nursery
) -> None:
    await client.post(receiver.url, content=b'{"id":"a"}')
    nursery.start_soon(lambda: client.post(receiver.url, content=b'{"id":"b"}'))
    with trio.fail_after(5):
        assert await journal.wait_for(["a", "b"], patience_s=30) == 0


async def test_wait_is_bounded_and_reports_the_missing_deliveries(
    autojump_clock: trio.testing.MockClock, journal: Journal
) -> None:
    start = trio.current_time()
    assert await journal.wait_for(["a", "b"], patience_s=30) == 2
    assert trio.current_time() - start == 30
