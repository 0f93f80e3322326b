from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.cluster.membership import LEASE_DURATION_S, LEASE_MARGIN_S
from deskwire.engine.core.errors import Unavailable
from tests.engine.cluster.conftest import Starting
from tests.support.builders import InlineStore
from tests.support.nodes import ANode, Wires

pytestmark = pytest.mark.sqlite


def names(node: ANode) -> list[str]:
    return [each.name for each in node.membership.live]


async def test_nodes_see_each_other_within_a_heartbeat(autojump_clock: MockClock, start: Starting) -> None:
    a, b = await start("a"), await start("b")
    await trio.sleep(1.1)
    assert names(a) == names(b) == ["a", "b"]
    assert (a.membership.size, b.membership.size) == (2, 2)
    assert a.membership.node.incarnation != b.membership.node.incarnation


async def test_lease_ends_for_its_node_before_it_ends_for_others(
    autojump_clock: MockClock, start: Starting
) -> None:
    a = await start("a")
    await trio.sleep(3.2)
    asked_at = trio.current_time()
    assert (
        asked_at + LEASE_DURATION_S - LEASE_MARGIN_S - 1.0
        <= a.membership.valid_until
        <= asked_at + LEASE_DURATION_S - LEASE_MARGIN_S
    )


async def test_lease_counts_from_before_its_renewal(autojump_clock: MockClock, start: Starting) -> None:
    a = await start("a")
    a.way.delay_s = 2.0
    await trio.sleep(1.5)  # during a heartbeat that is sent late
    sent_by = trio.current_time()
    await trio.sleep(2.0)
    assert a.membership.valid_until <= sent_by + LEASE_DURATION_S - LEASE_MARGIN_S


async def test_suspended_node_expires_and_begins_another_incarnation(
    autojump_clock: MockClock, start: Starting
) -> None:
    a, b = await start("a"), await start("b")
    await trio.sleep(6)
    before = a.membership.node
    a.stop()
    await trio.sleep(LEASE_DURATION_S + 1.1)
    assert names(b) == ["b"]
    assert not a.membership.valid
    assert a.losses == 0, "it does not know yet"
    a.go_on()
    assert not a.membership.valid, "before its first heartbeat"
    await trio.sleep(2.2)
    assert a.losses == 1
    assert a.membership.valid
    assert a.membership.node.incarnation > before.incarnation
    assert sorted(names(b)) == ["a", "b"]


async def test_node_suspended_for_less_than_its_lease_keeps_it(
    autojump_clock: MockClock, start: Starting
) -> None:
    a, b = await start("a"), await start("b")
    await trio.sleep(6)
    before = a.membership.node
    a.stop()
    await trio.sleep(3.5)
    a.go_on()
    await trio.sleep(2)
    assert a.losses == 0
    assert a.membership.node == before
    assert names(b) == ["a", "b"]


async def test_late_heartbeat_is_followed_by_the_next_at_once(
    autojump_clock: MockClock, start: Starting
) -> None:
    a = await start("a")
    a.way.delay_s = 0.2
    await trio.sleep(3)
    while True:  # until a heartbeat has just been sent
        before = a.way.sent
        await trio.sleep(0.01)
        if a.way.sent > before:
            break
    a.stop()
    await trio.sleep(LEASE_DURATION_S - LEASE_MARGIN_S + 0.1)
    assert not a.membership.valid
    a.go_on()
    await trio.sleep(0.01)
    assert not a.membership.valid, "the result belongs to the heartbeat before"
    await trio.sleep(0.3)
    assert a.membership.valid
    assert a.losses == 0


async def test_first_node_after_a_database_outage_does_not_expire_others(
    autojump_clock: MockClock,
    start: Starting,
) -> None:
    a, b = await start("a"), await start("b")
    await trio.sleep(6)
    lives = a.membership.node, b.membership.node
    a.way.cut = b.way.cut = True
    await trio.sleep(30)
    assert not a.membership.valid
    a.way.cut = False
    await trio.sleep(3)
    b.way.cut = False
    await trio.sleep(10)
    assert (a.losses, b.losses) == (0, 0)
    assert (a.membership.node, b.membership.node) == lives
    assert a.membership.valid
    assert b.membership.valid


async def test_node_missing_after_a_database_outage_expires_a_lease_later(
    autojump_clock: MockClock,
    start: Starting,
) -> None:
    a, b = await start("a"), await start("b")
    await trio.sleep(6)
    a.way.cut = b.way.cut = True
    await trio.sleep(30)
    a.way.cut = False
    await trio.sleep(LEASE_DURATION_S + 2)
    assert names(a) == ["a"]


async def test_stopping_node_releases_its_lease(
    autojump_clock: MockClock, start: Starting, shared: InlineStore, wires: Wires
) -> None:
    a = await start("a")
    async with trio.open_nursery() as nursery:
        await nursery.start(ANode("b", shared, wires).membership.run)
        await trio.sleep(1.1)
        assert names(a) == ["a", "b"]
        nursery.cancel_scope.cancel()
    await trio.sleep(1.1)
    assert names(a) == ["a"]


async def test_clock_difference_affects_readiness_only(autojump_clock: MockClock, start: Starting) -> None:
    a, b = await start("a"), await start("b")
    a.ahead_ms, b.ahead_ms = 5_100, -1_500
    await trio.sleep(8)
    assert a.membership.valid
    assert b.membership.valid
    assert a.membership.offset_s == pytest.approx(5.1, abs=0.05)
    assert b.membership.offset_s == pytest.approx(-1.5, abs=0.05)
    assert "clock is +5.1 s" in (a.membership.refusal() or "")
    assert b.membership.refusal() is None
    assert names(a) == ["a", "b"]


async def test_node_after_machine_sleep_is_invalid_until_its_next_heartbeat(
    autojump_clock: MockClock,
    start: Starting,
) -> None:
    a = await start("a")
    await trio.sleep(0.5)
    assert a.membership.valid
    a.ahead_ms += 60_000  # Trio's clock has stood still with the machine
    assert not a.membership.valid
    await trio.sleep(1)
    assert a.membership.valid


async def test_node_is_not_ready_when_its_heartbeat_is_late(
    autojump_clock: MockClock, start: Starting
) -> None:
    a = await start("a")
    await trio.sleep(1)
    assert a.membership.refusal() is None
    a.way.cut = True
    await trio.sleep(3.3)
    assert "not renewed" in (a.membership.refusal() or "")
    await trio.sleep(2)
    assert "no valid lease" in (a.membership.refusal() or "")


async def test_one_node_is_leader_and_another_takes_over(autojump_clock: MockClock, start: Starting) -> None:
    done: list[tuple[str, str]] = []

    def working(name: str) -> None:
        async def work() -> None:
            done.append((name, "begun"))
            try:
                await trio.sleep_forever()
            finally:
                done.append((name, "ended"))

        nursery.start_soon(nodes[name].membership.while_leader, work)

    nodes = {name: await start(name) for name in "ab"}
    async with trio.open_nursery() as nursery:
        working("a")
        working("b")
        await trio.sleep(10)
        assert done == [("a", "begun")]
        nodes["a"].stop()
        await trio.sleep(LEASE_DURATION_S + 1.1)
        assert done == [("a", "begun"), ("b", "begun")]
        nodes["a"].go_on()
        await trio.sleep(2.2)
        assert done == [("a", "begun"), ("b", "begun"), ("a", "ended")]
        nursery.cancel_scope.cancel()


async def test_leader_work_that_returns_or_fails_is_not_restarted(
    autojump_clock: MockClock, start: Starting
) -> None:
    a = await start("a")
    ran = []

    async def work() -> None:
        ran.append(1)

    async def failing() -> None:
        raise Unavailable("no")

    await a.membership.while_leader(work)
    assert ran == [1]
    with pytest.raises(Unavailable):
        await a.membership.while_leader(failing)
