"""Typing events to a receiver: from memory, with the usual rules.

Source: decisions 4, 6.
"""

from __future__ import annotations

import hmac
import random
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EphemeralEvent
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.ephemeral import EphemeralDelivery, EphemeralQueue
from deskwire.engine.webhooks.retry.schedule import Retry
from tests.support.sockets.receivers import (
    EPOCH_MS,
    Installation,
    Receiver,
    Receivers,
    Request,
    answering,
    opened,
)

STARTED, STOPPED = "agent.typing.started", "agent.typing.stopped"
SECRET = "whsec_known"
FAILING = answering("500 Internal Server Error")


def typing(number: int, conversation: int = 7, kind: str = STARTED) -> EphemeralEvent:
    return EphemeralEvent(
        f"evt_{number}", kind, 1, conversation, f"cnv_{conversation}", "u1", str(number).encode()
    )


def waiting(number: int, conversation: int = 7) -> EphemeralDelivery:
    return EphemeralDelivery(number, f"dlv_{number}", typing(number, conversation), EPOCH_MS, EPOCH_MS)


async def listing(installation: Installation, receiver: Receiver, *types: str) -> Endpoint:
    """Register the receiver for these types."""
    endpoint = await installation.endpoint(receiver)
    wanted = replace(
        endpoint, events=frozenset(types), sealed_secret=installation.sealing.seal(SECRET), url=receiver.url
    )
    installation.dispatcher.add(wanted)
    return wanted


async def silent(_stream: trio.abc.Stream, _request: Request) -> None:
    await trio.sleep_forever()


async def test_typing_goes_only_to_endpoints_that_list_the_type(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Contract 6.2.3, 6.2.4."""
    everything, both, one = await receivers(), await receivers(), await receivers()
    async with opened(tmp_path) as installation:
        await listing(installation, everything)
        await listing(installation, both, STARTED, STOPPED)
        await listing(installation, one, STOPPED, "message.created")
        installation.dispatcher.offer_ephemeral(typing(1))
        installation.dispatcher.offer_ephemeral(replace(typing(2), project=2))
        installation.dispatcher.offer_ephemeral(typing(3, kind=STOPPED))
        await both.wait(2)
        await trio.sleep(30)  # virtual time: the mock clock jumps
        assert installation.dispatcher.counters.typing_delivered == 3
        assert await installation.rows() == []
    assert (everything.sequences, both.sequences, one.sequences) == ([], [1, 3], [3])


async def test_a_typing_delivery_is_signed_and_named_like_the_others(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Contract 6.3; decisions 6."""
    receiver = await receivers()
    async with opened(tmp_path) as installation:
        await listing(installation, receiver, STARTED)
        installation.dispatcher.offer_ephemeral(typing(5))
        await receiver.wait(1)
    (request,) = receiver.requests
    t, v1 = (part.partition("=")[2] for part in request.headers["Service-Signature"].split(","))
    assert v1 == hmac.digest(SECRET.encode(), f"{t}.5".encode(), "sha256").hex()
    assert request.headers["Service-Event"] == STARTED
    assert request.headers["Service-Delivery-Id"].startswith("dlv_")
    assert request.headers["Service-Attempt"] == "1"
    assert "Service-Previous-Sequence" not in request.headers


async def test_a_typing_delivery_is_tried_four_times_from_memory_and_then_dropped(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Contract 6.4.2; decisions 4: the same rules; counted but not logged."""
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await listing(installation, receiver, STARTED)
        installation.dispatcher.offer_ephemeral(typing(1))
        await receiver.wait(4)
        await trio.sleep(60)  # virtual time: the mock clock jumps
        counters = installation.dispatcher.counters
        assert (counters.typing_attempts, counters.typing_failed_attempts) == (4, 4)
        assert (counters.typing_delivered, counters.typing_dropped) == (0, 1)
        assert (counters.attempts, counters.dropped) == (0, 0)
        assert (await installation.rows(), await installation.log()) == ([], [])
    assert len({request.headers["Service-Delivery-Id"] for request in receiver.requests}) == 1
    assert [request.headers["Service-Attempt"] for request in receiver.requests] == ["1", "2", "3", "4"]
    began = receiver.requests[0].at
    later = [request.at - began for request in receiver.requests[1:]]
    for at, expected in zip(later, (2, 8, 20), strict=True):
        assert expected * 0.8 <= at <= expected * 1.2 + 0.5


async def test_a_typing_delivery_that_failed_arrives_with_its_retry(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await listing(installation, receiver, STARTED)
        installation.dispatcher.offer_ephemeral(typing(1))
        await receiver.wait(1)
        receiver.behaviour = answering("204 No Content")
        await receiver.wait(2)
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert installation.dispatcher.counters.typing_delivered == 1
    assert receiver.sequences == [1, 1]


async def test_typing_waits_for_no_pause_that_the_receiver_asks_for(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: a paused endpoint is sent nothing, and an old typing event is useless afterwards."""
    receiver = await receivers(answering("429 Too Many Requests", extra=b"Retry-After: 40\r\n"))
    async with opened(tmp_path) as installation:
        await listing(installation, receiver, STARTED)
        installation.dispatcher.offer_ephemeral(typing(1))
        await receiver.wait(1)
        receiver.behaviour = answering("204 No Content")
        await trio.sleep(1)  # virtual time: the mock clock jumps
        installation.dispatcher.offer_ephemeral(typing(2))
        await trio.sleep(60)  # virtual time: the mock clock jumps
        installation.dispatcher.offer_ephemeral(typing(3))
        await receiver.wait(2)
        counters = installation.dispatcher.counters
        assert (counters.typing_paused_attempts, counters.typing_failed_attempts) == (1, 0)
        assert counters.typing_dropped == 2
    assert receiver.sequences == [1, 3]


async def test_typing_does_not_survive_a_restart(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 4."""
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await listing(installation, receiver, STARTED)
        installation.dispatcher.offer_ephemeral(typing(1))
        await receiver.wait(1)
    async with opened(tmp_path):
        await trio.sleep(60)  # virtual time: the mock clock jumps
    assert len(receiver.requests) == 1


async def test_a_dead_receiver_holds_a_bounded_number_and_the_oldest_are_dropped(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(silent)
    async with opened(tmp_path) as installation:
        await listing(installation, receiver, STARTED)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        for number in range(1, 1001):
            installation.dispatcher.offer_ephemeral(typing(number, conversation=number))
        await receiver.wait(4)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert (receiver.now, receiver.connections) == (4, 4)
        assert installation.dispatcher.counters.typing_dropped == 1000 - 256
        receiver.behaviour = answering("204 No Content")
        await receiver.wait(4 + 256)
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert installation.dispatcher.counters.typing_delivered >= 256 - 4
    assert min(receiver.sequences) == 1000 - 255


async def test_unanswered_typing_events_delay_no_stored_delivery(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """The slots for stored deliveries stay free."""

    async def only_stored(stream: trio.abc.Stream, request: Request) -> None:
        await (silent if request.headers["Service-Event"] == STARTED else answering("200 OK"))(
            stream, request
        )

    receiver = await receivers(only_stored)
    async with opened(tmp_path, concurrency=1, memory_deliveries=4) as installation:
        await listing(installation, receiver, STARTED, "message.created")
        for number in range(1, 1001):
            installation.dispatcher.offer_ephemeral(typing(number, conversation=number))
        await receiver.wait(1)
        began = trio.current_time()
        for conversation in range(1, 21):
            await installation.send(1, conversation=conversation)
        await receiver.wait(21)
        assert trio.current_time() - began < 1
        await trio.sleep(0.2)  # virtual time: the mock clock jumps
        assert {row[1:] for row in await installation.rows()} == {("delivered", 1)}


async def test_first_attempts_of_one_conversation_keep_their_order(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6: the first event is answered before the next one is sent."""
    chance = random.Random(3)

    async def slowly(stream: trio.abc.Stream, request: Request) -> None:
        await trio.sleep(chance.random())  # virtual time: the mock clock jumps
        await answering("204 No Content")(stream, request)

    receiver = await receivers(slowly)
    async with opened(tmp_path) as installation:
        await listing(installation, receiver, STARTED)
        for number in range(1, 31):
            installation.dispatcher.offer_ephemeral(typing(number, conversation=number % 3))
        await receiver.wait(30)
    assert receiver.most == 3
    for conversation in range(3):
        mine = [number for number in receiver.sequences if number % 3 == conversation]
        assert mine == sorted(mine)


async def test_nothing_more_is_sent_of_an_erased_conversation(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        await listing(installation, receiver, STARTED)
        installation.dispatcher.offer_ephemeral(typing(1, conversation=8))
        installation.dispatcher.offer_ephemeral(typing(2, conversation=9))
        await receiver.wait(2)
        installation.dispatcher.commit_nowait((), frozenset({8}))
        await receiver.wait(5)
        await trio.sleep(60)  # virtual time: the mock clock jumps
    assert sorted(receiver.sequences) == [1, 2, 2, 2, 2]


async def test_an_endpoint_without_typing_gets_no_typing_events(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    removed, changed = await receivers(FAILING), await receivers(FAILING)
    async with opened(tmp_path) as installation:
        gone = await listing(installation, removed, STARTED)
        other = await listing(installation, changed, STARTED)
        installation.dispatcher.offer_ephemeral(typing(1))
        await removed.wait(1)
        await changed.wait(1)
        installation.dispatcher.remove(gone.rowid)
        installation.dispatcher.add(replace(other, events=frozenset({"message.created"})))
        installation.dispatcher.offer_ephemeral(typing(2))
        await trio.sleep(60)  # virtual time: the mock clock jumps
    assert (removed.sequences, changed.sequences) == ([1], [1])


async def test_a_secret_that_cannot_be_opened_stops_typing_for_that_endpoint_only(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    sealed, fine = await receivers(), await receivers()
    async with opened(tmp_path) as installation:
        endpoint = await listing(installation, sealed, STARTED)
        await listing(installation, fine, STARTED)
        installation.dispatcher.add(
            replace(endpoint, sealed_secret=Encryption(Secrets("another")).seal("whsec_x"))
        )
        await trio.sleep(1)  # virtual time: the mock clock jumps
        installation.dispatcher.offer_ephemeral(typing(1))
        await fine.wait(1)
        await trio.sleep(30)  # virtual time: the mock clock jumps
    assert sealed.requests == []


STEPS = ("put", "take", "end", "fail", "repeat")


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3)), max_size=60))
def test_the_box_is_bounded_and_sends_each_conversation_in_order(steps: list[tuple[str, int]]) -> None:
    box, under_way, first = EphemeralQueue(memory=5), list[EphemeralDelivery](), list[EphemeralDelivery]()
    now, made = EPOCH_MS, 0
    for step, choice in steps:
        now += 1000
        if step == "put":
            made += 1
            box.put(waiting(made, choice))
        elif step == "take" and (taken := box.take_next(now)) is not None:
            assert taken.due_at <= now or not taken.attempts  # a pause affects the whole endpoint
            under_way.append(taken)
            first += [taken] if taken.attempts == 0 else []
        elif under_way and step in ("end", "fail", "repeat"):
            ended = under_way.pop(choice % len(under_way))
            again = Retry(now + 1500, now, now, repeats=step == "repeat")
            box.ended(ended) if step == "end" else box.retry(ended, again)
        assert len(box) <= 5
        conversations = [each.event.conversation for each in under_way if not each.attempts]
        assert len(conversations) == len(set(conversations))
    for conversation in range(4):
        numbers = [each.number for each in first if each.event.conversation == conversation]
        assert numbers == sorted(numbers)


def test_the_next_attempt_is_stored_with_the_delivery() -> None:
    box = EphemeralQueue()
    box.put(waiting(1))
    first = box.take_next(EPOCH_MS)
    assert first is not None
    assert box.retry(first, Retry(EPOCH_MS + 2_000, EPOCH_MS, EPOCH_MS + 100))
    assert (box.next_due(), box.take_next(EPOCH_MS + 1_999)) == (EPOCH_MS + 2_000, None)
    second = box.take_next(EPOCH_MS + 2_000)
    assert second is not None
    assert (second.attempts, second.planned_from, second.failing_since) == (1, EPOCH_MS, EPOCH_MS + 100)
    assert box.retry(second, Retry(EPOCH_MS + 9_000, EPOCH_MS + 7_000, None, repeats=True))
    third = box.take_next(EPOCH_MS + 9_000)
    assert third is not None
    assert (third.attempts, third.planned_from, third.failing_since) == (1, EPOCH_MS + 7_000, None)


@pytest.mark.parametrize("attempts", [0, 2])
def test_full_box_drops_the_oldest_among_new_and_retried_ones(attempts: int) -> None:
    box = EphemeralQueue(memory=2)
    assert box.put(replace(waiting(1, 1), attempts=attempts))
    assert box.put(waiting(2, 2))
    assert not box.put(waiting(3, 3))
    assert [taken.number for _ in range(3) if (taken := box.take_next(EPOCH_MS))] == [2, 3]
