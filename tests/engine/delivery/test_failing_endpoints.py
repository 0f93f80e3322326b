"""Endpoints that keep failing, are disabled, changed or removed while deliveries are under way (decisions 6)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import stripe
import trio
from trio.testing import MockClock

from deskwire.engine.delivery.circuit import CLOSED, OPEN_MS
from deskwire.engine.delivery.signature import new_secret
from deskwire.engine.endpoint import BOTH_SIGN_MS, Endpoint
from deskwire.engine.events import PassingEvent
from deskwire.engine.ports import Reader
from tests.engine.delivery.conftest import Installation, Receivers, Request, answering, opened, wall

FAILING = answering("500 Internal Server Error")
WORKING = answering("204 No Content")
OPEN_S = OPEN_MS / 1000


async def settled() -> None:
    """Let everything that is under way be recorded; virtual time: the mock clock jumps."""
    await trio.sleep(0.5)  # virtual time: the mock clock jumps


async def stored(installation: Installation) -> Endpoint:
    """The first endpoint as it is stored."""
    endpoint: Endpoint = await installation.store.read(_first)
    return endpoint


def _first(reader: Reader) -> Endpoint:
    return reader.endpoints()[0]


async def failing_until_open(installation: Installation) -> None:
    """Twenty conversations with an event each, to a receiver that fails: the circuit opens."""
    for lane in range(1, 21):
        await installation.send(lane, lane=lane)
    await settled()
    assert (await stored(installation)).circuit.state(wall()) == "open"


async def test_an_open_circuit_sends_nothing_and_says_so_of_every_delivery(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await failing_until_open(installation)
        sent = len(receiver.requests)
        await installation.send(100, 101, lane=100)
        await trio.sleep(OPEN_S - 10)  # virtual time: the mock clock jumps
        assert len(receiver.requests) == sent
        assert {row[1] for row in await installation.rows()} == {"skipped"}
        reason = "20 attempts in a row failed; the last: status 500"
        assert all(each.endswith(reason) for each in await installation.reasons())
        assert installation.couriers.counters.skipped == 22
        assert (await stored(installation)).last_delivery_status == "skipped"


async def test_a_probe_that_succeeds_closes_the_circuit_and_lets_those_go_that_waited(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    go = trio.Event()

    async def slow(stream: trio.abc.Stream, request: Request) -> None:
        await go.wait()
        await WORKING(stream, request)

    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await failing_until_open(installation)
        await trio.sleep(OPEN_S)  # virtual time: the mock clock jumps
        sent = len(receiver.requests)
        receiver.behaviour = slow
        for lane in range(50, 60):
            await installation.send(lane, lane=lane)
        await settled()
        assert len(receiver.requests) == sent + 1  # the probe alone
        go.set()
        await receiver.wait(sent + 10)
        await settled()
        assert sorted(receiver.sequences[sent:]) == list(range(50, 60))
        assert [row[1] for row in await installation.rows()] == ["skipped"] * 20 + ["delivered"] * 10
        assert (await stored(installation)).circuit == CLOSED


async def test_a_probe_that_fails_opens_the_circuit_again_and_those_that_waited_are_skipped(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await failing_until_open(installation)
        await trio.sleep(OPEN_S)  # virtual time: the mock clock jumps
        sent = len(receiver.requests)
        for lane in range(50, 60):
            await installation.send(lane, lane=lane)
        await trio.sleep(10)  # virtual time: the mock clock jumps; the probe's own retry is skipped, too
        assert len(receiver.requests) == sent + 1
        assert {row[1] for row in await installation.rows()} == {"skipped"}
        circuit = (await stored(installation)).circuit
        assert (circuit.state(wall()), circuit.reason) == ("open", "the probe failed: status 500")


async def test_a_restart_leaves_an_open_circuit_open(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await failing_until_open(installation)
    sent = len(receiver.requests)
    receiver.behaviour = WORKING
    async with opened(tmp_path) as installation:
        await installation.send(100, lane=100)
        await settled()
        assert len(receiver.requests) == sent
        await trio.sleep(OPEN_S)  # virtual time: the mock clock jumps
        await installation.send(101, lane=100)
        await receiver.wait(sent + 1)
        await settled()
        assert (await installation.rows())[-2:] == [(100, "skipped", 0), (101, "delivered", 1)]
        assert (await stored(installation)).circuit == CLOSED


async def test_five_deliveries_in_a_row_that_used_up_their_attempts_open_it_too(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """With few events and a retry or two in between there are never 20 at once."""
    receiver = await receivers(FAILING)
    async with opened(tmp_path, retry_after_s=(1.0,)) as installation:
        await installation.endpoint(receiver)
        for number in range(1, 7):
            await installation.send(number)
            await trio.sleep(3)  # virtual time: the mock clock jumps
        assert [row[1:] for row in await installation.rows()] == [("dropped", 2)] * 5 + [("skipped", 0)]
        assert (
            await stored(installation)
        ).circuit.reason == "5 deliveries in a row failed; the last: status 500"


async def test_somebody_who_asks_for_a_delivery_gets_the_probe_at_once(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        endpoint = await installation.endpoint(receiver)
        await failing_until_open(installation)
        receiver.behaviour = WORKING
        installation.couriers.probe(endpoint.rowid)
        await installation.send(100, lane=100)
        await settled()
        assert (await installation.rows())[-1] == (100, "delivered", 1)


async def test_a_pause_that_the_receiver_asks_for_is_kept(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: `Retry-After` on 429 and 503."""
    receiver = await receivers(answering("429 Too Many Requests", extra=b"Retry-After: 40\r\n"))
    async with opened(tmp_path) as installation:
        await installation.endpoint(receiver)
        await installation.send(1)
        await receiver.wait(1)
        receiver.behaviour = WORKING
        await receiver.wait(2)
        await settled()
        assert await installation.rows() == [(1, "delivered", 2)]
    first, second = (request.at for request in receiver.requests)
    assert 40 <= second - first < 42


async def test_an_answer_of_410_disables_the_endpoint_at_once(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6; what else is pending for it is skipped, and so is what comes later."""
    receiver, other = await receivers(answering("410 Gone")), await receivers()
    async with opened(tmp_path) as installation:
        gone = await installation.endpoint(receiver)
        await installation.endpoint(other)
        await installation.send(1, 2, 3, endpoint=gone)
        await settled()
        endpoint = await stored(installation)
        assert (endpoint.status, endpoint.status_reason) == (
            "disabled",
            "status 410: the receiver wants no more",
        )
        assert [row[1:] for row in await installation.rows()] == [
            ("dropped", 1),
            ("skipped", 0),
            ("skipped", 0),
        ]
        reason = "the endpoint is disabled: status 410: the receiver wants no more"
        assert (await installation.reasons())[1:] == [reason, reason]
        assert len(receiver.requests) == 1
        await installation.send(4)
        await other.wait(1)


async def disable(installation: Installation, endpoint: Endpoint) -> None:
    changed = replace(endpoint, status="disabled", status_reason="by the API")
    await installation.store.write(lambda tx: tx.save_endpoint(changed))
    installation.couriers.change(changed)


async def test_a_disabled_endpoint_gets_nothing_more_in_mid_retry_and_its_deliveries_end(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        endpoint = await installation.endpoint(receiver)
        await installation.send(1)
        await receiver.wait(1)
        await settled()
        await disable(installation, endpoint)
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert await installation.rows() == [(1, "skipped", 1)]
        assert await installation.reasons() == ["the endpoint is disabled: by the API"]
        assert len(receiver.requests) == 1
        receiver.behaviour = WORKING
        await installation.store.write(lambda tx: tx.save_endpoint(endpoint))
        installation.couriers.change(endpoint)
        await installation.send(2)
        await receiver.wait(2)
        await settled()
        assert (await installation.rows())[-1] == (2, "delivered", 1)


async def closed(installation: Installation, disabled: Endpoint) -> None:
    """Return when only this endpoint is left and nothing is pending; virtual time, however slow the disk is."""
    with trio.fail_after(3600):
        while True:
            left = await installation.store.read(lambda reader: reader.unserved_endpoints())
            rows = await installation.rows()
            if left == [disabled.rowid] and all(row[1] != "pending" for row in rows):
                return
            await trio.sleep(1)  # virtual time: the mock clock jumps


async def test_what_a_crash_left_of_disabled_and_removed_endpoints_is_closed_at_the_start(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    async def silent(_stream: trio.abc.Stream, _request: Request) -> None:
        await trio.sleep_forever()

    one, two = await receivers(silent), await receivers(silent)
    async with opened(tmp_path) as installation:
        disabled, removed = await installation.endpoint(one), await installation.endpoint(two)
        for lane in range(1, 601):
            await installation.send(lane, lane=lane)
        for endpoint, status in ((disabled, "disabled"), (removed, "removed")):
            changed = replace(endpoint, status=status, status_reason="by the API")  # type: ignore[arg-type]
            await installation.store.write(lambda tx, changed=changed: tx.save_endpoint(changed))  # type: ignore[misc]
        # A crash: nobody has told the couriers.
    async with opened(tmp_path) as installation:
        await closed(installation, disabled)
        assert [row[1:] for row in await installation.rows()] == [("skipped", 0)] * 600


def signed(request: Request, secret: str) -> bool:
    """Whether the published verifier accepts the request."""
    signature = request.headers["Service-Signature"]
    try:
        stripe.WebhookSignature.verify_header(request.body.decode(), signature, secret)
    except stripe.SignatureVerificationError:
        return False
    return True


async def test_both_secrets_sign_for_a_day_and_then_the_new_one_alone(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6; attempts that are under way are not cut off."""
    go = trio.Event()

    async def slow(stream: trio.abc.Stream, request: Request) -> None:
        await go.wait()
        await WORKING(stream, request)

    receiver = await receivers(slow)
    async with opened(tmp_path) as installation:
        endpoint = await installation.endpoint(receiver)
        first, second = installation.sealing.open(endpoint.sealed_secret), new_secret()
        await installation.send(1)
        await receiver.wait(1)
        rotated = endpoint.with_secret(installation.sealing.seal(second), "tail", wall())
        await installation.store.write(lambda tx: tx.save_endpoint(rotated))
        installation.couriers.change(rotated)
        go.set()
        await installation.send(2, 3)
        await receiver.wait(3)
        await trio.sleep(BOTH_SIGN_MS / 1000)  # virtual time: the mock clock jumps
        await installation.send(4)
        await receiver.wait(4)
        await settled()
        assert [row[1:] for row in await installation.rows()] == [("delivered", 1)] * 4
        now = wall()
        assert await installation.store.write(lambda tx: tx.forget_old_secrets(now)) == 1
        assert (await stored(installation)).old_secret is None
    by_first = [signed(request, first) for request in receiver.requests]
    by_second = [signed(request, second) for request in receiver.requests]
    assert by_first == [True, True, True, False]
    assert by_second == [False, True, True, True]
    header = receiver.requests[1].headers["Service-Signature"]
    assert [part.partition("=")[0] for part in header.split(",")] == ["t", "v1", "v1"]


def _typed(lane: int) -> PassingEvent:
    kind = "agent.typing.started"
    return PassingEvent(f"evt_{lane}", kind, 1, lane, f"cnv_{lane}", "u1", str(lane).encode())


async def test_a_typing_only_endpoint_that_keeps_failing_is_left_alone_too(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 4: typing follows the same rules, from memory."""
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        endpoint = await installation.endpoint(receiver)
        typing = replace(endpoint, events=frozenset({"agent.typing.started"}))
        await installation.store.write(lambda tx: tx.save_endpoint(typing))
        installation.couriers.change(typing)
        for lane in range(1, 40):
            installation.couriers.pass_on(_typed(lane))
            await settled()
        assert (await stored(installation)).circuit.state(wall()) == "open"
        sent = len(receiver.requests)
        installation.couriers.pass_on(_typed(100))
        await trio.sleep(30)  # virtual time: the mock clock jumps
        assert len(receiver.requests) == sent
        await trio.sleep(OPEN_S)  # virtual time: the mock clock jumps
        receiver.behaviour = WORKING
        installation.couriers.pass_on(_typed(101))
        await receiver.wait(sent + 1)
        await settled()
        assert (await stored(installation)).circuit == CLOSED
