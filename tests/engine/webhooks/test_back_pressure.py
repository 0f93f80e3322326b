"""Receivers that ask for a pause (`Retry-After`): it costs no delivery an attempt (decisions 6)."""

from __future__ import annotations

from collections.abc import Callable
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.events.types import EphemeralEvent
from deskwire.engine.webhooks.retry.circuit_breaker import CLOSED, CircuitRule
from tests.support.sockets.receivers import (
    Behaviour,
    Installation,
    Receivers,
    Request,
    answering,
    opened,
    wall,
)

FAILING = answering("500 Internal Server Error")
WORKING = answering("204 No Content")
AT_ONCE = CircuitRule(failures=1, failing_s=0)


def busy(seconds: int, status: str = "429 Too Many Requests") -> Behaviour:
    return answering(status, extra=f"Retry-After: {seconds}\r\n".encode())


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
async def test_a_pause_is_kept_by_the_whole_endpoint_and_costs_no_attempt(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock, status: str
) -> None:
    receiver, other = await receivers(busy(40, status)), await receivers()
    async with opened(tmp_path, rule=AT_ONCE) as installation:
        endpoint = await installation.endpoint(receiver)
        await installation.endpoint(other)
        await installation.send(1, endpoint=endpoint)
        await receiver.wait(1)
        receiver.behaviour = WORKING
        await trio.sleep(1)  # virtual time: the mock clock jumps
        await installation.send(2, 3, conversation=7)
        await installation.send(4, conversation=8)
        await other.wait(3)
        assert (await installation.log())[0] == (1, int(status[:3]), f"status {status[:3]}")
        await receiver.wait(4)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert {row[1:] for row in await installation.rows()} == {("delivered", 1)}
        assert (await installation.stored()).circuit == CLOSED
        counters = installation.dispatcher.counters
        assert (counters.paused_attempts, counters.failed_attempts) == (1, 0)
    first, *later = receiver.requests
    assert all(40 <= each.at - first.at < 42 for each in later)
    assert [number for number in receiver.sequences if number != 4] == [1, 1, 2, 3]
    assert {each.headers["Service-Attempt"] for each in receiver.requests} == {"1"}


async def test_however_often_it_asks_every_delivery_keeps_all_its_attempts(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """The rest of the plan starts when the receiver accepts deliveries again."""
    receiver = await receivers(busy(5))
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1, 2)
        await receiver.wait(8)
        assert receiver.sequences == [1] * 8
        receiver.behaviour = FAILING
        await receiver.wait(9)
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert [row[1:] for row in await installation.rows()][:2] == [("dropped", 4)] * 2
        assert installation.dispatcher.counters.paused_attempts == 8
    mine = [each for each in receiver.requests if int(each.body) == 1][8:12]
    assert [each.headers["Service-Attempt"] for each in mine] == ["1", "2", "3", "4"]
    for each, planned_s in zip(mine[1:], (2, 8, 20), strict=True):
        assert 0.8 * planned_s <= each.at - mine[0].at <= 1.2 * planned_s + 0.2


async def test_simultaneous_attempts_request_one_pause(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(busy(30))
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        for conversation in range(1, 6):
            await installation.send(conversation, conversation=conversation)
        await receiver.wait(1)
        await trio.sleep(25)  # virtual time: the mock clock jumps
        sent = len(receiver.requests)
        assert sent <= 5
        receiver.behaviour = WORKING
        await receiver.wait(sent + 5)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert {row[1:] for row in await installation.rows()} == {("delivered", 1)}
    assert sorted(receiver.sequences[sent:]) == [1, 2, 3, 4, 5]


async def test_no_pause_is_longer_than_three_minutes(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(busy(86_400))
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1)
        await receiver.wait(1)
        await trio.sleep(100)  # virtual time: the mock clock jumps
        await receiver.wait(2)
    first, second = (each.at for each in receiver.requests)
    assert 180 <= second - first < 182


async def test_a_restart_keeps_the_pause_and_the_order(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(busy(40))
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1, 2)
        await receiver.wait(1)
        await trio.sleep(1)  # virtual time: the mock clock jumps
    receiver.behaviour = WORKING
    async with opened(tmp_path) as installation:
        await installation.send(3)
        await receiver.wait(4)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert {row[1:] for row in await installation.rows()} == {("delivered", 1)}
    assert receiver.sequences == [1, 1, 2, 3]
    assert receiver.requests[1].at - receiver.requests[0].at >= 40


async def test_a_probe_that_is_answered_with_a_pause_is_repeated_after_it(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """The receiver is healthy but busy: an accepted delivery closes the circuit."""
    receiver = await receivers(FAILING)
    async with opened(tmp_path, rule=AT_ONCE) as installation:
        await installation.endpoint(receiver)
        await installation.send(1)
        await receiver.wait(1)
        receiver.behaviour = busy(40)
        await receiver.wait(2)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        circuit = (await installation.stored()).circuit
        assert (circuit.state(wall()), circuit.probes, circuit.paused(wall())) == ("half_open", 0, True)
        receiver.behaviour = WORKING
        await receiver.wait(3)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert await installation.rows() == [(1, "delivered", 2)]
    times = [each.at for each in receiver.requests]
    assert 40 <= times[2] - times[1] < 42


@pytest.mark.parametrize("value", [None, "-5", "soon", "1.5", "Mon, 99 Nov 2026 12:00:00 GMT"])
async def test_without_a_time_it_is_a_failure_like_any_other(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock, value: str | None
) -> None:
    extra = b"" if value is None else f"Retry-After: {value}\r\n".encode()

    async def first_fails(stream: trio.abc.Stream, request: Request) -> None:
        first = request.headers["Service-Attempt"] == "1"
        await (answering("503 Service Unavailable", extra=extra) if first else WORKING)(stream, request)

    receiver = await receivers(first_fails)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1)
        await receiver.wait(2)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert await installation.rows() == [(1, "delivered", 2)]
        assert installation.dispatcher.counters.failed_attempts == 1


async def test_a_refused_conversation_does_not_stop_others(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: it costs one pause, uses up its attempts and is dropped. The others arrive at their first attempt."""

    async def refuse_one(stream: trio.abc.Stream, request: Request) -> None:
        await (busy(60) if int(request.body) == 1 else WORKING)(stream, request)

    receiver = await receivers(refuse_one)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1, conversation=1)
        for number in range(2, 80):
            await installation.send(number, conversation=number)
            await trio.sleep(1)  # virtual time: the mock clock jumps
        arrived = {int(each.body) for each in receiver.requests}
        assert arrived == set(range(1, 80))
        await trio.sleep(300)  # virtual time: the mock clock jumps
        rows = await installation.rows()
        assert rows[0] == (1, "dropped", 4)
        assert (await installation.reasons())[0].startswith("4 attempts failed; the last: status 429")
        assert {row[1:] for row in rows[1:]} == {("delivered", 1)}
        assert (await installation.stored()).circuit.failed_attempts == 0
        counters = installation.dispatcher.counters
        assert counters.failed_attempts == 4
    mine = [each for each in receiver.requests if int(each.body) == 1]
    assert len(mine) == 6
    assert [each.headers["Service-Attempt"] for each in mine] == ["1", "1", "1", "2", "3", "4"]
    waits = [later.at - first.at for first, later in pairwise(mine)]
    assert all(
        60 <= wait < 73 for wait in waits[:2]
    )  # a delivery that waits alone waits up to a fifth longer
    assert all(19.9 < wait < 21 for wait in waits[2:])


@pytest.mark.parametrize("wait_s", [2, 5])
async def test_a_rate_limit_counting_refusals_gets_all_deliveries(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock, wait_s: int
) -> None:
    """It accepts 10 in any 10 s, and asks for too short a wait: 16 requests after each wait would exhaust it forever."""
    counted = list[float]()

    async def limit(stream: trio.abc.Stream, request: Request) -> None:
        now = trio.current_time()
        taken = sum(at > now - 10 for at in counted) < 10
        counted.append(now)
        await (WORKING if taken else busy(wait_s))(stream, request)

    receiver = await receivers(limit)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        for number in range(1, 51):
            await installation.send(number, conversation=number)
        await trio.sleep(200)  # virtual time: the mock clock jumps
        assert {row[1] for row in await installation.rows()} == {"delivered"}
    assert len(receiver.requests) <= 200


async def test_one_stored_and_one_typing_attempt_begin_after_a_rate_limits_pause(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """The next attempts start after the responses to these."""
    under_way: dict[bool, int] = {True: 0, False: 0}
    most, slow = {True: 0, False: 0}, False

    async def count(stream: trio.abc.Stream, request: Request) -> None:
        typing = request.headers["Service-Event"].startswith("agent.typing")
        under_way[typing] += 1
        most[typing] = max(most[typing], under_way[typing])
        if slow:
            await trio.sleep(0.5)  # virtual time: the mock clock jumps
        under_way[typing] -= 1
        await (WORKING if slow or request.body == b"1" else busy(10))(stream, request)

    receiver = await receivers(count)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver, events=frozenset({"agent.typing.started", "message.created"}))
        await installation.send(1, conversation=1)
        await receiver.wait(1)
        for number in range(2, 60):
            await installation.send(number, conversation=number)
            await trio.sleep(0.1)  # virtual time: the mock clock jumps
        circuit = (await installation.stored()).circuit
        assert circuit.paused(wall())
        assert circuit.paused_until is not None
        most[False], slow = 0, True
        await trio.sleep((circuit.paused_until - wall()) / 1000 + 0.1)  # virtual time: the mock clock jumps
        for number in range(1, 5):
            installation.dispatcher.offer_ephemeral(
                EphemeralEvent(
                    f"evt_t{number}",
                    "agent.typing.started",
                    installation.project.rowid,
                    number,
                    f"cnv_{number}",
                    "u1",
                    b"0",
                )
            )
        await trio.sleep(0.3)  # virtual time: the mock clock jumps
        assert most == {True: 1, False: 1}
        await trio.sleep(30)  # virtual time: the mock clock jumps
        assert most[False] > 2
        assert {row[1:] for row in await installation.rows()} == {("delivered", 1)}


def after(seconds: int) -> str:
    """Return an HTTP date this many seconds ahead."""
    return formatdate(wall() / 1000 + seconds, usegmt=True)


@pytest.mark.parametrize(
    "value", [lambda: "60", lambda: "10", lambda: after(60), lambda: "99999999999999999999"]
)
async def test_an_endpoint_that_takes_events_is_not_paused_for_one_conversation(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock, value: Callable[[], str]
) -> None:
    """No other conversation waits, for any form and length of the wait, even after a restart."""

    async def refuse_one(stream: trio.abc.Stream, request: Request) -> None:
        extra = f"Retry-After: {value()}\r\n".encode()
        refusing = answering("429 Too Many Requests", extra=extra)
        await (refusing if int(request.body) == 2 else WORKING)(stream, request)

    receiver = await receivers(refuse_one)
    made: dict[int, float] = {}

    async def send(installation: Installation, numbers: range) -> None:
        for number in numbers:
            made[number] = trio.current_time()
            await installation.send(number, conversation=number)
            await trio.sleep(1)  # virtual time: the mock clock jumps

    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await send(installation, range(1, 40))
    async with opened(tmp_path) as installation:
        await send(installation, range(40, 80))
        circuit = (await installation.stored()).circuit
        assert circuit.paused_until is None
    first = {int(each.body): each.at for each in reversed(receiver.requests)}
    assert max(first[number] - at for number, at in made.items()) <= 3


async def test_refused_event_is_remembered_after_a_restart(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """It keeps its own wait and does not pause the endpoint again."""

    async def refuse_one(stream: trio.abc.Stream, request: Request) -> None:
        await (busy(60) if int(request.body) == 1 else WORKING)(stream, request)

    receiver = await receivers(refuse_one)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1, conversation=1)
        for number in range(2, 72):
            await installation.send(number, conversation=number)
            await trio.sleep(1)  # virtual time: the mock clock jumps
        ((refused,),) = (await installation.pending(await installation.stored()),)
        assert refused.refusals == 2
    sent = len(receiver.requests)
    async with opened(tmp_path) as installation:
        await installation.send(100, conversation=100)
        await receiver.wait(sent + 1)
        assert receiver.sequences[-1] == 100
        await trio.sleep(60)  # virtual time: the mock clock jumps
        began = trio.current_time()
        await installation.send(101, conversation=101)
        await receiver.wait(sent + 3)
        assert trio.current_time() - began < 15
    mine = [each.at for each in receiver.requests if int(each.body) == 1]
    assert all(later - first >= 60 for first, later in pairwise(mine[:3]))


async def test_typing_that_is_refused_stops_no_stored_event(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    async def refuse_typing(stream: trio.abc.Stream, request: Request) -> None:
        await (busy(60) if request.headers["Service-Event"].startswith("agent.typing") else WORKING)(
            stream, request
        )

    receiver = await receivers(refuse_typing)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver, events=frozenset({"agent.typing.started", "message.created"}))
        for number in range(1, 200):
            installation.dispatcher.offer_ephemeral(
                EphemeralEvent(
                    f"evt_t{number}",
                    "agent.typing.started",
                    installation.project.rowid,
                    7,
                    "cnv_7",
                    "u1",
                    b"0",
                )
            )
            await installation.send(number, conversation=number)
            await trio.sleep(1)  # virtual time: the mock clock jumps
        arrived = [each for each in receiver.requests if int(each.body)]
        assert len(arrived) >= 195
