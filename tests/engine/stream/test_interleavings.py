"""Nodes with events in random order: at most one node writes, and no event is left out (ADR 60)."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from deskwire.engine.core.errors import DomainError
from deskwire.engine.events.types import EventDraft
from deskwire.engine.ports import Transaction
from deskwire.engine.stream.lease import ChannelLease
from deskwire.engine.stream.subscription import LeasedSubscription, Subscription
from tests.support.properties import budget
from tests.support.stream_nodes import NodeStage, node_stages
from tests.support.streaming import JumpStore, number, trio_ms

NODES = "abc"
CONSUMERS = ("c1", "c2", "c3")
_TICK_S = 0.1

node = st.integers(0, len(NODES) - 1)
consumer = st.sampled_from(CONSUMERS)
action = st.one_of(
    st.tuples(st.just("subscribe"), node, consumer),
    st.tuples(st.just("subscribe"), node, consumer),
    st.tuples(st.just("leave"), node, st.booleans()),
    st.tuples(st.just("end"), node, consumer),
    st.tuples(st.just("stop"), node, st.sampled_from((0.3, 3.0, 7.0, 20.0))),
    st.tuples(st.just("fail"), node, st.sampled_from((0.2, 2.0))),
    st.tuples(st.just("emit"), node, st.integers(1, 4)),
    st.tuples(st.just("pass"), node, st.sampled_from((0.1, 1.0, 6.0, 30.0, 70.0))),
)


class Judge:
    """Checks the rules on all nodes after each step.

    Attributes:
        written: the highest number written to any consumer of the channel.
        emitted: the number of the next event.
    """

    def __init__(self, stages: list[NodeStage]) -> None:
        self.stages = stages
        self.held: list[tuple[NodeStage, Subscription]] = []
        self.written = -1
        self.emitted = 0

    def subscribed(self, stage: NodeStage, subscription: Subscription) -> None:
        self.held.append((stage, subscription))
        self.at_most_one()

    def at_most_one(self) -> None:
        current = [each for _, each in self.held if each.current]
        assert len(current) <= 1, [(each.consumer_id, each.channel.name) for each in current]

    def write(self) -> None:
        """Let each current consumer write the events in memory and confirm half of them."""
        self.at_most_one()
        for stage, each in self.held:
            batch = each.recent() if each.current else None
            if batch is None:
                continue
            for event in batch.events:
                found = number(event)
                assert found <= self.written + 1 or each.start.gap, f"{self.written} is followed by {found}"
                self.written = max(self.written, found)
            if batch.events:
                stage.hub.confirm(each, batch.events[len(batch.events) // 2].position)

    async def emit(self, store: JumpStore, count: int) -> None:
        """Commit events with growing numbers, independently of any node."""

        def job(tx: Transaction) -> None:
            for n in range(self.emitted, self.emitted + count):
                draft = EventDraft("contact.updated", None, {"n": n})
                tx.append_event(self.stages[0].project, draft, None, trio_ms())
            self.emitted += count

        await store.write(job)

    async def run(self) -> None:
        while True:
            self.write()
            await trio.sleep(_TICK_S)  # virtual time: the mock clock jumps


async def _live(directory: Path, actions: list[tuple[str, int, object]], seed: int, lost: float) -> None:
    store = JumpStore(directory)
    store.write_takes_s, store.read_takes_s = 0.004, 0.001
    dice = Random(seed)
    try:
        async with trio.open_nursery() as nursery:
            stages = await node_stages(
                store, nursery, NODES, dice=dice, lost=lost, late_s=dice.choice((0, 0.5, 4))
            )
            judge = Judge(stages)
            await judge_first(judge)
            nursery.start_soon(judge.run)
            for what, place, value in actions:
                nursery.start_soon(_do, nursery, judge, store, what, stages[place], value)
                await trio.sleep(dice.choice((0, 0.002, 0.005, 0.3, 2)))  # virtual time: the mock clock jumps
                if what == "pass":
                    await trio.sleep(float(str(value)))  # virtual time: the mock clock jumps
            for stage in stages:
                stage.cluster.go_on()
            await trio.sleep(80)  # virtual time: the mock clock jumps
            # In any case a consumer with a new id gets the channel and all unconfirmed events.
            last = await stages[dice.randrange(3)].hold("last")
            judge.subscribed(stages[0], last)
            await judge.emit(store, 1)
            await trio.sleep(1)  # virtual time: the mock clock jumps
            assert last.current
            assert judge.written == judge.emitted - 1
            nursery.cancel_scope.cancel()
    finally:
        store.close()


async def judge_first(judge: Judge) -> None:
    """Subscribe the channel's first consumer before the first event."""
    first = judge.stages[0]
    judge.subscribed(first, await first.hold("c0"))


async def _do(
    nursery: trio.Nursery, judge: Judge, store: JumpStore, what: str, stage: NodeStage, value: object
) -> None:
    try:
        match what:
            case "subscribe":
                judge.subscribed(stage, await stage.hold(str(value), lost=lambda _: judge.at_most_one()))
            case "leave":
                for where, each in judge.held:
                    if where is stage and each.current:
                        stage.hub.leave(each, for_good=bool(value))
            case "end":
                await stage.hub.end(stage.project, str(value))
            case "stop":
                stage.cluster.stop()
                await trio.sleep(float(str(value)))  # virtual time: the mock clock jumps
                stage.cluster.go_on()
            case "fail":
                store.write_takes_s += 1.0
                await trio.sleep(float(str(value)))  # virtual time: the mock clock jumps
                store.write_takes_s -= 1.0
            case "emit":
                await judge.emit(store, int(str(value)))
            case _:
                pass
    except DomainError:
        judge.at_most_one()  # a refusal is a valid outcome


@budget(50)
@given(st.lists(action, max_size=14), st.integers(0, 999), st.sampled_from((0.0, 0.5, 1.0)))
def test_at_most_one_consumer_writes_and_no_event_is_left_out(
    actions: list[tuple[str, int, object]], seed: int, lost: float
) -> None:
    with TemporaryDirectory() as directory:
        clock = MockClock(autojump_threshold=0)
        trio.run(_live, Path(directory), actions, seed, lost, clock=clock)


@pytest.mark.parametrize("plant", ["lease not looked at", "let go before it is stopped"])
def test_judge_detects_two_writing_consumers(
    plant: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Test the judge: if either rule is broken, two consumers write for a while."""
    if plant == "lease not looked at":
        monkeypatch.setattr(LeasedSubscription, "_leased", lambda _: True)
    else:
        monkeypatch.setattr(ChannelLease, "stop", lambda lease: lease.holder)
    actions = [("stop", 0, 20.0), ("subscribe", 1, "c1"), ("pass", 0, 6.0)]
    found = pytest.RaisesGroup(AssertionError, flatten_subgroups=True, allow_unwrapped=True)
    with found:
        clock = MockClock(autojump_threshold=0)
        trio.run(
            _live, tmp_path, actions if plant == "lease not looked at" else actions[1:], 3, 0.0, clock=clock
        )
