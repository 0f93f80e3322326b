"""A channel has one consumer over all nodes: a consumer that has lost it gets no event, and no event is missed."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Final

import httpx
import pytest
import trio

from deskwire.engine.cluster.membership import LEASE_DURATION_S
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.frames import Listening, listen
from tests.support.node_processes import SETTLE_S, Nodes, running_nodes
from tests.support.postgres_nodes import rows

pytestmark = pytest.mark.long

_TURN_S: Final = 0.1
"""A frame that came first may be read this much later, because this process reads each connection in its own task."""
_PACE_S: Final = 0.03
_BRIEF_S: Final = 1.5
_FIGHTS: Final = 12


class Talk:
    """Messages at one node, one after the other."""

    def __init__(self, nodes: Nodes, http: httpx.AsyncClient, conversation: str) -> None:
        self._nodes = nodes
        self._http = http
        self._path = f"/s2s/conversations/{conversation}/messages"
        self.turn = trio.Lock()
        """The task that holds it keeps the next message from being sent."""

    async def run(self) -> None:
        while True:
            async with self.turn:
                answer = await self._http.post(self._path, json={"text": "Hello"})
                assert answer.status_code == 200, answer.text
            await trio.sleep(_PACE_S)  # a pace that the machine keeps up with

    def told(self) -> list[str]:
        """The ids of all events, in the order of the log."""
        return [row[0] for row in rows(self._nodes.url, "SELECT id FROM events ORDER BY position")]


class Consumers:
    """Consumers of one channel, in the order in which they came."""

    def __init__(self, nodes: Nodes, http: httpx.AsyncClient, nursery: trio.Nursery) -> None:
        self.all: list[Listening] = []
        self._nodes = nodes
        self._http = http
        self._nursery = nursery

    def join(self, name: str, node: int) -> Listening:
        """Have a consumer subscribe at a node."""
        joined = Listening(name)
        self.all.append(joined)
        channel, url = f"private-project-{self._nodes.project}", self._nodes.servers[node].url
        self._nursery.start_soon(listen, url, self._http, self._nodes.stream_key, channel, joined)
        return joined

    async def joined(self, name: str, node: int) -> Listening:
        """Have a consumer subscribe at a node, and return when it has the channel."""
        consumer = self.join(name, node)
        await consumer.until_it_holds()
        return consumer

    def judge(self, told: Sequence[str]) -> None:
        """Check the received events: at most one consumer got events at any time, and together they miss none."""
        place, known = {each: number for number, each in enumerate(told)}, 0
        for number, each in enumerate(self.all):
            begin = 0 if each.resumed_after is None else place[each.resumed_after] + 1
            assert not each.gap
            assert begin <= known, f"{each.consumer} begins behind what anybody has had"
            assert each.ids == [*told[begin : begin + len(each.ids)]], "in order, nothing left out"
            known = max(known, begin + len(each.ids))
            later = [other.from_s for other in self.all[number + 1 :]]
            lost_at = min([each.over_s, *later]) + _TURN_S
            late = [at - lost_at for _, at in each.events if at > lost_at]
            assert late == [], f"{each.consumer} was written to when it had lost the channel"
        assert known == len(told)


async def test_successor_on_the_channel_of_a_stopped_node_is_its_only_consumer(tmp_path: Path) -> None:
    async with (
        running_nodes(tmp_path) as nodes,
        nodes.client(0, nodes.key) as http,
        trio.open_nursery() as nursery,
    ):
        began, consumers = trio.current_time(), Consumers(nodes, http, nursery)
        holder = await consumers.joined("consumer-0", 1)
        conversation = (await http.post("/s2s/conversations", json={"contact": {"userId": "u"}})).json()["id"]
        talk = Talk(nodes, http, conversation)
        nursery.start_soon(talk.run)
        # for less than the lease of its node, then for longer
        for stopped, taker, for_s in (1, 2, _BRIEF_S), (2, 1, inf):
            if for_s == inf:
                await trio.sleep_until(began + SETTLE_S)
            await talk.turn.acquire()  # so that no frame is under way when it stops
            await holder.until_it_has(talk.told())
            with nodes.stopped(stopped):
                talk.turn.release()
                stopped_at, consumer = trio.current_time(), consumers.join(f"at {taker}", taker)
                with trio.move_on_after(min(for_s, LEASE_DURATION_S + 5)):
                    await consumer.until_it_holds()
                assert (consumer.from_s < inf) == (for_s == inf), "a node that may go on is waited for"
            await consumer.until_it_holds()
            print(f"taken over after {consumer.from_s - stopped_at:.2f} s")
            loser, holder = holder, consumer
            await loser.until_it_is_over()
            assert loser.code in (4009, 4100)
            with trio.fail_after(HANG_TIMEOUT_S):
                while len(nodes.leased()) < 3:  # noqa: ASYNC110
                    await trio.sleep(0.05)  # poll: there is no notification
        back = consumers.join(consumers.all[-2].consumer, 2)
        await back.until(lambda: bool(back.refused))
        assert "ConsumerSuperseded" in back.refused
        await talk.turn.acquire()
        told = talk.told()
        await holder.until_it_has(told)
        consumers.judge(told)
        nursery.cancel_scope.cancel()


async def test_consumer_that_alternates_between_two_nodes_gets_events_from_the_last_alone(
    tmp_path: Path,
) -> None:
    async with (
        running_nodes(tmp_path, "ab") as nodes,
        nodes.client(0, nodes.key) as http,
        trio.open_nursery() as nursery,
    ):
        consumers = Consumers(nodes, http, nursery)
        holder = await consumers.joined("the same", 0)
        conversation = (await http.post("/s2s/conversations", json={"contact": {"userId": "u"}})).json()["id"]
        talk = Talk(nodes, http, conversation)
        for _ in range(4):
            nursery.start_soon(talk.run)
        for number in range(1, _FIGHTS + 1):
            await holder.until_it_has_more(3)
            loser, holder = holder, await consumers.joined("the same", number % 2)
            await loser.until_it_is_over()
            assert loser.code == 4009
        await talk.turn.acquire()
        told = talk.told()
        await holder.until_it_has(told)
        consumers.judge(told)
        nursery.cancel_scope.cancel()
