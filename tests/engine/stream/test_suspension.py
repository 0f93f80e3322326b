"""Consumers whose node loses its lease for a while: they are paused, and may keep the channel (ADR 60)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.cluster.cluster import GRACE_PERIOD_S, REDIRECT_DELAY_S
from deskwire.engine.conversations.commands import ContactRef
from deskwire.engine.conversations.contacts import put_contact
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.stream.hub import ConsumerSuperseded
from deskwire.engine.stream.subscription import Subscription
from tests.support.stream_nodes import LEASE_S, MARGIN_S, NodeStage, hold_unheard, nodes, row_of
from tests.support.streaming import NOON, JumpStore, next_batch, number

_LATE_S = LEASE_S - MARGIN_S + 0.2
"""An outage after which the node doubts its lease, although the lease still exists."""
_OVER_S = LEASE_S + 2
"""An outage after which other nodes find the lease expired."""


async def stopped(node: NodeStage, seconds: float) -> None:
    """Disconnect a node from the store for this time, and wait until it has refreshed its channels."""
    node.cluster.stop()
    await trio.sleep(seconds)  # virtual time: the mock clock jumps
    node.cluster.go_on()
    await trio.sleep(1.5)  # virtual time: the mock clock jumps


async def numbers(subscription: Subscription) -> list[int]:
    return [number(event) for event in (await next_batch(subscription)).events]


async def test_consumer_continues_after_a_late_lease(autojump_clock: MockClock, store: JumpStore) -> None:
    losses, woken = list[str](), list[float]()
    async with nodes(store) as (a, b):
        held = await a.hold("c1", lost=losses.append)
        held.listen(lambda: woken.append(trio.current_time()))
        a.cluster.stop()
        await trio.sleep(_LATE_S)  # virtual time: the mock clock jumps
        assert (held.current, held.held) == (False, True)
        await b.emit(3)
        woken.clear()
        a.cluster.go_on()
        await trio.sleep(1.5)  # virtual time: the mock clock jumps
        assert (held.current, losses) == (True, [])
        assert woken, "there may be more to write"
        assert await numbers(held) == [0, 1, 2]
        row = row_of(store, a)
        assert (row.generation, row.incarnation) == (1, a.cluster.node.incarnation)


async def test_consumer_continues_under_the_next_lease_if_no_other_had_the_channel(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    losses = list[str]()
    async with nodes(store) as (a, b):
        held = await a.hold("c1", lost=losses.append)
        life = a.cluster.node.incarnation
        events = await b.emit(4)
        assert await numbers(held) == [0, 1, 2, 3]
        a.cluster.stop()
        await trio.sleep(_OVER_S)  # virtual time: the mock clock jumps
        a.hub.confirm(held, events[2].position)
        a.cluster._leases.is_live(life)  # the other nodes find it expired
        a.cluster.go_on()
        await trio.sleep(1.5)  # virtual time: the mock clock jumps
        row = row_of(store, a)
        assert (row.node, row.generation, row.connected) == ("a", 2, True)
        assert row.incarnation == a.cluster.node.incarnation > life
        assert row.position == events[2].position
        assert (held.current, losses) == (True, [])
        (last,) = await b.emit(1)
        assert await numbers(held) == [4]
        a.hub.confirm(held, last.position)
        await trio.sleep(2)  # virtual time: the mock clock jumps
        assert row_of(store, a).position == last.position


async def test_consumer_continues_if_another_node_recorded_the_end_of_its_lease(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    """A consumer that another node refused for another reason has freed the row on the way."""
    async with nodes(store) as (a, b):
        await b.hold("c0")
        held = await a.hold("c1")
        a.cluster.stop()
        await trio.sleep(_OVER_S)  # virtual time: the mock clock jumps
        with pytest.raises(ConsumerSuperseded):
            await b.hold("c0")
        assert not row_of(store, a).connected
        a.cluster.go_on()
        await trio.sleep(1.5)  # virtual time: the mock clock jumps
        assert held.current
        row = row_of(store, a)
        assert (row.node, row.connected, row.superseded) == ("a", True, ("c0",))


async def _taken(other: NodeStage) -> None:
    assert (await other.hold("c2")).current


async def _taken_and_left(other: NodeStage) -> None:
    other.hub.leave(await other.hold("c2"), for_good=False)
    await trio.sleep(0.1)  # virtual time: the mock clock jumps


async def _taken_by_itself(other: NodeStage) -> None:
    assert (await other.hold("c1")).current


async def _ended(other: NodeStage) -> None:
    assert await other.hub.end(other.project, "c1") == []


@pytest.mark.parametrize(
    ("action", "loss"),
    [
        (_taken, "superseded"),
        (_taken_and_left, "superseded"),
        (_taken_by_itself, "superseded"),
        (_ended, "ended"),
    ],
)
async def test_consumer_is_notified_as_in_any_takeover(
    action: Callable[[NodeStage], object], loss: str, autojump_clock: MockClock, store: JumpStore
) -> None:
    losses = list[str]()
    async with nodes(store) as (a, b):
        held = await a.hold("c1", lost=losses.append)
        a.cluster.stop()
        await trio.sleep(_OVER_S)  # virtual time: the mock clock jumps
        await action(b)  # type: ignore[misc]
        assert not held.current, "nothing is written before the node has read the row"
        assert losses == []
        row = row_of(store, b)
        a.cluster.go_on()
        await trio.sleep(1.5)  # virtual time: the mock clock jumps
        assert (held.held, losses) == (False, [loss])
        assert row_of(store, b) == row, "the row of the other node is unchanged"


async def test_consumer_of_the_same_node_takes_over_after_the_lease_is_back(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    losses = list[str]()
    async with nodes(store) as (a, b):
        await a.hold("c1", lost=losses.append)
        life = a.cluster.node.incarnation
        a.cluster.stop()
        await trio.sleep(_OVER_S)  # virtual time: the mock clock jumps
        b.cluster._leases.is_live(life)
        a.cluster.go_on()
        await a.cluster.until_valid()
        taker = await a.hold("c2")
        assert (taker.current, losses) == (True, ["superseded"])
        assert row_of(store, a).generation == 3
        with pytest.raises(ConsumerSuperseded):
            await b.hold("c1")


async def test_consumer_that_leaves_without_a_lease_leaves_the_channel(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    async with nodes(store) as (a, b):
        held = await a.hold("c1")
        a.cluster.stop()
        await trio.sleep(_LATE_S)  # virtual time: the mock clock jumps
        a.hub.leave(held, for_good=False)
        a.cluster.go_on()
        await trio.sleep(1.5)  # virtual time: the mock clock jumps
        assert not row_of(store, a).connected
        assert (await b.hold("c2")).current


async def test_consumer_that_leaves_while_its_hold_is_renewed_leaves_the_channel(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    async with nodes(store) as (a, _):
        held = await a.hold("c1")
        a.cluster.stop()
        await trio.sleep(_OVER_S)  # virtual time: the mock clock jumps
        a.cluster._leases.is_live(a.cluster.node.incarnation)
        write = store.write

        async def left_meanwhile(job: object) -> object:
            result: object = await write(job)  # type: ignore[arg-type]
            if held.held:
                a.hub.leave(held, for_good=False)
            return result

        store.write = left_meanwhile  # type: ignore[method-assign,assignment]
        a.cluster.go_on()
        await trio.sleep(1.5)  # virtual time: the mock clock jumps
        row = row_of(store, a)
        assert (row.generation, row.connected) == (2, False)


async def test_consumer_without_a_lease_for_too_long_is_asked_to_connect_again(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    losses = list[tuple[str, float]]()
    async with nodes(store) as (a, b):
        await trio.sleep(0.1)  # virtual time: the mock clock jumps
        held = await a.hold("c1", lost=lambda loss: losses.append((loss, trio.current_time())))
        a.cluster.stop()
        end = a.cluster.valid_until + GRACE_PERIOD_S
        await trio.sleep_until(end - 0.1)  # virtual time: the mock clock jumps
        assert losses == []
        await trio.sleep_until(end + 0.1)  # virtual time: the mock clock jumps
        assert [loss for loss, _ in losses] == ["lapsed"]
        assert not held.held
        assert (await b.hold("c1")).current


async def test_consumer_is_sent_to_another_node_that_is_ready(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    losses = list[str]()
    async with nodes(store) as (a, b):
        await a.hold("c1", lost=losses.append)
        a.hub.send_away_nowait()
        a.cluster.stop()
        await trio.sleep_until(a.cluster.valid_until + 1)  # virtual time: the mock clock jumps
        a.hub.send_away_nowait()  # a load balancer notices only this late that no node is ready
        await trio.sleep(REDIRECT_DELAY_S)  # virtual time: the mock clock jumps
        assert losses == []
        a.hub.send_away_nowait()
        await trio.sleep(0.1)  # virtual time: the mock clock jumps
        assert losses == ["lapsed"]
        assert (await b.hold("c1")).current


async def test_consumer_waits_for_a_database_that_refuses_when_the_lease_is_back(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    losses = list[str]()
    async with nodes(store) as (a, _):
        held = await a.hold("c1", lost=losses.append)
        a.cluster.stop()
        await trio.sleep(_LATE_S)  # virtual time: the mock clock jumps
        store.read_failure = Unavailable("It is starting up.", code="storage_failed")
        a.cluster.go_on()
        await trio.sleep(2)  # virtual time: the mock clock jumps
        assert (held.current, losses) == (False, [])
        store.read_failure = None
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert (held.current, losses) == (True, [])


async def test_consumer_of_an_erased_contact_connects_again(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    losses, contact = list[str](), "private-contact-u1"
    async with nodes(store) as (a, b):
        known = put_contact(store.tx, a.project, ContactRef("u1", {}), NOON).rowid
        await a.hold("c1", lost=losses.append, channel=contact)
        a.cluster.stop()
        await trio.sleep(_OVER_S)  # virtual time: the mock clock jumps
        b.cluster._leases.is_live(a.cluster.node.incarnation)
        store.tx.mark_erasing(known)
        store.tx.forget_contact_channel(known)
        a.cluster.go_on()
        await trio.sleep(1.5)  # virtual time: the mock clock jumps
        assert losses == ["lapsed"]
        assert await b.hub.consumers(b.project) == []


async def test_consumer_superseded_by_a_takeover_of_unknown_outcome_connects_again(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    """The taker was asked to come back as well; the first of the two to return gets the channel."""
    losses = list[str]()
    async with nodes(store) as (a, _):
        await a.hold("c1", lost=losses.append)
        await hold_unheard(store, a, "c1")
        await stopped(a, _LATE_S)
        assert losses == ["lapsed"]


async def test_many_consumers_continue(autojump_clock: MockClock, store: JumpStore) -> None:
    async with nodes(store) as (a, _):
        store.read_takes_s = 0.01
        holds = [await a.hold("c1", channel=f"private-contact-u{n}") for n in range(50)]
        await stopped(a, _LATE_S)
        assert all(held.current for held in holds)
