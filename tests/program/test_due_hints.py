"""Work of one node that other nodes make due: it starts at once after a hint, and a few seconds late without one."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.core.commits import Subscribers
from deskwire.engine.core.tasks.scheduled import ScheduledTask
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Commit
from deskwire.program.wiring import share_times
from tests.support.builders import InlineStore
from tests.support.nodes import WiredBus, Wires

pytestmark = pytest.mark.sqlite
NOTHING: Any = Commit((), (), frozenset())


def now_ms() -> int:
    return round(trio.current_time() * 1000)


class DueTask(ScheduledTask[Any, Any]):
    """A task that does what is in `due`, which is as stored as it needs to be."""

    delayed = "test.delayed"

    def __init__(self, store: InlineStore, due: list[int]) -> None:
        super().__init__(store, now_ms)
        self.due = due
        self.done: list[float] = []

    def next_due(self, _: Any) -> int | None:  # type: ignore[override]  # what is stored is this node's own here
        return min(self.due, default=None)

    async def run_batch(self) -> bool:
        self.due.remove(min(self.due))
        self.done.append(trio.current_time())
        return True


class Pair:
    """The node with the duties, which runs the task, and another, which commits."""

    def __init__(self, store: InlineStore) -> None:
        self.wires = Wires()
        self.due: list[int] = []
        self.task, idle = (DueTask(store, self.due) for _ in range(2))
        self.buses = [self.wires.bus() for _ in range(2)]
        self.commits = [Subscribers[Commit]() for _ in range(2)]
        for bus, commits, task in zip(self.buses, self.commits, (self.task, idle), strict=True):
            share_times(bus, commits, [task])

    def commit(self, part: str) -> None:
        """Commit something on the other node that is due in a second."""
        at = now_ms() + 1_000
        self.due.append(at)
        self.commits[1].tell(replace(NOTHING, **{part: (at,)}))


@pytest.mark.parametrize("part", ["due", "runs_due", "snoozes_due"])
async def test_work_made_due_by_another_node_is_done_in_time(
    autojump_clock: MockClock, inline_store: InlineStore, nursery: trio.Nursery, part: str
) -> None:
    pair = Pair(inline_store)
    nursery.start_soon(pair.task.run)
    await trio.sleep(0.5)
    pair.commit(part)
    await trio.sleep(10)
    assert pair.task.done == [pytest.approx(1.5, abs=0.01)]


async def test_a_lost_hint_costs_a_few_seconds(
    autojump_clock: MockClock, inline_store: InlineStore, nursery: trio.Nursery
) -> None:
    pair = Pair(inline_store)
    nursery.start_soon(pair.task.run)
    await trio.sleep(0.5)
    pair.wires.lost = True
    pair.commit("due")
    await trio.sleep(10)
    [done] = pair.task.done
    assert 1.5 < done <= 5.01, "it is looked for every five seconds"


async def test_commits_without_due_work_send_no_hint(inline_store: InlineStore) -> None:
    pair = Pair(inline_store)
    heard: list[bytes] = []
    listener: WiredBus = pair.wires.bus()
    listener.receive("due", heard.append)
    pair.commits[1].tell(NOTHING)
    assert heard == []
    pair.commit("due")
    assert heard == [b""]
