"""A node's lease: heartbeats renew it each second, and without a valid lease the node does no exclusive work.

Only the database's clock decides about the leases of other nodes, and only the node's own monotonic clock about its own lease.
The node counts from before the heartbeat was sent and ends half a second early, so it takes its lease for invalid before the
database can find it expired. A node that was suspended, or could not reach the database, notices that without help. The next
heartbeat shows whether the lease is over. If so, the node loses all that it held, and begins another incarnation.

An incarnation is valid once the node has invalidated all caches that were outdated when it began.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Final

import structlog
import trio

from deskwire.engine.cluster.barrier import Barrier
from deskwire.engine.cluster.cluster import Bus, Node
from deskwire.engine.cluster.leader_election import Leadership
from deskwire.engine.cluster.ports import (
    ClusterReader,
    ClusterTransaction,
    HeartbeatResult,
    JoiningNode,
    NodeLease,
    NotAdmitted,
)
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Store

log: Final = structlog.get_logger(__name__)

LEASE_DURATION_S: Final = 5.0
HEARTBEAT_INTERVAL_S: Final = 1.0
# Time by which a node takes its own lease for invalid before other nodes may find it expired.
LEASE_MARGIN_S: Final = 0.5
HEARTBEAT_LATE_S: Final = 3.0  # age of the last heartbeat from which the node reports that it is not ready
CLOCK_OFFSET_WARN_S: Final = 1.0
# Differences between the clocks of node and database that are logged, and that make the node not ready.
CLOCK_OFFSET_MAX_S: Final = 5.0

_RETRY_DELAY_S: Final = 0.25
_LEAVE_TIMEOUT_S: Final = 2.0


class ClusterMembership:
    """This node among those that share the database; a `Cluster`.

    Args:
        store: the store of leases, preferably with a database session of its own, so that a heartbeat waits for no other job.
        name: the node's name, unique among the running nodes.
        version: the program's version.
        clock: the machine's wall clock, in milliseconds.
        files: the place of uploads, which all nodes must share.

    Attributes:
        offset_s: seconds by which the machine's clock is ahead of the database's.
        barriers: the callers that wait for other nodes.
    """

    def __init__(
        self,
        store: Store[ClusterReader, ClusterTransaction],
        bus: Bus,
        name: str,
        version: str,
        clock: Clock,
        files: str = "",
    ) -> None:
        self.offset_s = 0.0
        self.node = Node(name, 0)
        self._store = store
        self._candidate = JoiningNode(name, secrets.token_hex(8), version, files)
        self._clock = clock
        self._bus = bus
        self._live: Sequence[Node] = ()
        self._leadership = Leadership()
        self.barriers: Final = Barrier(store, bus, self._expire_nodes)
        self._invalidators: list[Callable[[], Awaitable[None]]] = []
        self._lease_lost_listeners: list[Callable[[], None]] = []
        self._nodes_changed_listeners: list[Callable[[], None]] = []
        self._renewed_at = self._steady_since = -inf
        self._renewed_wall_ms = 0
        self._seen = self._epoch = self._notified = -1
        self._invalidating_since: float | None = None
        self._outdated, self._renew_due, self._changed = trio.Event(), trio.Event(), trio.Event()
        bus.receive("epoch", self._receive_epoch)

    @property
    def live(self) -> Sequence[Node]:
        """See `Cluster.live`."""
        return self._live

    @property
    def size(self) -> int:
        """See `Cluster.size`."""
        return max(1, len(self._live))

    @property
    def valid_until(self) -> float:
        """See `Cluster.valid_until`."""
        # Trio's clock stops while the machine sleeps; the wall clock shows that time.
        if self._seen < 0:
            return -inf
        steady_s = trio.current_time() - self._renewed_at
        asleep_s = (self._clock() - self._renewed_wall_ms) / 1000 - steady_s
        return -inf if asleep_s > LEASE_MARGIN_S else self._renewed_at + LEASE_DURATION_S - LEASE_MARGIN_S

    @property
    def valid(self) -> bool:
        """True if this node surely has its lease now."""
        return trio.current_time() < self.valid_until

    @property
    def is_leader(self) -> bool:
        """True if this node is the leader."""
        return self._leadership.held

    def refusal(self) -> str | None:
        """Return the reason for which the node is not ready as a member of the cluster, None if it is ready."""
        if not self.valid:
            return "The node has no valid lease: it was stopped, or the database could not be reached."
        late_s = trio.current_time() - self._renewed_at
        if late_s > HEARTBEAT_LATE_S:
            return f"The node's lease was not renewed for {late_s:.1f} s."
        if abs(self.offset_s) >= CLOCK_OFFSET_MAX_S:
            return f"The node's clock is {self.offset_s:+.1f} s from the database's; correct it, for example with NTP."
        return None

    def on_invalidate(self, invalidate: Callable[[], Awaitable[None]]) -> None:
        """Call `invalidate` whenever cached data is outdated, on whichever node it was changed.

        It must return only when no outdated data is in use. Other nodes wait for it, and a node that takes too long loses its
        lease.
        """
        self._invalidators.append(invalidate)

    def on_lease_lost(self, drop: Callable[[], None]) -> None:
        """Call `drop` when the lease is lost, because other nodes may now hold everything that this node held."""
        self._lease_lost_listeners.append(drop)

    def on_nodes_changed(self, listener: Callable[[], None]) -> None:
        """Call `listener` when a node has joined or left."""
        self._nodes_changed_listeners.append(listener)

    async def until_valid(self) -> None:
        """See `Cluster.until_valid`."""
        while not self.valid:
            await self._changed.wait()

    async def while_leader(self, work: Callable[[], Awaitable[object]]) -> None:
        """See `Cluster.while_leader`."""
        await self._leadership.run(work)

    async def wait_for_all_nodes(self) -> None:
        """See `Cluster.wait_for_all_nodes`. The code of its Unavailable may be `not_confirmed`."""
        epoch = await self._store.read(lambda reader: reader.epoch())
        self._bus.send("epoch", b"%d" % epoch)
        self._note_epoch(epoch)
        await self.barriers.reached(epoch)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Hold a lease until cancelled, then release it; started once the lease is valid.

        All exclusive work must have ended before the cancellation. Raises NotAdmitted if the node can't join because of another
        one.
        """
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.barriers.run)
                nursery.start_soon(self._report_started, task_status)
                while True:
                    await self._join()
                    await self._keep_lease()
                    self._notify_lease_lost()
        finally:
            self._leadership.note(held=False)
            with trio.move_on_after(_LEAVE_TIMEOUT_S, shield=True):
                await self._leave()

    async def _report_started(self, task_status: trio.TaskStatus[None]) -> None:
        await self.until_valid()
        task_status.started()

    async def _join(self) -> None:
        self._seen = self._epoch = -1
        began = trio.current_time()
        while True:
            try:
                incarnation = await self._store.write(
                    lambda tx: tx.join(self._candidate, int(LEASE_DURATION_S * 1000))
                )
            except Unavailable as refusal:
                log.warning("node.lease_delayed", reason=refusal.reason)
                await trio.sleep(_RETRY_DELAY_S)
            except NotAdmitted:  # the other node may have been killed, so its lease may end soon
                if trio.current_time() > began + LEASE_DURATION_S + HEARTBEAT_INTERVAL_S:
                    raise
                await trio.sleep(_RETRY_DELAY_S)
            else:
                self.node = Node(self.node.name, incarnation)
                log.info("node.joined", node=self.node.name, incarnation=incarnation)
                return

    async def _keep_lease(self) -> None:
        """Renew the lease until it is over."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._invalidate_outdated)
            while True:
                self._renew_due, began = trio.Event(), trio.current_time()
                pause_s = HEARTBEAT_INTERVAL_S
                if not self._too_slow:
                    try:
                        if not await self._renew():
                            nursery.cancel_scope.cancel()
                            return
                    except Unavailable as refusal:
                        log.warning("node.beat_failed", reason=refusal.reason)
                        pause_s = _RETRY_DELAY_S
                # A heartbeat that took longer than the interval is followed by the next one at once.
                with trio.move_on_at(began + pause_s):
                    await self._renew_due.wait()

    @property
    def _too_slow(self) -> bool:
        """True if the node must lose its lease, because the invalidation of its caches takes too long."""
        since = self._invalidating_since
        return since is not None and trio.current_time() - since > LEASE_DURATION_S

    async def _renew(self) -> bool:
        """Renew the lease; return False if it is over."""
        began, wall, seen = trio.current_time(), self._clock(), self._seen
        incarnation, lease_ms = self.node.incarnation, int(LEASE_DURATION_S * 1000)
        result = await self._store.write(lambda tx: tx.heartbeat(incarnation, lease_ms, seen))
        if result is None:
            return False
        if began - self._renewed_at > LEASE_DURATION_S:
            self._steady_since = trio.current_time()
        self._renewed_at, self._renewed_wall_ms = began, wall
        self._note_clock(result.now, wall)
        self._note_live(result)
        self._note_epoch(result.epoch)
        self._leadership.note(held=result.is_leader)
        if seen > self._notified:
            self._notified = seen
            self.barriers.notify_seen()
        self._notify_changed()
        await self._expire_nodes(result.leases)
        return True

    def _note_clock(self, now: int, sent_at: int) -> None:
        """Compare the machine's clock with the database's, which was read between `sent_at` and now."""
        got_at, was_off = self._clock(), abs(self.offset_s) >= CLOCK_OFFSET_WARN_S
        ahead, behind = max(0, sent_at - now), max(0, now - got_at)
        self.offset_s = (ahead - behind) / 1000
        if abs(self.offset_s) >= CLOCK_OFFSET_WARN_S and not was_off:
            log.warning("node.clock_off", seconds=self.offset_s, advice="set the clocks by NTP")

    def _note_live(self, result: HeartbeatResult) -> None:
        live = tuple(Node(lease.name, lease.incarnation) for lease in result.leases)
        if live != self._live:
            self._live = live
            for listener in self._nodes_changed_listeners:
                listener()

    def _receive_epoch(self, payload: bytes) -> None:
        if payload.isdigit():
            self._note_epoch(int(payload))

    def _note_epoch(self, epoch: int) -> None:
        if epoch > self._epoch:
            self._epoch = epoch
            self._outdated.set()

    async def _invalidate_outdated(self) -> None:
        """Invalidate caches whenever an epoch begins, and then report that with an immediate heartbeat."""
        self._invalidating_since = None
        while True:
            await self._outdated.wait()
            self._outdated, epoch = trio.Event(), self._epoch
            self._invalidating_since = self._invalidating_since or trio.current_time()
            try:
                for invalidate in self._invalidators:
                    await invalidate()
            except Unavailable as refusal:
                log.warning("node.forgetting_delayed", reason=refusal.reason)
                self._outdated.set()
                await trio.sleep(_RETRY_DELAY_S)
            except Exception:  # the task's top: a bug may cost the lease, but ends nothing else (ADR 38)
                log.exception(
                    "node.forgetting_failed", effect="the others wait until it succeeds, or the lease is over"
                )
                self._outdated.set()
                await trio.sleep(HEARTBEAT_INTERVAL_S)
            else:
                self._seen, self._invalidating_since = epoch, None
                self._notify_changed()
                self._renew_due.set()

    def _notify_changed(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    async def _expire_nodes(self, leases: Sequence[NodeLease]) -> None:
        """Remove expired leases.

        Only a node that has been connected for at least the duration of a lease does that. After an outage of the database all
        leases are expired, and the first node to return must not expire all others.
        """
        if not any(lease.left_ms <= 0 for lease in leases) or not self.valid:
            return
        if trio.current_time() - self._steady_since < LEASE_DURATION_S:
            return
        try:
            names = await self._store.write(lambda tx: tx.expire_nodes())
        except Unavailable as refusal:
            log.warning("node.others_not_judged", reason=refusal.reason)
        else:
            for name in names:
                log.warning("node.given_up", node=name)
            self._renew_due.set()

    def _notify_lease_lost(self) -> None:
        """Reset the state after the loss of the lease, and notify the listeners."""
        log.warning("node.lease_lost", node=self.node.name, incarnation=self.node.incarnation)
        self._seen = self._epoch = self._notified = -1
        self._live = ()
        self._leadership.note(held=False)
        for drop in self._lease_lost_listeners:
            drop()

    async def _leave(self) -> None:
        incarnation = self.node.incarnation
        try:
            await self._store.write(lambda tx: tx.leave(incarnation))
        except Unavailable as refusal:
            log.warning("node.not_left", reason=refusal.reason, effect="others wait until its lease is over")
