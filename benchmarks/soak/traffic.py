"""The load of a soak, with clients that come and go."""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import httpx
import trio
from tests.support.replay.api import Api
from tests.support.replay.consumer import Consumer
from tests.support.replay.errors import ReplayError
from tests.support.replay.feed import Feed
from tests.support.replay.history import Arrival, Delivery
from tests.support.replay.journal import Journal
from tests.support.replay.receiver import Receiver

from benchmarks.generator import carried_out
from benchmarks.job import Outcome
from benchmarks.report import percentile
from benchmarks.service import Server

CONVERSATIONS: Final = 60
"""Conversations that messages are posted to at the same time."""
_CONNECTIONS: Final = 16
_IDLERS: Final = 20
"""Connections in each window that send one request and stay for a while."""
_FAILING: Final = 0.05
"""Share of deliveries that the faulty receiver refuses while it works."""
_SUPERSEDED: Final = "Another consumer has taken over"
"""Ways in which a consumer's reign ends."""
_PATIENCE_S: Final = 60.0
_OUTAGE_S: Final = 10.0
_HEALTH_S: Final = 110.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The durations of a run's parts, in seconds.

    Args:
        window_s: duration of one job of the load generator; each opens new connections.
        kept_s: time before the retention deletes a conversation; it is posted to for half of that.
        reign_s: time for which a consumer holds the channel before the next one takes over.
        rate: messages a second; None for half the rate of a first, unlimited window.
    """

    window_s: float
    kept_s: float
    reign_s: float
    rate: float | None


class Counting(Journal):
    """A journal that only counts, because a soak is long."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def record(self, arrival: Arrival) -> None:
        self.count += 1


@dataclass(slots=True)
class Counts:
    """The counts so far; `p50_ms` and `p99_ms` are those of the last window."""

    posted: int = 0
    failed: int = 0
    first_failure: str = ""
    p50_ms: float = float("nan")
    p99_ms: float = float("nan")
    takeovers: int = 0
    frames: Counting = field(default_factory=Counting)
    webhooks: Counting = field(default_factory=Counting)
    feed: Counting = field(default_factory=Counting)

    def take(self, outcome: Outcome) -> None:
        """Add a window."""
        self.posted += len(outcome.latencies) + len(outcome.failures)
        self.failed += len(outcome.failures)
        self.first_failure = self.first_failure or "".join(outcome.failures[:1])
        if not outcome.latencies:
            return
        self.p50_ms, self.p99_ms = percentile(outcome.latencies, 0.5), percentile(outcome.latencies, 0.99)


class Traffic:
    """The traffic to one server."""

    def __init__(self, server: Server, plan: Plan) -> None:
        self.counts: Final = Counts()
        self.rate = plan.rate or 0.0
        self._server = server
        self._plan = plan
        self._api = Api(f"http://127.0.0.1:{server.port}", server.key, _CONNECTIONS)
        self._pool: deque[tuple[float, str]] = deque()
        self._numbers = itertools.count(1)
        self._chance = random.Random(1)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled; report `started` once the rate of the load is found."""
        async with trio.open_nursery() as nursery:
            for status in (lambda _: 200, self._sick()):
                receiver = Receiver(self.counts.webhooks, status)
                await nursery.start(receiver.run)
                body = {"url": receiver.url, "events": []}
                await self._api.call("POST", "/s2s/webhooks", body)
            await nursery.start(self._reigns)
            nursery.start_soon(self._follow)
            await self._renew(CONVERSATIONS)
            await self._find_rate()
            nursery.start_soon(self._come_and_go)
            nursery.start_soon(self._turn_over)
            task_status.started()
            while True:
                self.counts.take(await self._window(self.rate))

    async def _find_rate(self) -> None:
        """Set the rate to half of the server's maximum with all its readers."""
        if self._plan.rate is None:
            outcome = await self._window(None)
            self.rate = max(1.0, outcome.rate / 2)

    async def _window(self, rate: float | None) -> Outcome:
        young = (
            trio.current_time() - self._plan.kept_s / 2
        )  # older ones may be deleted before the window's end
        ids = [conversation for made_at, conversation in self._pool if made_at > young] or [self._pool[-1][1]]
        job = self._server.posts(ids, connections=_CONNECTIONS, for_s=self._plan.window_s, rate=rate)
        try:
            return await trio.to_thread.run_sync(carried_out, job)
        except RuntimeError as error:
            return Outcome(failures=[str(error)])

    async def _turn_over(self) -> None:
        """Replace conversations over time: create new ones, and close old ones for the retention to delete."""
        share = max(1, round(CONVERSATIONS * self._plan.window_s / (self._plan.kept_s / 2)))
        while True:
            await trio.sleep(self._plan.window_s)
            await self._renew(share)
            while len(self._pool) > CONVERSATIONS:
                _, old = self._pool.popleft()
                await self._api.call("POST", f"/s2s/conversations/{old}/close", {"closedBy": "bot"})

    async def _renew(self, count: int) -> None:
        for _ in range(count):
            body = {"contact": {"userId": f"soak-{next(self._numbers)}"}, "message": {"text": "Hello"}}
            reply = await self._api.call("POST", "/s2s/conversations", body)
            if reply.outcome == "acknowledged":
                self._pool.append((trio.current_time(), str(reply.body["id"])))

    async def _reigns(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Let one consumer after the other take over the project's channel."""
        async with trio.open_nursery() as nursery:
            while True:
                consumer = Consumer(
                    self._api, self._server.project, self._server.stream_key(), self.counts.frames
                )
                await nursery.start(self._reign, consumer)
                self.counts.takeovers += 1
                if self.counts.takeovers == 1:
                    task_status.started()
                await trio.sleep(self._plan.reign_s)

    @staticmethod
    async def _reign(consumer: Consumer, *, task_status: trio.TaskStatus[None]) -> None:
        try:
            await consumer.run(task_status=task_status)
        except* ReplayError as group:
            if _SUPERSEDED not in repr(group.exceptions):
                raise

    async def _follow(self) -> None:
        feed = Feed(self._api, self.counts.feed, None)
        while True:
            await feed.read()
            await trio.sleep(1)

    async def _come_and_go(self) -> None:
        """Open connections that send one request, stay idle for a window, and close."""
        while True:
            async with httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{self._server.port}", trust_env=False
            ) as crowd:
                async with trio.open_nursery() as nursery:
                    for _ in range(_IDLERS):
                        nursery.start_soon(self._ask_once, crowd)
                await trio.sleep(self._plan.window_s * self._chance.random())

    async def _ask_once(self, crowd: httpx.AsyncClient) -> None:
        try:
            await crowd.get("/healthz", timeout=_PATIENCE_S)
        except httpx.TransportError as error:
            self.counts.take(Outcome(failures=[repr(error)]))

    def _sick(self) -> Callable[[Delivery], int]:
        """Return a receiver that refuses some deliveries, and occasionally all of them for a while."""

        def status(_: Delivery) -> int:
            out = trio.current_time() % (_HEALTH_S + _OUTAGE_S) > _HEALTH_S
            return 503 if out or self._chance.random() < _FAILING else 200

        return status
