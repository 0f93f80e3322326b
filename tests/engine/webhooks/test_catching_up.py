"""Catching up: missed deliveries are sent again after the next success.

Source: decisions 6.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import trio
from trio.testing import MockClock

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.retry.circuit_breaker import CircuitRule
from tests.support.sockets.receivers import Installation, Receiver, Receivers, Request, answering, opened

FAILING = answering("500 Internal Server Error")
WORKING = answering("204 No Content")
DROPPED = "4 attempts failed; the last: status 500"
MISSED = f"{DROPPED}; it is sent again after the next success"
# After this time all attempts of a delivery have been made.
USED_UP_S = 26


async def settled() -> None:
    """Wait until all results are recorded; virtual time: the mock clock jumps."""
    await trio.sleep(0.5)  # virtual time: the mock clock jumps


async def missing(installation: Installation, *numbers: int, conversations: int = 2) -> None:
    """Commit events to a failing receiver until their attempts are used up.

    Each event has its own conversation.
    """
    for number in numbers:
        await installation.send(number, conversation=number % conversations + 1)
    await trio.sleep(USED_UP_S)  # virtual time: the mock clock jumps
    assert {row[1:] for row in await installation.rows()} == {("dropped", 4)}


async def test_missed_deliveries_are_sent_again_in_order_after_the_next_success(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await missing(installation, *range(1, 9))
        assert set(await installation.reasons()) == {MISSED}
        assert installation.dispatcher.outages == {"held": 0, "missed": 8}
        sent, ids = (
            len(receiver.requests),
            {each.headers["Service-Delivery-Id"] for each in receiver.requests},
        )
        receiver.behaviour = WORKING
        await installation.send(100, conversation=100)
        await receiver.wait(sent + 9)
        await settled()
        rows = await installation.rows()
        assert rows[:8] == [(number, "dropped", 4) for number in range(1, 9)]
        assert {row[1:] for row in rows[8:]} == {("delivered", 1)}
        assert installation.dispatcher.outages == {"held": 0, "missed": 0}
        await installation.send(101, conversation=100)
        await receiver.wait(sent + 10)
        await trio.sleep(5)  # virtual time: the mock clock jumps
    assert receiver.sequences[sent] == 100
    assert sorted(receiver.sequences[sent:]) == [*range(1, 9), 100, 101]
    for conversation in range(2):
        mine = [number for number in receiver.sequences[sent:] if number < 100 and number % 2 == conversation]
        assert mine == sorted(mine)
    again = receiver.requests[sent + 1 :]
    assert ids.isdisjoint(each.headers["Service-Delivery-Id"] for each in again)
    assert {each.headers["Service-Attempt"] for each in again} == {"1"}


async def sent_when_back(installation: Installation, receiver: Receiver) -> list[int]:
    """Return the sequences that a recovered receiver gets; 100 is the new event."""
    receiver.behaviour, sent = WORKING, len(receiver.requests)
    await installation.send(100)
    await receiver.wait(sent + 1)
    await trio.sleep(10)  # virtual time: the mock clock jumps
    return receiver.sequences[sent:]


async def test_an_endpoint_without_catch_up_gets_nothing_again(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver, catch_up="off")
        await missing(installation, 1, 2, 3)
        assert set(await installation.reasons()) == {DROPPED}
        assert installation.dispatcher.outages["missed"] == 0
        assert await sent_when_back(installation, receiver) == [100]


async def test_catching_up_can_be_turned_off_before_the_outage_is_over(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        endpoint = await installation.endpoint(receiver)
        await missing(installation, 1, 2, 3)
        off = replace(endpoint, catch_up="off")
        await installation.store.write(lambda tx: tx.save_endpoint(off))
        installation.dispatcher.change(off)
        assert await sent_when_back(installation, receiver) == [100]


async def test_an_event_that_fails_alone_is_not_sent_again(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """The receiver can't process this one event; there is no outage."""

    async def refuses_one(stream: trio.abc.Stream, request: Request) -> None:
        await (FAILING if int(request.body) == 1 else WORKING)(stream, request)

    receiver = await receivers(refuses_one)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1, conversation=1)
        await receiver.wait(1)
        await settled()
        await installation.send(2, conversation=2)
        await trio.sleep(USED_UP_S)  # virtual time: the mock clock jumps
        assert await installation.rows() == [(1, "dropped", 4), (2, "delivered", 1)]
        assert (await installation.reasons())[0] == DROPPED
        await installation.send(3, conversation=3)
        await trio.sleep(5)  # virtual time: the mock clock jumps
    assert receiver.sequences == [1, 2, 1, 1, 1, 3]


async def test_a_success_before_the_first_failure_does_not_count(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """The successful attempt had started before the receiver went down."""
    go = trio.Event()

    async def slow(stream: trio.abc.Stream, request: Request) -> None:
        if int(request.body) == 1:
            await go.wait()
        await (WORKING if int(request.body) == 1 else FAILING)(stream, request)

    receiver = await receivers(slow)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1, conversation=1)
        await receiver.wait(1)
        await installation.send(2, conversation=2)
        await receiver.wait(2)
        await settled()
        go.set()
        await trio.sleep(USED_UP_S)  # virtual time: the mock clock jumps
        assert await installation.rows() == [(1, "delivered", 1), (2, "dropped", 4)]
        assert (await installation.reasons())[1] == MISSED


async def test_a_restart_knows_missed_deliveries(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await missing(installation, 1, 2, 3)
    receiver.behaviour = WORKING
    async with opened(tmp_path) as installation:
        sent = len(receiver.requests)
        await installation.send(100, conversation=100)
        await receiver.wait(sent + 4)
        await settled()
        assert [row[1] for row in await installation.rows()] == ["dropped"] * 3 + ["delivered"] * 4
    assert receiver.sequences[sent] == 100
    assert sorted(receiver.sequences[sent:]) == [1, 2, 3, 100]


async def test_a_redelivery_is_made_once_also_if_it_is_cut_off(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path, catch_up_per_s=1) as installation:
        await installation.endpoint(receiver)
        await missing(installation, 1, 2, 3, 4)
        sent = len(receiver.requests)
        receiver.behaviour = WORKING
        await installation.send(100, conversation=100)
        await receiver.wait(sent + 2)
    async with opened(tmp_path) as installation:
        await receiver.wait(sent + 5)
        await trio.sleep(5)  # virtual time: the mock clock jumps
        assert [row[1] for row in await installation.rows()] == ["dropped"] * 4 + ["delivered"] * 5
    assert sorted(receiver.sequences[sent:]) == [1, 2, 3, 4, 100]


async def test_catching_up_has_a_limited_rate_beside_new_deliveries(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path, catch_up_per_s=5) as installation:
        await installation.endpoint(receiver)
        await missing(installation, *range(1, 13), conversations=12)
        sent = len(receiver.requests)
        receiver.behaviour = WORKING
        await installation.send(100, conversation=100)
        await receiver.wait(sent + 4)
        await installation.send(101, conversation=101)
        await trio.sleep(0.05)  # virtual time: the mock clock jumps
        assert receiver.sequences[-1] == 101
        await receiver.wait(sent + 14)
    again = [each.at for each in receiver.requests[sent:] if int(each.body) < 100]
    assert 1.8 <= again[-1] - again[0] <= 3


async def test_deliveries_older_than_the_horizon_are_not_sent_again(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path, horizon_s=100) as installation:
        await installation.endpoint(receiver)
        await missing(installation, 1, 2)
        await trio.sleep(60)  # virtual time: the mock clock jumps
        await installation.send(3, conversation=3)
        await trio.sleep(USED_UP_S)  # virtual time: the mock clock jumps
        sent = len(receiver.requests)
        receiver.behaviour = WORKING
        await installation.send(100, conversation=100)
        await receiver.wait(sent + 2)
        await trio.sleep(5)  # virtual time: the mock clock jumps
        assert installation.dispatcher.outages["missed"] == 0
    assert receiver.sequences[sent:] == [100, 3]


async def test_a_redelivery_that_fails_has_all_its_attempts_and_is_missed_again(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """The receiver was up for one event only."""

    async def takes_new_ones(stream: trio.abc.Stream, request: Request) -> None:
        await (WORKING if int(request.body) >= 100 else FAILING)(stream, request)

    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await missing(installation, 1)
        receiver.behaviour = takes_new_ones
        await installation.send(100, conversation=100)
        await trio.sleep(USED_UP_S)  # virtual time: the mock clock jumps
        assert await installation.rows() == [(1, "dropped", 4), (100, "delivered", 1), (1, "dropped", 4)]
        receiver.behaviour = WORKING
        sent = len(receiver.requests)
        await installation.send(101, conversation=101)
        await receiver.wait(sent + 2)
        await settled()
        assert (await installation.rows())[-1] == (1, "delivered", 1)


async def test_nothing_is_caught_up_of_an_erased_conversation(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 4."""
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await missing(installation, 1, 2, 3)
        sent = len(receiver.requests)
        receiver.behaviour = WORKING
        await installation.delete(2, 4)
        await receiver.wait(sent + 2)
        await trio.sleep(5)  # virtual time: the mock clock jumps
    assert sorted(receiver.sequences[sent:]) == [2, 4]


async def test_a_quiet_endpoint_gets_everything_back_without_a_next_event(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await missing(installation, *range(1, 9))
        sent = len(receiver.requests)
        receiver.behaviour = WORKING
        await trio.sleep(15)  # virtual time: the mock clock jumps
        assert [row[1] for row in await installation.rows()] == ["dropped"] * 8 + ["delivered"] * 8
        assert installation.dispatcher.outages == {"held": 0, "missed": 0}
        await trio.sleep(600)  # virtual time: the mock clock jumps
    assert receiver.sequences[sent] == 1
    assert sorted(receiver.sequences[sent:]) == list(range(1, 9))
    for conversation in range(2):
        mine = [number for number in receiver.sequences[sent:] if number % 2 == conversation]
        assert mine == sorted(mine)


async def test_quiet_endpoint_that_stays_unreachable_is_probed_at_the_circuits_times(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await missing(installation, 1, 2, 3)
        sent = len(receiver.requests)
        failed = (await installation.stored()).circuit.failed_attempts
        await trio.sleep(1_800)  # virtual time: the mock clock jumps
        times = [each.at for each in receiver.requests[sent:]]
        gaps = [later - first for first, later in pairwise(times)]
        assert all(9.9 <= gap <= 32 for gap in gaps[:15])
        assert all(180 <= gap <= 365 for gap in gaps[-3:])
        assert (await installation.stored()).circuit.failed_attempts == failed
        assert (
            installation.dispatcher.outages["missed"]
            + len(await installation.pending(await installation.stored()))
            == 3
        )
        receiver.behaviour, sent = WORKING, len(receiver.requests)
        await trio.sleep(370)  # virtual time: the mock clock jumps
        assert set(receiver.sequences[sent:]) == {1, 2, 3}
        assert len(receiver.sequences[sent:]) == 3


async def test_an_event_that_is_refused_for_itself_keeps_nothing_else_missed(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Probes alternate: the oldest event may be the one that the receiver can't process."""

    async def refuses_one(stream: trio.abc.Stream, request: Request) -> None:
        await (FAILING if int(request.body) == 1 else WORKING)(stream, request)

    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await missing(installation, *range(1, 7), conversations=6)
        receiver.behaviour, sent = refuses_one, len(receiver.requests)
        await trio.sleep(120)  # virtual time: the mock clock jumps
        assert {2, 3, 4, 5, 6} <= set(receiver.sequences[sent:])
        assert (await installation.stored()).circuit.probe_at is None


async def test_new_event_is_sent_at_once_while_a_quiet_endpoint_is_probed(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await missing(installation, 1, 2, 3, conversations=3)
        await trio.sleep(900)  # virtual time: the mock clock jumps
        receiver.behaviour, sent = WORKING, len(receiver.requests)
        began = trio.current_time()
        await installation.send(100, conversation=100)
        await receiver.wait(sent + 4)
        print(
            [
                (e.at - began, int(e.body), e.headers["Service-Attempt"])
                for e in receiver.requests[sent - 4 :]
            ],
            await installation.rows(),
        )
        assert trio.current_time() - began < 2
    assert receiver.sequences[sent] == 100
    assert set(receiver.sequences[sent:]) == {1, 2, 3, 100}


async def test_a_quiet_endpoint_gets_everything_back_after_a_restart(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await missing(installation, 1, 2, 3)
    for _ in range(2):
        async with opened(tmp_path) as installation:
            await trio.sleep(20)  # virtual time: the mock clock jumps
    receiver.behaviour, sent = WORKING, len(receiver.requests)
    async with opened(tmp_path) as installation:
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert installation.dispatcher.outages["missed"] == 0
    assert set(receiver.sequences[sent:]) == {1, 2, 3}


async def test_an_endpoint_that_does_not_want_it_is_not_probed(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver, catch_up="off")
        await missing(installation, 1, 2, 3)
        sent = len(receiver.requests)
        await trio.sleep(600)  # virtual time: the mock clock jumps
        assert len(receiver.requests) == sent


async def test_an_open_circuit_without_pending_deliveries_probes_a_missed_one(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path, rule=CircuitRule(failures=8, failing_s=15)) as installation:
        await installation.endpoint(receiver)
        await installation.send(1, 2, 3)
        await trio.sleep(USED_UP_S)  # virtual time: the mock clock jumps
        circuit = (await installation.stored()).circuit
        assert circuit.probe_at is not None
        await trio.sleep(120)  # virtual time: the mock clock jumps
        receiver.behaviour, sent = WORKING, len(receiver.requests)
        await trio.sleep(25)  # virtual time: the mock clock jumps
        assert set(receiver.sequences[sent:]) == {1, 2, 3}
        assert (await installation.stored()).circuit.probe_at is None


async def test_an_open_circuit_is_closed_though_its_oldest_event_is_refused(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """After a failed probe, the next one is of another conversation."""

    async def refuses_one(stream: trio.abc.Stream, request: Request) -> None:
        await (FAILING if int(request.body) == 1 else WORKING)(stream, request)

    receiver = await receivers(FAILING)
    async with opened(tmp_path, rule=CircuitRule(failures=4, failing_s=5)) as installation:
        await installation.endpoint(receiver)
        await installation.send(1, conversation=1)
        await installation.send(2, conversation=2)
        await trio.sleep(12)  # virtual time: the mock clock jumps
        assert (await installation.stored()).circuit.probe_at is not None
        receiver.behaviour, sent = refuses_one, len(receiver.requests)
        await installation.send(3, conversation=1)
        await installation.send(4, conversation=4)
        await trio.sleep(25)  # virtual time: the mock clock jumps
        assert {2, 3, 4} <= set(receiver.sequences[sent:])
        assert (await installation.stored()).circuit.probe_at is None
