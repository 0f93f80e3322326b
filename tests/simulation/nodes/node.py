"""One node of several: its parts as the program assembles them for a shared store."""

from __future__ import annotations

from contextvars import ContextVar
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from deskwire.config.config import Config
from deskwire.engine.cluster.membership import ClusterMembership
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.values import replace
from deskwire.engine.events.follower import Follower
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.shared_log import SharedLog
from deskwire.engine.idempotency.idempotent_requests import StoredResponses
from deskwire.engine.merging.merges import Merges
from deskwire.engine.ports import Commit
from deskwire.engine.privacy.erasure import Erasures
from deskwire.engine.webhooks.delivery_follower import DeliveryFollower
from deskwire.engine.webhooks.dispatcher import Dispatcher
from deskwire.engine.webhooks.endpoint_leases import EndpointLeases
from deskwire.http.api.services import Services
from deskwire.http.app import ROUTES
from deskwire.http.server.adapters.quart_app import make_app
from deskwire.program import wiring as parts
from tests.simulation.nodes.shared import Database
from tests.simulation.nodes.way import Way
from tests.simulation.server import SECRET, Asked, Server, TellingHub
from tests.support.streaming import trio_ms

if TYPE_CHECKING:
    from tests.simulation.nodes.world import NodesWorld

NODES: Final = 3


RUNNING: Final[ContextVar[Node]] = ContextVar("running")
"""The node that a task belongs to."""


async def open_or_stopped() -> None:
    """Wait while the node of this task is stopped; anything it began to send in that time is dropped.

    Raises OSError then: a task can't run while its process is stopped, and the state it read before is outdated.
    """
    node = RUNNING.get(None)
    if node is not None and node.way.stopped:
        await node.way.gate()
        raise ConnectionResetError


class _Current:
    """The services of one node's current process."""

    def __init__(self) -> None:
        self.services: Any = SimpleNamespace(limits=parts.limits(Config()))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.services, name)


_CURRENT: Final = tuple(_Current() for _ in range(NODES))
_APPS: Final = tuple(make_app(cast(Services, each), ROUTES) for each in _CURRENT)


class Node(Server):
    """A node's process, from `run` to `stop` or `kill`."""

    def __init__(self, world: NodesWorld, number: int) -> None:
        self.number = number
        self.name = f"node-{number}"
        self.database: Database = world.database
        self.bus = world.wires.bus(self._gate)
        self.cursor = 0
        self.beat = Way(self.database, f"{self.name} beat", lambda _: None)
        self.membership = ClusterMembership(cast(Any, self.beat), self.bus, self.name, "1", trio_ms)
        super().__init__(world, world.database.path)

    def _open(self, path: Any) -> Any:
        return Way(self.database, self.name, self._publish)

    @property
    def way(self) -> Way:
        """The node's connection to the database."""
        return cast(Way, self.disk)

    def _make_log(self) -> EventLog:
        config = self.config
        store = cast(Any, self.way)
        log = SharedLog(store, ring_events=config.log_ring_events, ring_bytes=config.log_ring_bytes)
        self._followed = log
        return log

    def _make_hub(self) -> TellingHub:
        window_s = self.config.stream_resume_window_s
        nodes = (self.membership, self.bus)
        return TellingHub(self.disk, self.log, trio_ms, resume_window_s=window_s, nodes=nodes)

    def _cluster(self) -> Any:
        return self.membership

    def _make_dispatcher(self) -> Dispatcher:
        made = super()._make_dispatcher()
        store = cast(Any, self.way)
        self.endpoint_leases = EndpointLeases(
            store, cast(Any, self.beat), made, self.membership, self.bus, trio_ms
        )
        self.deliveries = DeliveryFollower(made, self.bus)
        self.follower = Follower(store, self._followed, self.bus, self.deliveries)
        self.membership.on_nodes_changed(self.endpoint_leases.wake)
        self.membership.on_lease_lost(self.endpoint_leases.stop_all)
        self.membership.on_invalidate(self.endpoint_leases.reconcile)
        self.membership.on_invalidate(self.follower.catch_up)
        return made

    def _deliverer(self) -> Any:
        return self.endpoint_leases

    def _services(self, *given: Any) -> Services:
        made = super()._services(*given)
        nursery, _, _ = given
        self.membership.on_invalidate(self._forget_callers)
        self._keys = made.keys
        return replace(
            made,
            answers=StoredResponses(Secrets(SECRET), trio_ms, self.config.idempotency_s, several=True),
            erasures=Erasures(nursery, self.disk, trio_ms, made.actors, self.membership),
            merges=Merges(nursery, self.disk, trio_ms, made.actors, self.membership),
        )

    async def _forget_callers(self) -> None:
        self._keys.invalidate()

    def _publish(self, commit: Commit) -> None:
        if commit.advances or commit.erased:
            self.follower.commit_nowait(commit)
            self.deliveries.commit_nowait(commit)
        self._wake(commit)

    async def _begin(self, actors: trio.Nursery) -> None:
        await actors.start(self.beat.run)
        await actors.start(self.membership.run)
        actors.start_soon(self.follower.run)
        actors.start_soon(self.endpoint_leases.run)
        await super()._begin(actors)
        assert self._held is not None
        self._held.poll_for_other_nodes()
        actors.start_soon(self._read_along)

    async def _read_along(self) -> None:
        """Follow the project's events as any subscriber does, and report them to the judge."""
        project, world = self._world.project.rowid, cast("NodesWorld", self._world)
        while True:
            try:
                await self.log.open(project)
                break
            except Unavailable:
                await trio.sleep(1)  # virtual time: the mock clock jumps
        cursor = self.cursor = self.log.position(project)
        while True:
            await self.log.wait(project, cursor)
            try:
                chunk = await self.log.read_after_wait(project, cursor, 50)
            except Unavailable:
                continue
            world.order.read(self.name, cursor, chunk)
            cursor = self.cursor = chunk.upto

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        """See `Server.run`; the tasks it starts know their node."""
        RUNNING.set(self)
        await super().run(task_status)

    def _serve_with(self, services: Services) -> None:
        _CURRENT[self.number].services = services
        self._app = _APPS[self.number]

    async def _gate(self) -> None:
        await self.way.gate()

    async def _answer(self, asked: Asked, *request: Any) -> None:
        await self.way.gate()
        await super()._answer(asked, *request)

    async def kill(self) -> None:
        """End the process immediately."""
        self.up = False
        cast("NodesWorld", self._world).wires.leave(self.bus)
        for way in (self.way, self.beat):
            way.kill()
            way.go_on()
        self._scope.cancel()
        for way in (self.way, self.beat):
            way.let_go()
        await self._end()

    async def pause(self, seconds: float) -> None:
        """Stop the process for a while, at any point."""
        for way in (self.way, self.beat):
            way.stop()
            self._world.later(way.expire)
        await trio.sleep(seconds)  # virtual time: the mock clock jumps
        for way in (self.way, self.beat):
            way.go_on()
