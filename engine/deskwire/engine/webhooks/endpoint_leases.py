"""The share of a node in the deliveries: which endpoints it delivers to, among all nodes that share the store.

Every node computes for itself which of those that are there should deliver to an endpoint. It lets go of what another one
should have, once attempts under way have ended, and takes what is free, or whose node's lease is over. With each taking
the endpoint's generation grows; results are stored with it, so nothing of a courier that was superseded is. What is not
told by the bus is found by looking, each second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import Context
from hashlib import blake2b
from typing import Final

import orjson
import structlog
import trio

from deskwire.engine.cluster.bus import Bus
from deskwire.engine.cluster.cluster import Cluster, Node
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Inline, Store
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.dispatcher import Dispatcher, clean_up_endpoint
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.ports import DeliveryReader, DeliveryTransaction, EndpointLease

log: Final = structlog.get_logger(__name__)

MESSAGE_KIND: Final = "couriers"
"""The kind of message that says that endpoints or their couriers have changed, or asks a courier for a probe."""

_POLL_INTERVAL_S: Final = 1.0
_RETRY_DELAY_S: Final = 0.25
_RESULT_POLL_INTERVAL_S: Final = 0.1
"""Time between two looks for a result that another node stores."""
_BATCH_SIZE: Final = 100
"""Endpoints that are taken in one commit."""
_CLEANUP_INTERVAL_S: Final = 60.0
"""Time between two looks for what disabled and removed endpoints have left behind."""


class EndpointLeases:
    """Has a dispatcher deliver to this node's share of the endpoints.

    Args:
        leases: the leases on endpoints; best by the session that the node's own is renewed by.
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
        """Look at once, as nodes or endpoints may be others."""
        self._wakeup.set()

    def stop_all(self) -> None:
        """Deliver nothing more: the node's lease is over, and others may deliver by now."""
        for endpoint in self._held:
            self._dispatcher.drop(endpoint)
        self._held.clear()
        self._releasing.clear()

    async def run(self) -> None:
        """Take and let go, until cancelled."""
        try:
            async with trio.open_nursery() as self._nursery:
                await self._reconcile_forever()
        finally:
            self._nursery = None
            for endpoint in self._releasing:  # the next reconcile finds who has it
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
        """Clear away what disabled and removed endpoints have left behind, whoever was at it, until cancelled; a duty."""
        while True:
            try:
                for endpoint in await self._store.read(lambda reader: reader.unserved_endpoints()):
                    await clean_up_endpoint(self._store, self._clock, endpoint)
                await self._store.write(lambda tx: tx.delete_stale_endpoint_leases())
            except Unavailable as refusal:
                log.warning("couriers.not_cleared", reason=refusal.reason)
            await trio.sleep(_CLEANUP_INTERVAL_S)

    async def reconcile(self) -> None:
        """Look at once: stop what is not to be delivered to by this node, or at all, and go on with what is changed.

        Raises Unavailable.
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

    # As the routes ask for it, at whichever node

    def change(self, endpoint: Endpoint) -> None:
        """Have an endpoint's changed fields taken up, wherever it is delivered to; at once if that is here."""
        if endpoint.status != "enabled":
            self.remove(endpoint.rowid)
        else:
            # While an endpoint is being released, its worker here has ended, and the next one is another node's.
            if endpoint.rowid in self._held and endpoint.rowid not in self._releasing:
                self._dispatcher.change(endpoint)
            self._notify_change()

    def remove(self, endpoint_rowid: int) -> None:
        """Stop delivering to an endpoint, and clear away what is pending. Other nodes have stopped behind the barrier."""
        self._dispatcher.remove(endpoint_rowid)
        self._held.pop(endpoint_rowid, None)
        self._notify_change()

    def probe(self, endpoint_rowid: int, position: int | None = None) -> None:
        """Have a probe sent if the circuit is open; see `Dispatcher.probe`."""
        if endpoint_rowid in self._held:
            self._dispatcher.probe(endpoint_rowid, position)
        else:
            self._bus.send(MESSAGE_KIND, orjson.dumps([endpoint_rowid, position]))

    async def first_result(self, delivery: Delivery, timeout_s: float) -> None:
        """Return when an attempt at a delivery that was just made is recorded, by whichever node. Or after `timeout_s`."""
        with trio.move_on_after(timeout_s):
            while True:
                await self._dispatcher.first_result(delivery, _RESULT_POLL_INTERVAL_S)
                if not await self._store.read(Inline(lambda reader: reader.is_untried(delivery))):
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
        """Stop delivering to what is not this node's any more, or to nobody's."""
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
        """Take what is free, or whose node's lease is over, of what others have."""
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
        """Deliver to what is this node's, with its fields as they are stored."""
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
        """Let go of an endpoint that another node should have, once attempts under way have ended."""
        await self._dispatcher.release(endpoint)
        while self._held.get(endpoint) == held:
            try:
                await self._leases.write(lambda tx: tx.release_endpoint_lease(endpoint, held.generation))
            except Unavailable as refusal:
                log.warning("couriers.not_released", reason=refusal.reason)
                await trio.sleep(_RETRY_DELAY_S)
            else:
                if self._held.get(endpoint) == held:  # it may have been removed, or dropped with the lease
                    del self._held[endpoint]
        self._releasing.discard(endpoint)
        self._bus.send(MESSAGE_KIND, b"")


def preferred_node(endpoint: int, nodes: Sequence[Node]) -> Node:
    """Return the node that should deliver to an endpoint; when others come or go it is the same for most (rendezvous hashing)."""
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
