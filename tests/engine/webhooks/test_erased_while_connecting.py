"""An event erased while its attempt is connecting is not sent.

The guarantee is that no webhook shows it after its erasure.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

import trio
from trio.testing import MockClock

from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EphemeralEvent
from deskwire.engine.webhooks.http.address import IPAddress
from deskwire.engine.webhooks.retry.circuit_breaker import CircuitRule
from tests.support.sockets.receivers import Receivers, Request, answering, opened

LOOKUP_S = 0.6
CLOSING = answering("500 Internal Server Error", extra=b"Connection: close\r\n")


async def slow_lookup(_host: str, _port: int) -> Sequence[IPAddress]:
    """Resolve a name like a slow name server."""
    await trio.sleep(LOOKUP_S)  # virtual time: the mock clock jumps
    return [ip_address("127.0.0.1")]


async def test_deletion_during_connecting_is_sent_instead_of_the_attempt(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(answering("204 No Content"))
    async with opened(tmp_path, resolver=slow_lookup, concurrency=1) as installation:
        await installation.endpoint(receiver)
        await installation.send(1, 2, conversation=5)
        await trio.sleep(LOOKUP_S / 2)  # virtual time: the mock clock jumps
        await installation.delete(5, 3)
        await receiver.wait(1)
        await trio.sleep(5)  # virtual time: the mock clock jumps
        assert receiver.sequences == [3]
        assert await installation.rows() == [(3, "delivered", 1)]
        assert await installation.log() == [(1, 204, None)]
        counters = installation.dispatcher.counters
        assert (counters.attempts, counters.failed_attempts) == (1, 0)
        assert installation.dispatcher.held == 0


async def test_probe_erased_while_it_connects_is_replaced_by_the_next_one(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(CLOSING)
    async with opened(
        tmp_path, resolver=slow_lookup, rule=CircuitRule(1, 3.0), retry_delays_s=(100.0,)
    ) as installation:
        endpoint = await installation.endpoint(receiver)
        await installation.send(1, conversation=5)
        for number in range(2, 30):
            await installation.send(number, conversation=5)
            await trio.sleep(1)  # virtual time: the mock clock jumps
        assert installation.dispatcher.circuits()["open"] == 1
        seen = len(receiver.requests)
        receiver.behaviour = answering("204 No Content")
        installation.dispatcher.probe(endpoint.rowid)
        await trio.sleep(LOOKUP_S / 2)  # virtual time: the mock clock jumps
        await installation.delete(5, 99)
        await receiver.wait(seen + 1)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert receiver.sequences[seen:] == [99]
        assert installation.dispatcher.circuits()["closed"] == 1


async def test_a_released_worker_sends_no_erased_conversation(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock, nursery: trio.Nursery
) -> None:
    receiver = await receivers(answering("204 No Content"))
    async with opened(tmp_path, resolver=slow_lookup) as installation:
        endpoint = await installation.endpoint(receiver)
        await installation.send(1, conversation=5)
        await trio.sleep(LOOKUP_S / 3)  # virtual time: the mock clock jumps
        nursery.start_soon(installation.dispatcher.release, endpoint.rowid)
        await trio.sleep(LOOKUP_S / 3)  # virtual time: the mock clock jumps
        await installation.delete(5, 2)
        await trio.sleep(5)  # virtual time: the mock clock jumps
        assert receiver.sequences == []
        installation.dispatcher.add(endpoint)
        await receiver.wait(1)
        assert receiver.sequences == [2]


async def test_typing_of_a_conversation_erased_while_its_attempt_connects_is_not_sent(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    kind = "agent.typing.started"
    receiver = await receivers(answering("204 No Content"))
    async with opened(tmp_path, resolver=slow_lookup) as installation:
        endpoint = await installation.endpoint(receiver)
        installation.dispatcher.add(replace(endpoint, events=frozenset({kind})))
        for number in (8, 9):
            installation.dispatcher.offer_ephemeral(
                EphemeralEvent(f"evt_{number}", kind, 1, number, f"cnv_{number}", "u1", b"%d" % number)
            )
        await trio.sleep(LOOKUP_S / 2)  # virtual time: the mock clock jumps
        installation.dispatcher.commit_nowait((), frozenset({8}))
        await trio.sleep(5)  # virtual time: the mock clock jumps
    assert receiver.sequences == [9]


async def test_attempt_continues_after_its_first_sent_byte(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    go = trio.Event()

    async def late(stream: trio.abc.Stream, request: Request) -> None:
        await go.wait()
        await answering("204 No Content")(stream, request)

    receiver = await receivers(late)
    async with opened(tmp_path, resolver=slow_lookup) as installation:
        await installation.endpoint(receiver)
        await installation.send(1, conversation=5)
        await receiver.wait(1)
        await installation.delete(5, 2)
        go.set()
        await receiver.wait(2)
        assert receiver.sequences == [1, 2]
        assert installation.dispatcher.counters.failed_attempts == 0
