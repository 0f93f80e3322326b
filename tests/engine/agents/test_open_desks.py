"""The open desks of other nodes: announced at once and again, closed, and expired with a dead node."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from deskwire.engine.agents.open_desks import Desk, OpenDesks
from tests.support.linked_buses import LinkedBus

DESK: Desk = (1, "ses_1")


def pair() -> tuple[OpenDesks, OpenDesks, LinkedBus]:
    """Return the desks as seen by two nodes, and the bus of the first one."""
    buses: list[LinkedBus] = []
    first, second = LinkedBus(buses), LinkedBus(buses)
    return OpenDesks(first, "a"), OpenDesks(second, "b"), first


async def test_open_desk_of_another_node_is_known_until_it_is_closed() -> None:
    here, there, _ = pair()
    here.announce(DESK, is_open=True)
    assert there.is_open(DESK)
    assert not here.is_open(DESK), "a node knows its own desks by their streams"
    assert not there.is_open((2, "ses_1"))
    here.announce(DESK, is_open=False)
    assert not there.is_open(DESK)


async def test_lost_announcement_is_repaired_by_the_next_one(autojump_clock: MockClock) -> None:
    here, there, bus = pair()
    bus.cut = True
    here.announce(DESK, is_open=True)
    assert not there.is_open(DESK)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.run, lambda: [DESK])
        await trio.sleep(1)
        bus.cut = False
        await trio.sleep(10)
        assert there.is_open(DESK)
        nursery.cancel_scope.cancel()


async def test_desks_of_a_dead_node_expire(autojump_clock: MockClock) -> None:
    here, there, _ = pair()
    here.announce(DESK, is_open=True)
    await trio.sleep(24)
    assert there.is_open(DESK)
    await trio.sleep(2)
    assert not there.is_open(DESK)


async def test_many_desks_fit_into_messages_of_the_bus(autojump_clock: MockClock) -> None:
    here, there, bus = pair()
    desks: list[Desk] = [(1_000_000 + number, f"ses_{'0' * 22}{number:04}") for number in range(500)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.run, lambda: desks)
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert all(map(there.is_open, desks))
    assert len(bus.sent) == 10
