"""Leases on endpoints: which node delivers to which endpoint in a shared store.

Each node computes which of the live nodes should deliver to an endpoint. A node releases the endpoints of
other nodes after its running attempts have ended, and acquires endpoints that are free or whose node's lease
has expired. Each acquisition increments the endpoint's generation. Results are stored only with the current
generation, so a superseded node can't store any. Bus messages announce changes, and a poll every second finds
those whose message was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import Context
from hashlib import blake2b
from typing import Final

import orjson
import structlog
import trio

from deskwire.engine.cluster.cluster import Bus, Cluster, Node
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineQuery, Store
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.dispatcher import Dispatcher, clean_up_endpoint
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.ports import DeliveryReader, DeliveryTransaction, EndpointLease

log: Final = structlog.get_logger(__name__)

# Kind of bus message that announces changed endpoints or leases, or asks the lease's node for a probe.
MESSAGE_KIND: Final = "couriers"

_POLL_INTERVAL_S: Final = 1.0
_RETRY_DELAY_S: Final = 0.25
# Poll interval for a result that another node stores.
_RESULT_POLL_INTERVAL_S: Final = 0.1
# Endpoints acquired in one commit.
_BATCH_SIZE: Final = 100
# Interval for cleaning up after disabled and removed endpoints.
_CLEANUP_INTERVAL_S: Final = 60.0


class EndpointLeases:
    """Makes a dispatcher deliver to this node's share of the endpoints.

    Args:
        leases: the store of the leases; best with the database session that renews the node's own lease.
        cluster: the nodes that share the deliveries.
    """

    def __init__(
        self,
        store: Store[DeliveryReader, DeliveryTransaction],
        leases: Store[DeliveryReader, DeliveryTransaction],
        dispatcher: Dispatcher,
        cluster: Cluster,
        bus: Bus,
        clock: Clock,
    ) -> None:
        self._store = store
        self._leases = leases
        self._dispatcher = dispatcher
        self._cluster = cluster
        self._bus = bus
        self._clock = clock
        self._held: dict[int, EndpointLease] = {}
        self._releasing: set[int] = set()
        self._reconciling = trio.Lock()
        self._wakeup = trio.Event()
        self._nursery: trio.Nursery | None = None
        bus.receive(MESSAGE_KIND, self._receive)
        bus.connected(self.wake)

    @property
    def held(self) -> int:
        """The number of endpoints that this node delivers to."""
        return len(self._held)

    def wake(self) -> None:
        """Reconcile at once, because nodes or endpoints may have changed."""
        self._wakeup.set()

    def stop_all(self) -> None:
        """Stop all deliveries: the node's lease has expired, so other nodes may deliver."""
        for endpoint in self._held:
            self._dispatcher.drop(endpoint)
        self._held.clear()
        self._releasing.clear()

    async def run(self) -> None:
        """Acquire and release endpoints until cancelled."""
        try:
            async with trio.open_nursery() as self._nursery:
                await self._reconcile_forever()
        finally:
            self._nursery = None
            for endpoint in self._releasing:  # the next reconciliation finds its node
                self._held.pop(endpoint, None)
            self._releasing.clear()

    async def _reconcile_forever(self) -> None:
        while True:
            self._wakeup = trio.Event()
            store_retry_delay_s = _POLL_INTERVAL_S
            try:
                await self.reconcile()
            except Unavailable as refusal:
                log.warning("couriers.not_read", reason=refusal.reason)
                store_retry_delay_s = _RETRY_DELAY_S
            with trio.move_on_after(store_retry_delay_s):
                await self._wakeup.wait()

    async def clean_up(self) -> None:
        """Clean up after disabled and removed endpoints until cancelled.

        It is a duty of one node at a time, whichever node began the work.
        """
        while True:
            try:
                for endpoint in await self._store.read(lambda reader: reader.unserved_endpoints()):
                    await clean_up_endpoint(self._store, self._clock, endpoint)
                await self._store.write(lambda tx: tx.delete_stale_endpoint_leases())
            except Unavailable as refusal:
                log.warning("couriers.not_cleared", reason=refusal.reason)
            await trio.sleep(_CLEANUP_INTERVAL_S)

    async def reconcile(self) -> None:
        """Apply the stored leases and endpoints once.

        Stops deliveries that are no longer this node's, releases and acquires endpoints, and applies changed
        endpoints. Raises Unavailable.
        """
        async with self._reconciling:
            me = self._cluster.node.incarnation
            rows = {
                row.endpoint: row for row in await self._leases.read(lambda reader: reader.endpoint_leases())
            }
            if me != self._cluster.node.incarnation:
                return
            self._stop(rows, me)
            wanted = self._preferred(rows)
            for endpoint in self._held.keys() - wanted - self._releasing:
                self._begin_release(endpoint)
            mine = [row for row in rows.values() if row.incarnation == me]
            mine += await self._acquire([rows[each] for each in wanted if rows[each].incarnation != me], me)
            if me == self._cluster.node.incarnation:
                await self._deliver(mine)

    # Requests from routes, which may come to any node

    def change(self, endpoint: Endpoint) -> None:
        """Apply an endpoint's changed fields on the node that delivers to it.

        At once if that is this node.
        """
        if endpoint.status != "enabled":
            self.remove(endpoint.rowid)
        else:
            # While an endpoint is being released, its worker here has ended, and the next one is another node's.
            if endpoint.rowid in self._held and endpoint.rowid not in self._releasing:
                self._dispatcher.change(endpoint)
            self._notify_change()

    def remove(self, endpoint_rowid: int) -> None:
        """Stop deliveries to an endpoint and end its pending deliveries.

        Other nodes have already stopped, because the commit waited for them (the barrier).
        """
        self._dispatcher.remove(endpoint_rowid)
        self._held.pop(endpoint_rowid, None)
        self._notify_change()

    def probe(self, endpoint_rowid: int, position: int | None = None) -> None:
        """Send a probe if the circuit is open; see `Dispatcher.probe`."""
        if endpoint_rowid in self._held:
            self._dispatcher.probe(endpoint_rowid, position)
        else:
            self._bus.send(MESSAGE_KIND, orjson.dumps([endpoint_rowid, position]))

    async def first_result(self, delivery: Delivery, timeout_s: float) -> None:
        """Return when any node has recorded an attempt at a new delivery.

        Returns after `timeout_s` at the latest.
        """
        with trio.move_on_after(timeout_s):
            while True:
                await self._dispatcher.first_result(delivery, _RESULT_POLL_INTERVAL_S)
                if not await self._store.read(InlineQuery(lambda reader: reader.is_untried(delivery))):
                    return

    def _notify_change(self) -> None:
        self.wake()
        self._bus.send(MESSAGE_KIND, b"")

    def _receive(self, payload: bytes) -> None:
        if payload:
            endpoint, position = orjson.loads(payload)
            self._dispatcher.probe(endpoint, position)
        else:
            self.wake()

    # Reconciling

    def _stop(self, rows: dict[int, EndpointLease], me: int) -> None:
        """Stop deliveries to endpoints whose lease this node no longer holds."""
        for endpoint, held in list(self._held.items()):
            row = rows.get(endpoint)
            if row is None or (row.incarnation, row.generation) != (me, held.generation):
                self._dispatcher.drop(endpoint)
                del self._held[endpoint]

    def _preferred(self, endpoints: Iterable[int]) -> set[int]:
        """Return the endpoints that this node should deliver to."""
        nodes = self._cluster.live
        if self._cluster.node not in nodes:
            return set()
        return {endpoint for endpoint in endpoints if preferred_node(endpoint, nodes) == self._cluster.node}

    async def _acquire(self, rows: Sequence[EndpointLease], me: int) -> list[EndpointLease]:
        """Acquire the endpoints whose lease is free or has expired."""
        live = {node.incarnation for node in self._cluster.live}
        free = [row for row in rows if row.incarnation is None or row.incarnation not in live]
        taken: list[EndpointLease] = []
        for start in range(0, len(free), _BATCH_SIZE):
            if trio.current_time() >= self._cluster.valid_until:
                break
            taken += await self._leases.write(_acquiring(free[start : start + _BATCH_SIZE], me))
        if taken:
            log.info("couriers.taken", endpoints=len(taken))
        return taken

    async def _deliver(self, mine: Sequence[EndpointLease]) -> None:
        """Deliver to this node's endpoints with their stored fields."""
        changed = {row.endpoint: row for row in mine if self._held.get(row.endpoint) != row}
        for endpoint in self._releasing & changed.keys():
            del changed[endpoint]
        if not changed:
            return
        for stored in await self._store.read(lambda reader: reader.endpoints()):
            row = changed.get(stored.rowid)
            if row is None or stored.status != "enabled" or row.incarnation != self._cluster.node.incarnation:
                continue
            if stored.rowid in self._held:
                self._dispatcher.change(stored)
            else:
                self._dispatcher.add(stored, row.generation)
            self._held[stored.rowid] = row

    def _begin_release(self, endpoint: int) -> None:
        if self._nursery is not None:
            self._releasing.add(endpoint)
            Context().run(self._nursery.start_soon, self._release, endpoint, self._held[endpoint])

    async def _release(self, endpoint: int, held: EndpointLease) -> None:
        """Release an endpoint to another node after the running attempts have ended."""
        await self._dispatcher.release(endpoint)
        while self._held.get(endpoint) == held:
            try:
                await self._leases.write(lambda tx: tx.release_endpoint_lease(endpoint, held.generation))
            except Unavailable as refusal:
                log.warning("couriers.not_released", reason=refusal.reason)
                await trio.sleep(_RETRY_DELAY_S)
            else:
                # The endpoint may have been removed, or stopped with the node's lease.
                if self._held.get(endpoint) == held:
                    del self._held[endpoint]
        self._releasing.discard(endpoint)
        self._bus.send(MESSAGE_KIND, b"")


def preferred_node(endpoint: int, nodes: Sequence[Node]) -> Node:
    """Return the node that should deliver to an endpoint, by rendezvous hashing.

    When nodes come or go, most endpoints keep their node.
    """
    return max(nodes, key=lambda node: (_score(endpoint, node.name), node.incarnation))


def _score(endpoint: int, name: str) -> bytes:
    return blake2b(f"{endpoint} {name}".encode(), digest_size=8).digest()


def _acquiring(
    rows: Sequence[EndpointLease], me: int
) -> Callable[[DeliveryTransaction], list[EndpointLease]]:
    def take(tx: DeliveryTransaction) -> list[EndpointLease]:
        taken = []
        for row in rows:
            generation = tx.acquire_endpoint_lease(row.endpoint, row.generation, me)
            if generation is not None:
                taken.append(EndpointLease(row.endpoint, row.changed_at, me, generation))
        return taken

    return take
