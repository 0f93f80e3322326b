from __future__ import annotations

from functools import partial

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from deskwire.engine.cluster.membership import LEASE_DURATION_S
from deskwire.engine.core.errors import Unavailable
from tests.engine.cluster.conftest import Starting
from tests.support.builders import InlineStore
from tests.support.nodes import ANode, Wires, advance_epoch

pytestmark = pytest.mark.sqlite


async def change(node: ANode) -> float:
    """Change data that all nodes cache, and return the time until no node has it cached."""
    await node.way.write(advance_epoch)
    began = trio.current_time()
    await node.membership.wait_for_all_nodes()
    return trio.current_time() - began


async def test_wait_ends_when_all_nodes_have_invalidated(autojump_clock: MockClock, start: Starting) -> None:
    a, b = await start("a"), await start("b")
    await trio.sleep(3)
    committed_at = trio.current_time()
    assert await change(a) < 0.1
    assert a.forgotten[-1] >= committed_at
    assert b.forgotten[-1] >= committed_at


async def test_wait_includes_a_node_that_invalidates_slowly(
    autojump_clock: MockClock, start: Starting
) -> None:
    a, b = await start("a"), await start("b")
    await trio.sleep(3)
    b.before_forgetting = partial(trio.sleep, 2)
    assert 2 <= await change(a) < 2.3


async def test_lost_hints_delay_the_wait_by_a_heartbeat(
    autojump_clock: MockClock, start: Starting, wires: Wires
) -> None:
    a, b = await start("a"), await start("b")
    await trio.sleep(3)
    wires.lost = True
    committed_at = trio.current_time()
    assert await change(a) <= 1.3
    assert b.forgotten[-1] >= committed_at


async def test_suspended_node_delays_the_wait_until_its_lease_ends(
    autojump_clock: MockClock, start: Starting
) -> None:
    a, b = await start("a"), await start("b")
    await trio.sleep(6)
    b.stop()
    assert LEASE_DURATION_S - 1.1 <= await change(a) <= LEASE_DURATION_S + 0.3
    b.go_on()
    assert not b.membership.valid, "its cache is outdated"
    woken_at = trio.current_time()
    await b.membership.until_valid()
    assert b.forgotten[-1] >= woken_at


async def test_node_that_can_not_invalidate_loses_its_lease(
    autojump_clock: MockClock, start: Starting
) -> None:
    a, b = await start("a"), await start("b")
    await trio.sleep(6)
    over = trio.Event()
    b.before_forgetting = over.wait
    took = await change(a)
    assert LEASE_DURATION_S < took < 2 * LEASE_DURATION_S + 2
    assert not b.membership.valid
    over.set()
    await trio.sleep(2)
    assert b.losses == 1
    assert b.membership.valid


@pytest.mark.parametrize("for_s", [2, 30])
async def test_bug_in_invalidation_ends_no_node_and_is_retried(
    for_s: int, autojump_clock: MockClock, start: Starting
) -> None:
    a, b = await start("a"), await start("b")
    await trio.sleep(6)
    over_at = trio.current_time() + for_s

    async def fail() -> None:
        if trio.current_time() < over_at:
            raise KeyError("a bug")

    b.before_forgetting = fail
    with capture_logs() as logs:
        took = await change(a)
        await trio.sleep_until(over_at + 3)
    assert for_s <= took < for_s + 1.5 or LEASE_DURATION_S < took < 2 * LEASE_DURATION_S + 2
    assert b.membership.valid
    assert b.losses == (for_s > LEASE_DURATION_S)
    failures = [each for each in logs if each["event"] == "node.forgetting_failed"]
    assert 0 < len(failures) <= for_s + 1
    assert all(each["exc_info"] for each in failures)


async def test_wait_includes_a_node_until_its_first_invalidation(
    autojump_clock: MockClock, start: Starting, shared: InlineStore, wires: Wires, nursery: trio.Nursery
) -> None:
    a = await start("a")
    late = ANode("b", shared, wires)
    late.before_forgetting = partial(trio.sleep, 3)
    nursery.start_soon(late.membership.run)
    await trio.sleep(0.1)
    assert 2.5 < await change(a) < 6.5
    assert late.forgotten


async def test_many_waiting_callers_share_polls(
    autojump_clock: MockClock, start: Starting, shared: InlineStore
) -> None:
    a, b = await start("a"), await start("b")
    await trio.sleep(3)
    b.before_forgetting = partial(trio.sleep, 1)
    reads = shared.reads
    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(change, a)
    assert shared.reads - reads < 150


async def test_wait_raises_when_the_outcome_is_unknown(autojump_clock: MockClock, start: Starting) -> None:
    a, b = await start("a"), await start("b")
    await trio.sleep(6)
    b.before_forgetting = partial(trio.sleep, 60)
    await a.way.write(advance_epoch)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(refused, a)
        await trio.sleep(0.5)
        a.way.cut = True


async def refused(node: ANode) -> None:
    with pytest.raises(Unavailable) as refusal:
        await node.membership.wait_for_all_nodes()
    assert refusal.value.reason == "not_confirmed"
