"""Endpoints that keep failing: the circuit opens, holds, probes, and releases.

Source: decisions 6.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import trio
from trio.testing import MockClock

from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EphemeralEvent
from deskwire.engine.webhooks.retry.circuit_breaker import CLOSED, CircuitRule
from tests.support.sockets.receivers import Installation, Receivers, Request, answering, opened, wall

FAILING = answering("500 Internal Server Error")
WORKING = answering("204 No Content")
SOON = CircuitRule(failures=3, failing_s=0)


async def settled() -> None:
    """Wait until all results are recorded; virtual time: the mock clock jumps."""
    await trio.sleep(0.5)  # virtual time: the mock clock jumps


async def failing_until_open(installation: Installation) -> None:
    """Commit one event in each of three conversations.

    Their failures open the circuit by the rule SOON.
    """
    for conversation in (1, 2, 3):
        await installation.send(conversation, conversation=conversation)
    await settled()
    assert (await installation.stored()).circuit.state(wall()) == "open"


async def test_minute_of_failures_opens_the_circuit_and_then_only_probes_are_sent(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Contract 6.4.3: held deliveries keep all their attempts, and a probe uses up none."""
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver, catch_up="off")
        for conversation in range(1, 21):
            await installation.send(conversation, conversation=conversation)
        await trio.sleep(50)  # virtual time: the mock clock jumps
        assert (len(receiver.requests), (await installation.stored()).circuit.state(wall())) == (80, "closed")
        await trio.sleep(10)  # virtual time: the mock clock jumps
        await installation.send(100, conversation=100)
        await settled()
        circuit = (await installation.stored()).circuit
        assert circuit.state(wall()) == "open"
        assert circuit.reason is not None
        assert circuit.reason.startswith("81 attempts in a row failed within 6")
        await installation.send(101, 102, conversation=100)
        await trio.sleep(35)  # virtual time: the mock clock jumps
        probes = receiver.requests[81:]
        assert [(int(each.body), each.headers["Service-Attempt"]) for each in probes] == [(100, "2")] * 3
        times = [receiver.requests[80].at, *(each.at for each in probes)]
        assert all(10 <= after - before < 10.3 for before, after in pairwise(times))
        assert (await installation.rows())[-3:] == [
            (100, "pending", 1),
            (101, "pending", 0),
            (102, "pending", 0),
        ]
        assert installation.dispatcher.outages == {"held": 3, "missed": 0}
        assert (await installation.stored()).circuit.reason == "the probe failed: status 500"


async def test_a_successful_probe_closes_the_circuit_and_releases_in_order(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path, rule=SOON) as installation:
        await installation.endpoint(receiver)
        await failing_until_open(installation)
        for number in range(10, 40):
            await installation.send(number, conversation=number % 3 + 1)
        sent = len(receiver.requests)
        receiver.behaviour = WORKING
        await receiver.wait(sent + 33)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert {row[1] for row in await installation.rows()} == {"delivered"}
        stored = await installation.stored()
        assert (stored.circuit, stored.held_upto) == (CLOSED, None)
        assert installation.dispatcher.outages == {"held": 0, "missed": 0}
    assert sorted(receiver.sequences[sent:]) == [1, 2, 3, *range(10, 40)]
    for conversation in range(3):
        mine = [number for number in receiver.sequences[sent:] if number >= 10 and number % 3 == conversation]
        assert mine == sorted(mine)
        assert receiver.sequences[sent:].index(conversation + 1) < receiver.sequences[sent:].index(mine[0])


async def test_while_a_probe_is_under_way_nothing_else_is_sent(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    go = trio.Event()

    async def slow(stream: trio.abc.Stream, request: Request) -> None:
        await go.wait()
        await WORKING(stream, request)

    async with opened(tmp_path, rule=SOON) as installation:
        await installation.endpoint(receiver)
        await failing_until_open(installation)
        sent = len(receiver.requests)
        receiver.behaviour = slow
        await receiver.wait(sent + 1)
        for conversation in range(50, 60):
            await installation.send(conversation, conversation=conversation)
        await settled()
        assert len(receiver.requests) == sent + 1
        go.set()
        await receiver.wait(sent + 13)
        await settled()
        assert {row[1] for row in await installation.rows()} == {"delivered"}


async def test_held_deliveries_are_sent_at_a_limited_rate_beside_new_ones(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path, rule=SOON, catch_up_per_s=10) as installation:
        await installation.endpoint(receiver)
        await failing_until_open(installation)
        for number in range(100, 120):
            await installation.send(number, conversation=number)
        sent = len(receiver.requests)
        receiver.behaviour = WORKING
        await receiver.wait(sent + 5)
        for number in (1000, 1001, 1002):
            await installation.send(number, conversation=number)
        await trio.sleep(0.05)  # virtual time: the mock clock jumps
        assert {1000, 1001, 1002} <= set(receiver.sequences)
        await receiver.wait(sent + 26)
    held = [each.at for each in receiver.requests[sent + 1 :] if int(each.body) < 1000]
    assert len(held) == 22
    assert 1.8 <= held[-1] - held[0] < 3


async def test_a_restart_keeps_an_open_circuit_and_its_held_deliveries(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path, rule=SOON) as installation:
        await installation.endpoint(receiver)
        await failing_until_open(installation)
        await installation.send(100, conversation=100)
        await settled()
    sent = len(receiver.requests)
    receiver.behaviour = WORKING
    async with opened(tmp_path, rule=SOON) as installation:
        await installation.send(101, conversation=100)
        await settled()
        assert (len(receiver.requests), installation.dispatcher.outages["held"]) == (sent, 5)
        await receiver.wait(sent + 5)
        await settled()
        assert {row[1] for row in await installation.rows()} == {"delivered"}
        assert (await installation.stored()).circuit == CLOSED
    assert sorted(receiver.sequences[sent:]) == [1, 2, 3, 100, 101]
    assert receiver.sequences.index(100) < receiver.sequences.index(101)


async def test_a_restart_continues_the_release_without_repetition(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path, rule=SOON, catch_up_per_s=10) as installation:
        await installation.endpoint(receiver)
        await failing_until_open(installation)
        for number in range(100, 120):
            await installation.send(number, conversation=number % 2 + 4)
        sent = len(receiver.requests)
        receiver.behaviour = WORKING
        await receiver.wait(sent + 8)
    async with opened(tmp_path, rule=SOON, catch_up_per_s=10) as installation:
        assert (await installation.stored()).held_upto is not None
        assert (await installation.stored()).circuit == CLOSED
        began = trio.current_time()
        await receiver.wait(sent + 23)
        assert trio.current_time() - began >= 1.1
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert {row[1] for row in await installation.rows()} == {"delivered"}
        assert (await installation.stored()).held_upto is None
    assert sorted(receiver.sequences[sent:]) == [1, 2, 3, *range(100, 120)]
    for conversation in range(2):
        mine = [
            number for number in receiver.sequences[sent:] if number >= 100 and number % 2 == conversation
        ]
        assert mine == sorted(mine)


async def test_a_requested_redelivery_is_sent_as_the_probe_at_once(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path, rule=SOON) as installation:
        endpoint = await installation.endpoint(receiver)
        await failing_until_open(installation)
        sent = len(receiver.requests)
        receiver.behaviour = WORKING
        await installation.send(100, 101, conversation=100)
        asked_for = (await installation.pending(endpoint))[-1]
        installation.dispatcher.probe(endpoint.rowid, asked_for.position)
        await receiver.wait(sent + 5)
        await settled()
        assert {row[1] for row in await installation.rows()} == {"delivered"}
    assert receiver.sequences[sent] == 101
    assert receiver.requests[sent].at - receiver.requests[sent - 1].at < 2


async def test_a_success_of_an_earlier_attempt_closes_the_circuit(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: any 2xx closes it."""
    go = trio.Event()

    async def one_is_slow(stream: trio.abc.Stream, request: Request) -> None:
        if int(request.body) == 50:
            await go.wait()
        await (WORKING if int(request.body) == 50 else FAILING)(stream, request)

    receiver = await receivers(one_is_slow)
    async with opened(tmp_path, rule=SOON) as installation:
        await installation.endpoint(receiver)
        await installation.send(50, 51, conversation=50)
        await receiver.wait(1)
        await failing_until_open(installation)
        receiver.behaviour = WORKING
        go.set()
        await receiver.wait(8)
        await settled()
        assert {row[1] for row in await installation.rows()} == {"delivered"}
    assert receiver.requests[-1].at - receiver.requests[0].at < 5


async def test_an_open_circuit_skips_deliveries_older_than_the_horizon(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: with its reason, so that it can be recovered."""
    receiver = await receivers(FAILING)
    async with opened(tmp_path, rule=SOON, horizon_s=100) as installation:
        await installation.endpoint(receiver)
        await failing_until_open(installation)
        await trio.sleep(60)  # virtual time: the mock clock jumps
        await installation.send(100, conversation=100)
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert [row[:2] for row in await installation.rows()] == [
            (1, "skipped"),
            (2, "skipped"),
            (3, "skipped"),
            (100, "pending"),
        ]
        assert (await installation.reasons())[0] == "it was still pending 100 s after it was made"
        assert installation.dispatcher.counters.skipped == 3
        assert int(receiver.requests[-1].body) == 100


async def test_deletion_in_an_open_circuit_leaves_no_other_delivery_of_its_conversation(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 4: only the deletion event of the conversation remains."""
    receiver = await receivers(FAILING)
    async with opened(tmp_path, rule=SOON) as installation:
        await installation.endpoint(receiver)
        await failing_until_open(installation)
        await installation.send(10, 11, conversation=2)
        await installation.delete(2, 12)
        sent = len(receiver.requests)
        receiver.behaviour = WORKING
        await receiver.wait(sent + 3)
        await settled()
        assert [row[:2] for row in await installation.rows()] == [
            (1, "delivered"),
            (3, "delivered"),
            (12, "delivered"),
        ]
    assert sorted(receiver.sequences[sent:]) == [1, 3, 12]


async def test_an_answer_of_410_is_a_failure_like_any_other(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Contract 6.4.2 has no exception: a wrong response during a deployment can be fixed."""
    receiver = await receivers(answering("410 Gone"))
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1, 2)
        await receiver.wait(2)
        receiver.behaviour = WORKING
        await receiver.wait(4)
        await settled()
        endpoint = await installation.stored()
        assert (endpoint.status, endpoint.status_reason) == ("enabled", None)
        assert await installation.rows() == [(1, "delivered", 2), (2, "delivered", 2)]


def _typed(conversation: int) -> EphemeralEvent:
    kind = "agent.typing.started"
    return EphemeralEvent(
        f"evt_{conversation}", kind, 1, conversation, f"cnv_{conversation}", "u1", str(conversation).encode()
    )


async def test_a_failing_typing_only_endpoint_opens_its_circuit(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 4: typing events follow the same rules, from memory."""
    receiver = await receivers(FAILING)
    async with opened(tmp_path, rule=SOON) as installation:
        endpoint = await installation.endpoint(receiver)
        typing = replace(endpoint, events=frozenset({"agent.typing.started"}))
        await installation.store.write(lambda tx: tx.save_endpoint(typing))
        installation.dispatcher.change(typing)
        for conversation in (1, 2, 3):
            installation.dispatcher.offer_ephemeral(_typed(conversation))
        await settled()
        assert (await installation.stored()).circuit.state(wall()) == "open"
        sent = len(receiver.requests)
        installation.dispatcher.offer_ephemeral(_typed(100))
        await trio.sleep(5)  # virtual time: the mock clock jumps
        assert len(receiver.requests) == sent
        await trio.sleep(5)  # virtual time: the mock clock jumps
        receiver.behaviour = WORKING
        installation.dispatcher.offer_ephemeral(_typed(101))
        await receiver.wait(sent + 1)
        await settled()
        assert (await installation.stored()).circuit == CLOSED
