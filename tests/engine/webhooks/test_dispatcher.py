"""Deliveries from rows to a receiver: order, retries, restarts, erasure.

Source: contract 6.4.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.dispatcher import Dispatcher
from tests.support.sockets.receivers import Receivers, Request, answering, opened

T = TypeVar("T")
FAILING = answering("500 Internal Server Error", b"no")


async def test_a_delivery_carries_the_headers_and_the_stored_bytes(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Contract 6.3; decisions 6."""
    receiver = await receivers()
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(4)
        await receiver.wait(1)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert await installation.rows() == [(4, "delivered", 1)]
        assert await installation.log() == [(1, 204, None)]
    request = receiver.requests[0]
    assert (request.method, request.path, request.body) == ("POST", "/hook?from=deskwire", b"4")
    assert request.headers["Service-Event"] == "message.created"
    assert request.headers["Service-Delivery-Id"].startswith("dlv_")
    assert request.headers["Service-Attempt"] == "1"
    assert request.headers["Service-Previous-Sequence"] == "3"
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["User-Agent"].startswith("Deskwire/")
    assert request.headers["Host"] == f"localhost:{receiver.port}"


async def test_an_event_without_a_number_names_no_previous_sequence(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6."""
    receiver = await receivers()
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1, conversation=None)
        await receiver.wait(1)
    assert "Service-Previous-Sequence" not in receiver.requests[0].headers


async def test_a_failing_delivery_is_tried_four_times_and_then_dropped(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Contract 6.4.2; decisions 6: at about 0, 2, 8 and 20 s, with one id and a new `t` each time."""
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1)
        await receiver.wait(4)
        await trio.sleep(5)  # virtual time: the mock clock jumps, to before the first probe
        assert await installation.rows() == [(1, "dropped", 4)]
        assert await installation.log() == [(number, 500, "status 500") for number in (1, 2, 3, 4)]
        assert await installation.reasons() == [
            "4 attempts failed; the last: status 500; it is sent again after the next success"
        ]
        assert installation.dispatcher.counters.dropped == 1
    times = [request.at for request in receiver.requests]
    for at, planned_s in zip(times[1:], (2, 8, 20), strict=True):
        assert 0.8 * planned_s <= at - times[0] <= 1.2 * planned_s + 0.2
    assert [request.headers["Service-Attempt"] for request in receiver.requests] == ["1", "2", "3", "4"]
    assert len({request.headers["Service-Delivery-Id"] for request in receiver.requests}) == 1
    assert len({request.headers["Service-Signature"] for request in receiver.requests}) == 4


async def test_first_attempts_of_a_conversation_keep_their_order_when_they_fail(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: first attempts of one conversation reach one endpoint in sequence order."""

    async def odd_ones_fail(stream: trio.abc.Stream, request: Request) -> None:
        failing = int(request.body) % 2 and request.headers["Service-Attempt"] == "1"
        await (FAILING if failing else answering("200 OK"))(stream, request)

    receiver = await receivers(odd_ones_fail)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(*range(1, 21))
        await receiver.wait(30)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert {row[1] for row in await installation.rows()} == {"delivered"}
    first = [r for r in receiver.requests if r.headers["Service-Attempt"] == "1"]
    assert [int(request.body) for request in first] == list(range(1, 21))


async def test_a_restart_resumes_pending_deliveries_and_repeats_none(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: a crash loses no delivery, and a restart resumes pending ones within their window."""
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1, conversation=1)
        await receiver.wait(1)
        receiver.behaviour = answering("200 OK")
        await installation.send(2, conversation=2)
        await receiver.wait(2)
        await trio.sleep(0.5)  # virtual time: the mock clock jumps
    async with opened(tmp_path) as installation:
        await receiver.wait(3)
        await trio.sleep(30)  # virtual time: the mock clock jumps
        assert await installation.rows() == [(1, "delivered", 2), (2, "delivered", 1)]
    assert receiver.sequences == [1, 2, 1]
    assert receiver.requests[2].headers["Service-Attempt"] == "2"


async def test_deliveries_older_than_the_horizon_are_skipped_with_their_reason(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Contract 6.4.4; decisions 6."""
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1, 2)
        await receiver.wait(2)
    await trio.sleep(3601)  # virtual time: the mock clock jumps
    async with opened(tmp_path, horizon_s=3600) as installation:
        await installation.send(3)
        await receiver.wait(3)
        await trio.sleep(0.5)  # virtual time: the mock clock jumps
        rows = await installation.rows()
        assert [row[:2] for row in rows] == [(1, "skipped"), (2, "skipped"), (3, "pending")]
        assert (await installation.reasons())[0] == "it was still pending 3600 s after it was made"
        assert installation.dispatcher.counters.skipped == 2


async def test_clean_stop_finishes_a_running_attempt_and_records_it(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Contract 6.4.4: a stop avoids sending a delivery twice."""

    async def slow(stream: trio.abc.Stream, request: Request) -> None:
        await trio.sleep(0.5)  # virtual time: the mock clock jumps
        await answering("200 OK")(stream, request)

    receiver = await receivers(slow)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1, 2)
        await receiver.wait(1)
    async with opened(tmp_path) as installation:
        await receiver.wait(2)
        await trio.sleep(5)  # virtual time: the mock clock jumps
        assert [row[1] for row in await installation.rows()] == ["delivered", "delivered"]
    assert receiver.sequences == [1, 2]


async def test_a_stop_with_nothing_under_way_takes_no_time(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 5: the grace period is a maximum, not a delay."""
    receiver = await receivers()
    async with opened(tmp_path, stop_grace_s=30) as installation:
        await installation.endpoint(receiver)
        await installation.send(1)
        await receiver.wait(1)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        began = trio.current_time()
    assert trio.current_time() - began < 1


async def test_a_silent_receiver_holds_a_stop_up_for_the_grace_only(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 5: no receiver can delay a stop beyond the limit."""

    async def silent(_stream: trio.abc.Stream, _request: Request) -> None:
        await trio.sleep_forever()

    receiver = await receivers(silent)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1)
        await receiver.wait(1)
        began = trio.current_time()
    assert trio.current_time() - began < 2
    receiver.behaviour = answering("200 OK")
    async with opened(tmp_path) as installation:
        await receiver.wait(2)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert await installation.rows() == [(1, "delivered", 1)]


async def test_a_removed_endpoint_gets_nothing_more_in_mid_retry(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: pending deliveries stop after a DELETE."""
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        endpoint = await installation.endpoint(receiver)
        await installation.send(1, 2, 3)
        await receiver.wait(3)
        await installation.store.write(lambda tx: tx.save_endpoint(replace(endpoint, status="removed")))
        installation.dispatcher.remove(endpoint.rowid)
        await installation.send(4)
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert await installation.rows() == []
    assert receiver.sequences == [1, 2, 3]


@pytest.mark.parametrize("ending", [Dispatcher.drop, Dispatcher.remove])
async def test_drop_or_removal_cuts_off_attempts_of_an_endpoint_under_release(
    tmp_path: Path,
    receivers: Receivers,
    mock_clock: MockClock,
    ending: Callable[[Dispatcher, int], None],
) -> None:
    """After losing the lease, a node leaves the delivery to its successor; a removed endpoint gets no more deliveries."""

    async def silent(_stream: trio.abc.Stream, _request: Request) -> None:
        await trio.sleep_forever()

    receiver = await receivers(silent)
    async with opened(tmp_path) as installation:
        endpoint = await installation.endpoint(receiver)
        await installation.send(1)
        await receiver.wait(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(installation.dispatcher.release, endpoint.rowid)
            await trio.sleep(0.1)  # virtual time: the mock clock jumps
            began = trio.current_time()
            ending(installation.dispatcher, endpoint.rowid)
        assert trio.current_time() - began < 0.1


async def test_an_erased_conversation_is_no_longer_sent(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 4: erasure includes deliveries; other conversations continue."""
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1, 2, conversation=5)
        await installation.send(3, conversation=6)
        await receiver.wait(3)
        receiver.behaviour = answering("200 OK")
        await installation.erase(5)
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert await installation.rows() == [(3, "delivered", 2)]
    assert sorted(receiver.sequences) == [1, 2, 3, 3]


async def test_deletion_waits_for_the_running_attempt_of_its_conversation(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: like every event, it waits for the response to its predecessor; other conversations do not wait."""
    go = trio.Event()

    async def slow(stream: trio.abc.Stream, request: Request) -> None:
        if int(request.body) == 1:
            await go.wait()
        await answering("200 OK")(stream, request)

    receiver = await receivers(slow)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1, 2, conversation=5)
        await receiver.wait(1)
        await installation.delete(5, 3)
        await installation.send(4, conversation=6)
        await receiver.wait(2)
        await trio.sleep(0.5)  # virtual time: the mock clock jumps
        assert receiver.sequences == [1, 4]
        go.set()
        await receiver.wait(3)
        await trio.sleep(0.5)  # virtual time: the mock clock jumps
        assert await installation.rows() == [(3, "delivered", 1), (4, "delivered", 1)]
    assert receiver.sequences == [1, 4, 3]
    assert receiver.requests[2].headers["Service-Event"] == "conversation.deleted"


async def test_deliveries_beyond_the_memory_limit_are_sent(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: each endpoint has its own limited queue; further deliveries wait as rows."""

    async def fourth_ones_fail(stream: trio.abc.Stream, request: Request) -> None:
        failing = int(request.body) % 4 == 0 and request.headers["Service-Attempt"] == "1"
        await (FAILING if failing else answering("200 OK"))(stream, request)

    receiver = await receivers(fourth_ones_fail)
    async with opened(tmp_path, memory_deliveries=16) as installation:
        await installation.endpoint(receiver)
        for number in range(1, 61):
            await installation.send(number, conversation=1 + number % 5)
        await receiver.wait(75)
        await trio.sleep(30)  # virtual time: the mock clock jumps
        rows = await installation.rows()
    assert [row[1] for row in rows] == ["delivered"] * 60
    first = [r for r in receiver.requests if r.headers["Service-Attempt"] == "1"]
    assert len(first) == 60
    for conversation in range(5):
        mine = [int(r.body) for r in first if int(r.body) % 5 == conversation]
        assert mine == sorted(mine)


async def test_more_overdue_retries_than_memory_holds_do_not_keep_the_disk_busy(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Virtual time stops during a query, so endless reading would stop it forever."""

    async def slow(stream: trio.abc.Stream, request: Request) -> None:
        await trio.sleep(3)  # virtual time: the mock clock jumps
        await answering("200 OK")(stream, request)

    receiver = await receivers(FAILING)
    async with opened(tmp_path, memory_deliveries=16) as installation:
        await installation.endpoint(receiver)
        for number in range(1, 61):
            await installation.send(number, conversation=number)
        await receiver.wait(60)
        receiver.behaviour = slow
        with trio.fail_after(60):
            await receiver.wait(120)
        await trio.sleep(5)  # virtual time: the mock clock jumps
        assert {row[1] for row in await installation.rows()} == {"delivered"}


async def test_an_endpoint_added_later_gets_earlier_commits(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Contract 6.4.4: no delivery is lost between the endpoint's commit and the start of its worker."""
    receiver = await receivers()
    async with opened(tmp_path) as installation:
        endpoint = await installation.endpoint(receiver)
        installation.dispatcher.remove(endpoint.rowid)
        await installation.send(1, 2)
        installation.dispatcher.add(endpoint)
        await installation.send(3)
        await receiver.wait(3)
    assert receiver.sequences == [1, 2, 3]


async def test_a_changed_endpoint_goes_on_at_its_new_address(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: after a PATCH pending deliveries continue, and a disabled endpoint gets none."""
    old, new = await receivers(FAILING), await receivers()
    async with opened(tmp_path) as installation:
        endpoint = await installation.endpoint(old)
        await installation.send(1)
        await old.wait(1)
        await trio.sleep(0.5)  # virtual time: the mock clock jumps
        installation.dispatcher.add(replace(endpoint, url=new.url))
        await new.wait(1)
        installation.dispatcher.add(replace(endpoint, url=new.url, status="disabled"))
        await installation.send(2)
        await trio.sleep(30)  # virtual time: the mock clock jumps
    assert (old.sequences, new.sequences) == ([1], [1])
    assert new.requests[0].headers["Service-Attempt"] == "2"


async def test_idle_connections_are_closed_after_a_while(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Our choice: an endpoint without deliveries holds no socket (ADR 6)."""
    receiver = await receivers()
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1, 2)
        await receiver.wait(2)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert (receiver.connections, receiver.open) == (1, 1)
        await trio.sleep(5)  # virtual time: the mock clock jumps
        assert receiver.open == 0
        await installation.send(3)
        await receiver.wait(3)
