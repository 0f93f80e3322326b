"""Channels that several nodes share: one consumer writes at a time, despite failures of nodes and bus (ADR 60)."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.conversations.commands import ContactRef
from deskwire.engine.conversations.contacts import put_contact
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.stream.hub import ConsumerSuperseded, TooManyTakeovers
from tests.support.stream_nodes import hold_unheard, node_stages, nodes, row_of
from tests.support.streaming import CHANNEL, NOON, JumpStore, next_batch, number


async def test_consumer_of_another_node_takes_over_and_the_old_one_is_notified(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    received = list[str]()
    async with nodes(store) as (a, b):
        old = await a.hold("c1", lost=received.append)
        new = await b.hold("c2")
        assert (received, old.current, new.current) == (["superseded"], False, True)
        row = row_of(store, a)
        assert (row.node, row.consumer_id, row.generation, row.connected) == ("b", "c2", 2, True)
        assert trio.current_time() < 0.1


async def test_takeover_works_without_the_bus(autojump_clock: MockClock, store: JumpStore) -> None:
    async with nodes(store, lost=1.0) as (a, b):
        old = await a.hold("c1")
        assert (await b.hold("c2")).current
        assert not old.current
        assert trio.current_time() < 1.5


async def test_fence_holds_on_all_nodes(autojump_clock: MockClock, store: JumpStore) -> None:
    async with nodes(store, "abc") as (a, b, c):
        await a.hold("c1")
        successor = await b.hold("c2")
        for node in (a, b, c):
            with pytest.raises(ConsumerSuperseded):
                await node.hold("c1")
        b.hub.leave(successor, for_good=False)
        await trio.sleep(59)  # virtual time: the mock clock jumps
        with pytest.raises(ConsumerSuperseded):
            await c.hold("c1")
        await trio.sleep(1.1)  # virtual time: the mock clock jumps
        assert (await c.hold("c1")).current


async def test_unsubscribing_on_one_node_lifts_the_fence_on_all(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    async with nodes(store) as (a, b):
        await a.hold("c1")
        b.hub.leave(await b.hold("c2"), for_good=True)
        await trio.sleep(0.01)  # virtual time: the mock clock jumps
        assert (await a.hold("c1")).current
        assert (await b.hold("c2")).current, "it was not superseded"


async def test_standby_is_notified_of_a_channel_released_on_another_node(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    async with nodes(store) as (a, b):
        await a.hold("c1")
        held = await b.hold("c2")
        async with trio.open_nursery() as waiting:
            waiting.start_soon(a.hub.until_unfenced, a.channel, "c1")
            await trio.sleep(1)  # virtual time: the mock clock jumps
            b.hub.leave(held, for_good=True)
        assert trio.current_time() < 1.5


async def test_standby_is_notified_of_a_release_during_its_poll(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    async with nodes(store) as (a, b):
        await a.hold("c1")
        held = await b.hold("c2")
        start = trio.current_time()
        async with trio.open_nursery() as waiting:
            store.read_takes_s = 0.2  # the read returns the state of the moment at which it began
            waiting.start_soon(a.hub.until_unfenced, a.channel, "c1")
            await trio.sleep(0.1)  # virtual time: the mock clock jumps
            b.hub.leave(held, for_good=True)
        assert trio.current_time() - start < 1.5


async def test_a_standby_finds_a_free_channel_without_the_bus(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    async with nodes(store, lost=1.0) as (a, b):
        await a.hold("c1")
        b.hub.leave(await b.hold("c2"), for_good=False)
        start = trio.current_time()
        await a.hub.until_unfenced(a.channel, "c1")
        assert 59 < trio.current_time() - start < 66


async def test_takeovers_are_counted_over_all_nodes(autojump_clock: MockClock, store: JumpStore) -> None:
    async with nodes(store) as (a, b):
        for n in range(11):
            await (a, b)[n % 2].hold(f"c{n}")
        for node in (a, b):
            with pytest.raises(TooManyTakeovers):
                await node.hold("c11")
        await b.hub.until_unfenced(b.channel, "c11")
        assert 59 < trio.current_time() < 61
        assert (await b.hold("c11")).current


async def test_the_same_consumer_on_another_node_wins_and_is_not_fenced(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    async with nodes(store) as (a, b):
        first = await a.hold("c1")
        second = await b.hold("c1")
        assert (first.current, second.current) == (False, True)
        assert (await a.hold("c1")).current
        assert row_of(store, a).takeovers == ()


async def test_a_dead_nodes_channel_is_free_once_its_lease_is_over(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    async with nodes(store) as (a, b):
        old = await a.hold("c1")
        a.cluster.stop()
        start = trio.current_time()
        assert (await b.hold("c2")).current
        assert not old.current
        assert trio.current_time() - start <= 5.3
        a.cluster.go_on()
        await trio.sleep(3)  # virtual time: the mock clock jumps
        assert not old.current
        with pytest.raises(ConsumerSuperseded):
            await a.hold("c1")


async def test_fence_of_a_dead_nodes_holder_runs_from_the_detection(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    """The last holder is protected as if it had just dropped off, as after a restart."""
    async with nodes(store) as (a, b):
        await b.hold("c1")
        await a.hold("c2")
        a.cluster.stop()
        await trio.sleep(5)  # virtual time: the mock clock jumps
        with pytest.raises(ConsumerSuperseded):
            await b.hold("c1")
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert (await b.hold("c1")).current


async def test_holders_fence_ends_in_time_if_its_nodes_lease_was_late(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    async with nodes(store) as (a, b):
        await a.hold("c1")
        held = await b.hold("c2")
        life = b.cluster.node
        await trio.sleep(3.1)  # virtual time: the mock clock jumps
        b.cluster.stop()
        await trio.sleep(4.6)  # virtual time: the mock clock jumps
        assert not held.current
        b.hub.leave(held, for_good=False)
        b.cluster.go_on()
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert b.cluster.node == life
        with pytest.raises(ConsumerSuperseded):
            await a.hold("c1")
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert (await a.hold("c1")).current


async def test_failed_takeover_raises_and_changes_nothing(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    """A live node that does not release a channel, because its releaser fails."""
    received = list[str]()
    async with trio.open_nursery() as nursery:
        a, b = await node_stages(store, nursery, "ab", lost=1.0)
        held = await a.hold("c1", lost=received.append)
        shared = a.hub._shared
        assert shared is not None
        with pytest.MonkeyPatch.context() as patch:

            async def nothing() -> tuple[()]:
                return ()

            patch.setattr(shared.releaser, "_requests", nothing)
            with pytest.raises(Unavailable) as refused:
                await b.hold("c2")
            assert refused.value.reason == "channel_not_released"
            assert 10 <= trio.current_time() < 10.5
            await trio.sleep(0.1)  # virtual time: the mock clock jumps
        await trio.sleep(5)  # virtual time: the mock clock jumps
        row = row_of(store, a)
        assert (held.current, received, row.request, row.consumer_id, row.generation) == (
            True,
            [],
            None,
            "c1",
            1,
        )
        nursery.cancel_scope.cancel()


async def test_client_that_leaves_during_the_wait_has_no_effect(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    async with nodes(store, lost=1.0) as (a, b):
        held = await a.hold("c1")
        await trio.sleep(0.1)  # virtual time: the mock clock jumps
        with trio.move_on_after(0.1):
            await b.hold("c2")
        await trio.sleep(20)  # virtual time: the mock clock jumps
        assert held.current
        assert row_of(store, a).request is None


async def test_client_that_leaves_during_the_request_commit_has_no_effect(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    async with nodes(store, lost=1.0) as (a, b):
        held = await a.hold("c1")
        await trio.sleep(0.1)  # virtual time: the mock clock jumps
        write = store.write

        async def heard_late(job: object) -> None:
            await write(job)  # type: ignore[arg-type]
            await trio.sleep(0.2)  # virtual time: the mock clock jumps

        store.write = heard_late  # type: ignore[method-assign,assignment]
        with trio.move_on_after(0.1):
            await b.hold("c2")
        store.write = write  # type: ignore[method-assign]
        await trio.sleep(20)  # virtual time: the mock clock jumps
        assert held.current
        assert row_of(store, a).request is None


async def test_confirmed_position_moves_to_the_other_node(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    async with nodes(store) as (a, b):
        held = await a.hold("c1")
        events = await a.emit(5)
        a.hub.confirm(held, events[2].position)
        successor = await b.hold("c1")
        assert successor.start.resumed_after == events[2].id
        assert [number(event) for event in (await next_batch(successor)).events] == [3, 4]


async def test_a_late_confirmation_on_the_old_node_changes_nothing(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    async with nodes(store) as (a, b):
        old = await a.hold("c1")
        events = await a.emit(3)
        new = await b.hold("c2")
        a.hub.confirm(old, events[-1].position)
        a.hub.leave(old, for_good=True)
        await trio.sleep(2)  # virtual time: the mock clock jumps
        row = row_of(store, a)
        assert (row.position, row.node, row.generation, row.superseded) == (0, "b", 2, ("c1",))
        assert new.current


async def test_list_shows_the_consumers_of_other_nodes(autojump_clock: MockClock, store: JumpStore) -> None:
    async with nodes(store, "abc") as (a, b, c):
        held = await a.hold("c1")
        events = await a.emit(3)
        a.hub.confirm(held, events[0].position)
        await trio.sleep(2)  # virtual time: the mock clock jumps
        for node in (a, b, c):
            (status,) = await node.hub.consumers(node.project)
            assert (status.consumer_id, status.connected, status.lag) == ("c1", True, 2)
            assert status.confirmed == events[0].id
        a.cluster.stop()
        await trio.sleep(6)  # virtual time: the mock clock jumps
        (status,) = await b.hub.consumers(b.project)
        assert not status.connected


async def test_consumer_is_ended_on_any_node(autojump_clock: MockClock, store: JumpStore) -> None:
    received = list[str]()
    async with nodes(store, "abc") as (a, b, c):
        contact = "private-contact-u1"
        holds = [
            await a.hold("c1", lost=received.append),
            await b.hold("c1", lost=received.append, channel=contact),
        ]
        assert await c.hub.end(c.project, "c1") == [contact, CHANNEL]
        assert ([held.current for held in holds], received) == ([False, False], ["ended", "ended"])
        for node in (a, b, c):
            with pytest.raises(ConsumerSuperseded):
                await node.hold("c1")
        assert await a.hub.end(a.project, "c1") == [], "it is a repetition"
        assert (await c.hold("c2")).current
        assert trio.current_time() < 0.5


async def test_all_channels_of_a_connection_end_before_it_is_notified(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    """The callback checks which channels are left; without any, the client must not reconnect."""
    left = list[list[bool]]()
    async with nodes(store) as (a, b):
        holds = list[object]()

        def received(_: str) -> None:
            left.append([held.current for held in holds])  # type: ignore[attr-defined]

        holds += [
            await a.hold("c1", lost=received),
            await a.hold("c1", lost=received, channel="private-contact-u1"),
        ]
        await b.hub.end(b.project, "c1")
    assert left == [[False, False], [False, False]]


async def test_dead_nodes_consumer_is_ended_after_its_lease(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    async with nodes(store) as (a, b):
        held = await a.hold("c1")
        a.cluster.stop()
        assert await b.hub.end(b.project, "c1") == [CHANNEL]
        assert not held.current
        assert trio.current_time() <= 5.5


async def test_a_node_without_a_lease_takes_nothing(autojump_clock: MockClock, store: JumpStore) -> None:
    async with nodes(store) as (a, b):
        await b.hold("c1")
        a.cluster.valid_until = trio.current_time()
        with pytest.raises(Unavailable):
            await a.hold("c1")
        with pytest.raises(Unavailable):
            await a.hub.end(a.project, "c1")


@pytest.mark.parametrize("more", [0, 1, 4])
async def test_consumer_ahead_of_the_log_gets_a_gap_until_one_confirms(
    autojump_clock: MockClock, store: JumpStore, more: int
) -> None:
    """A replica that became the primary lacks the newest events, and assigns their positions again."""
    async with nodes(store) as (a, _):
        held = await a.hold("c1")
        events = await a.emit(5)
        a.hub.confirm(held, events[-1].position)
        await trio.sleep(2)  # virtual time: the mock clock jumps
        a.hub.leave(held, for_good=False)
        await trio.sleep(2)  # virtual time: the mock clock jumps
    store.tx.conn.execute("DELETE FROM events WHERE position > ?", (events[1].position,))
    store.tx.conn.execute("UPDATE event_window SET spent_position = 0, spent_id = NULL")
    store.tx.start_events()
    async with nodes(store) as (a, b):
        again = await b.emit(more)
        newest = again[-1].position if again else events[1].position
        for node in (b, a):
            successor = await node.hold("c1")
            assert (successor.start.gap, successor.start.position) == (True, newest)
        (last,) = await b.emit(1)
        a.hub.confirm(successor, last.position)
        restored = await b.hold("c1")
        assert (restored.start.gap, restored.start.resumed_after) == (False, last.id)


async def test_erased_events_are_no_gap(autojump_clock: MockClock, store: JumpStore) -> None:
    async with nodes(store) as (a, b):
        held = await a.hold("c1")
        events = await a.emit(5)
        a.hub.confirm(held, events[3].position)
        await trio.sleep(2)  # virtual time: the mock clock jumps
        store.tx.conn.execute("DELETE FROM events WHERE position = ?", (events[3].position,))
        successor = await b.hold("c1")
        assert (successor.start.gap, successor.start.resumed_after) == (False, events[2].id)


async def test_channel_of_an_erased_contact_is_released_before_its_row_is_deleted(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    received = list[str]()
    async with nodes(store) as (a, b):
        contact = "private-contact-u1"
        known = put_contact(store.tx, a.project, ContactRef("u1", {}), NOON).rowid
        held = await a.hold("c1", lost=received.append, channel=contact)
        store.tx.mark_erasing(known)
        store.tx.forget_contact_channel(known)
        successor = await b.hold("c2", channel=contact)
        assert (held.current, successor.current, received) == (False, True, ["lapsed"])
        b.hub.leave(successor, for_good=True)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        store.tx.forget_contact_channel(known)
        assert await a.hub.consumers(a.project) == []


@pytest.mark.parametrize("then", ["leaves", "is ended", "comes back"])
async def test_channel_of_an_erased_contact_is_deleted_despite_its_consumers_actions(
    then: str, autojump_clock: MockClock, store: JumpStore
) -> None:
    async with nodes(store, lost=1.0) as (a, b):
        contact = "private-contact-u1"
        known = put_contact(store.tx, a.project, ContactRef("u1", {}), NOON).rowid
        held = await a.hold("c1", channel=contact)
        if then == "is ended":  # by another node, because its own is dead
            a.cluster.stop()
            await trio.sleep(5.5)  # virtual time: the mock clock jumps
        store.tx.mark_erasing(known)
        store.tx.forget_contact_channel(known)
        if then == "leaves":
            a.hub.leave(held, for_good=False)
        elif then == "is ended":
            assert await b.hub.end(b.project, "c1") == []
        else:
            assert (await a.hold("c1", channel=contact)).current
        await trio.sleep(2)  # virtual time: the mock clock jumps
        assert await b.hub.consumers(b.project) == []


async def test_commit_of_unknown_outcome_leaves_the_channel_free(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    async with nodes(store) as (a, b):
        await hold_unheard(store, a, "c1")
        assert row_of(store, a).node == "a"
        assert (await b.hold("c2")).current
        assert (await a.hold("c3")).current


async def test_fence_of_a_takeover_of_unknown_outcome_ends_in_time(
    autojump_clock: MockClock, store: JumpStore
) -> None:
    async with nodes(store) as (a, b):
        b.hub.leave(await b.hold("c1"), for_good=False)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        await hold_unheard(store, a, "c2")
        for node in (a, b):
            with pytest.raises(ConsumerSuperseded):
                await node.hold("c1")
        await trio.sleep(61)  # virtual time: the mock clock jumps
        assert (await b.hold("c1")).current
