"""The cost of a failure: pauses of deliveries, of a stream and of writes when a node or the primary is lost.

Three nodes as processes of their own, on a primary and a standby that commits wait for. A few writers keep posting, each at a
node of its own, and at the next one when that does not answer. A pause is the longest time between two arrivals, or two
answers to one writer, from just before the fault until everything goes on.
"""

from __future__ import annotations

import logging
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count, pairwise
from pathlib import Path
from typing import Any, Final

import httpx
import structlog
import trio
from tests.chaos.database import Pair, pair
from tests.chaos.network import Relay, relaying, steady_port
from tests.support.replay.api import Api
from tests.support.replay.consumer import Consumer
from tests.support.replay.errors import ReplayError
from tests.support.replay.journal import Journal
from tests.support.replay.receiver import Receiver
from tests.support.sockets.server_process import Server

from benchmarks.report import Cell, Section, median
from benchmarks.scale import Scale
from deskwire.engine.cluster.membership import LEASE_DURATION_S

_NODES: Final = 3
_ENDPOINTS: Final = 5
"""As many as a project may have."""
_WRITERS: Final = 6
_PAUSE_S: Final = 0.05
"""A writer's pause between two messages: the benchmark measures interruptions, not throughput."""
_SETTLE_S: Final = LEASE_DURATION_S + 2
"""Time before each fault: a node expires others only after it and the database have been up for a lease duration."""
_AGAIN_S: Final = 0.02
_LOOK_S: Final = 0.05
_WITHIN_S: Final = 60.0
_SENT: Final = re.compile(rb"sent (\d+\.\d+) ")
_SETTINGS: Final = {
    "DESKWIRE_RATE_LIMIT_PER_MINUTE": "0",
    "DESKWIRE_ARGON2_MEMORY_KIB": "8192",
    "DESKWIRE_SECRET": "the secret of an installation with several nodes",
}
_DELIVERERS: Final = "SELECT e.url, n.node FROM couriers c JOIN nodes n USING (incarnation) JOIN endpoints e ON e.rowid = c.endpoint"
_Pauses = tuple[float, float, float, float | None]
"""Pauses of deliveries, of the stream, of writes, and of PostgreSQL alone."""


def measure(scale: Scale, directory: Path) -> Section:
    """Kill nodes, stop them gracefully, and promote standbys; each once per round."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    taken = trio.run(_measured, scale.rounds, directory)
    columns = (
        "what happens",
        "times",
        "deliveries s",
        "stream s",
        "writes s",
        "longest s",
        "of it PostgreSQL s",
    )
    note = (
        f"{_NODES} nodes with {_ENDPOINTS} endpoints and one consumer. Medians of the longest pause: of the endpoints "
        "that the node delivered to and of the consumer that it served, or of all; of the writer that waited longest. "
        "Longest: of all of these, in all rounds. PostgreSQL: until the standby was promoted, which began at once; the "
        "detection of a lost primary takes its own time on top."
    )
    return Section(
        "pauses", "Pauses when something goes", columns, [_row(*each) for each in taken.items()], note
    )


def _row(label: str, pauses: Sequence[_Pauses]) -> tuple[Cell, ...]:
    deliveries, stream, writes, database = zip(*pauses, strict=True)
    most = max(max(each[:3]) for each in pauses)
    of_it = None if None in database else median(database)
    return label, len(pauses), median(deliveries), median(stream), median(writes), most, of_it


async def _measured(rounds: int, directory: Path) -> dict[str, list[_Pauses]]:
    taken: dict[str, list[_Pauses]] = {}
    async with _staged(directory) as stage:
        for _ in range(rounds):
            for label, how in (("kill -9 of a node", signal.SIGKILL), ("SIGTERM of a node", signal.SIGTERM)):
                taken.setdefault(label, []).append(await stage.lose_node(how))
            taken.setdefault("the primary killed, the standby promoted", []).append(await stage.promote())
    return taken


class _Subject:
    """The times of arrivals that must not stop, and when the last arrival was sent."""

    def __init__(self) -> None:
        self.moments: list[float] = []
        self.newest = 0.0

    def came(self, sent: float) -> None:
        self.moments.append(trio.current_time())
        self.newest = max(self.newest, sent)

    def pause(self, since: float) -> float:
        """Return the longest time between two successive arrivals, the second of which came after that time."""
        return max(later - earlier for earlier, later in pairwise(self.moments) if later >= since)


class _Noting(Journal):
    """A channel's arrivals, of which only the times are kept."""

    def __init__(self, subject: _Subject) -> None:
        super().__init__()
        self._subject = subject

    def record(self, arrival: Any) -> None:
        if sent := _SENT.search(arrival.body):
            self._subject.came(float(sent[1]))


class _Stage:
    """Nodes under load."""

    def __init__(self, servers: Sequence[Server], database: Pair, nursery: trio.Nursery) -> None:
        self._servers = servers
        self._database = database
        self._nursery = nursery
        self._serving = servers[0]
        self._endpoints: dict[str, _Subject] = {}
        self._stream = _Subject()
        self._writers = [_Subject() for _ in range(_WRITERS)]
        self.relay: Final = Relay(lambda: self._serving.port, patience_s=5.0)
        """Connects the consumer to the node that serves it."""

    async def begin(self) -> None:
        """Register endpoints, and start the load."""
        demo = self._servers[0].demo()
        api = Api(f"http://127.0.0.1:{self.relay.port}", demo["serverKey"], 16, away_s=_WITHIN_S)
        for _ in range(_ENDPOINTS):
            subject = _Subject()
            receiver = Receiver(_Noting(subject))
            await self._nursery.start(receiver.run)
            self._endpoints[receiver.url] = subject
            made = await api.call("POST", "/s2s/webhooks", {"url": receiver.url, "events": []})
            assert made.outcome == "acknowledged", made.detail
        consumer = Consumer(api, demo["projectId"], demo["streamKey"], _Noting(self._stream))
        self._nursery.start_soon(_consume, consumer)
        for number, subject in enumerate(self._writers):
            self._nursery.start_soon(self._write, number, subject, demo["serverKey"])
        await self._go_on(trio.current_time())

    async def lose_node(self, how: signal.Signals) -> _Pauses:
        """End the node that delivers most and also serves the consumer, then start it again."""
        await trio.sleep(_SETTLE_S)
        deliverers = await self._deliverers()
        names = list(deliverers.values())
        victim = max(self._servers, key=lambda server: names.count(server.directory.name))
        if self._serving is not victim:
            self._serving = victim
            self.relay.cut()
        await self._go_on(trio.current_time())
        served = [self._endpoints[url] for url, name in deliverers.items() if name == victim.directory.name]
        self._serving = next(server for server in self._servers if server is not victim)
        pauses = await self._disturbed(served, victim.kill if how is signal.SIGKILL else victim.stop)
        await victim.start()
        await self._go_on(trio.current_time())
        return *pauses, None

    async def promote(self) -> _Pauses:
        """Kill the primary and promote the standby, then create a new standby."""
        await trio.sleep(_SETTLE_S)
        took = 0.0

        async def fail_over() -> None:
            nonlocal took
            began = trio.current_time()
            await self._database.fail_over()
            took = trio.current_time() - began

        pauses = await self._disturbed(list(self._endpoints.values()), fail_over)
        await self._database.follow()
        await self._go_on(trio.current_time())
        return *pauses, took

    async def _disturbed(
        self, served: Sequence[_Subject], disturb: Callable[[], Awaitable[object]]
    ) -> tuple[float, float, float]:
        since = trio.current_time()
        await disturb()
        await self._go_on(trio.current_time())
        writes = max(each.pause(since) for each in self._writers)
        return max(each.pause(since) for each in served), self._stream.pause(since), writes

    async def _go_on(self, since: float) -> None:
        """Return once every receiver and writer has had something sent after that time."""
        subjects = [*self._endpoints.values(), self._stream, *self._writers]
        with trio.fail_after(_WITHIN_S):
            while True:
                if all(each.newest >= since for each in subjects):
                    return
                await trio.sleep(_LOOK_S)  # poll: there is no notification

    async def _deliverers(self) -> dict[str, str]:
        """Return the name of each endpoint's delivering node, once all endpoints have one."""
        with trio.fail_after(_WITHIN_S):
            while True:
                found = await self._database.run(_DELIVERERS)
                if len(found) == _ENDPOINTS:
                    return {str(url): str(node) for url, node in found}
                await trio.sleep(_LOOK_S)  # poll: there is no notification

    async def _write(self, number: int, subject: _Subject, key: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        body = {"contact": {"userId": f"user-{number}"}}
        async with httpx.AsyncClient(headers=headers, timeout=10, trust_env=False) as http:
            made = await http.post(f"{self._servers[0].url}/v3/s2s/conversations", json=body)
            path = f"/v3/s2s/conversations/{made.raise_for_status().json()['id']}/messages"
            for turn in count():
                sent = trio.current_time()
                message = {"text": f"sent {sent:.6f} by {number}"}
                await self._settle(http, number, path, message, f"wish-{number}-{turn}")
                subject.came(sent)
                await trio.sleep(_PAUSE_S)  # a load of this strength

    async def _settle(
        self, http: httpx.AsyncClient, number: int, path: str, body: dict[str, str], key: str
    ) -> None:
        for attempt in count():
            server = self._servers[(number + attempt) % len(self._servers)]
            try:
                answer = await http.post(f"{server.url}{path}", json=body, headers={"Idempotency-Key": key})
            except httpx.TransportError:
                pass
            else:
                if answer.is_success:
                    return
            await trio.sleep(_AGAIN_S)  # the client's own pause


async def _consume(consumer: Consumer) -> None:
    while True:
        try:
            await consumer.run()
        except* ReplayError:  # refused until its channel is released
            await trio.sleep(_AGAIN_S)


@asynccontextmanager
async def _staged(directory: Path) -> AsyncIterator[_Stage]:
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(pair(_NODES))
        servers = []
        for number in range(_NODES):
            home = directory / f"node-{number}"
            home.mkdir()
            named = {"DESKWIRE_NODE": home.name, "DESKWIRE_DATABASE_URL": database.url(number)}
            server = Server(home, "--allow-private-webhooks", environ=_SETTINGS | named, port=steady_port())
            servers.append(server)
        try:
            for server in servers:
                await server.start()
            async with trio.open_nursery() as nursery:
                stage = _Stage(servers, database, nursery)
                async with relaying(stage.relay):
                    await stage.begin()
                    yield stage
                    nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                for server in servers:
                    await server.stop()
