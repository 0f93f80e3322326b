"""A node's lease: it is renewed each second, and without it nothing exclusive is done.

Only the database's clock decides about other nodes, and only the node's own steady clock about itself. What that says
is valid ends half a second before the database can find it over, as it counts from before the renewal was sent. A node
that was stopped, or could not reach the database, so finds its lease invalid by itself; whether it is over for good
the next beat says. If it is, all that was held is lost, and another life of the node begins.

A life is valid once the node has forgotten all that was outdated as it began.
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
LEASE_MARGIN_S: Final = 0.5
"""How much earlier a node takes its own lease for invalid than others may find it over."""
HEARTBEAT_LATE_S: Final = 3.0
"""The age of a beat from which on the node is not ready."""
CLOCK_OFFSET_WARN_S: Final = 1.0
CLOCK_OFFSET_MAX_S: Final = 5.0
"""How far the node's clock may be from the database's before the log says so, and before the node is not ready."""

_RETRY_DELAY_S: Final = 0.25
_LEAVE_TIMEOUT_S: Final = 2.0


class Membership:
    """This node among those that share the database; a `Cluster`.

    Args:
        store: the leases; best by a session of its own, so that a beat waits for nothing else.
        name: the node's; no two that run at the same time have the same.
        version: the program's.
        clock: the machine's, in milliseconds.
        files: the place of uploads, which all nodes have to see.

    Attributes:
        offset_s: how far the machine's clock is ahead of the database's.
        barriers: those who wait for other nodes.
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
        bus.receive("epoch", self._hinted)

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
        """See `Cluster.valid_until`. A machine's sleep, of which Trio's clock knows nothing, shows in the other clock."""
        if self._seen < 0:
            return -inf
        steady_s = trio.current_time() - self._renewed_at
        asleep_s = (self._clock() - self._renewed_wall_ms) / 1000 - steady_s
        return -inf if asleep_s > LEASE_MARGIN_S else self._renewed_at + LEASE_DURATION_S - LEASE_MARGIN_S

    @property
    def valid(self) -> bool:
        """True if the lease is surely this node's now."""
        return trio.current_time() < self.valid_until

    @property
    def is_leader(self) -> bool:
        """True if this node holds the duties."""
        return self._leadership.held

    def refusal(self) -> str | None:
        """Return why the node is not ready, None if it is as far as the others are concerned."""
        if not self.valid:
            return "The node has no valid lease: it was stopped, or the database could not be reached."
        late_s = trio.current_time() - self._renewed_at
        if late_s > HEARTBEAT_LATE_S:
            return f"The node's lease was not renewed for {late_s:.1f} s."
        if abs(self.offset_s) >= CLOCK_OFFSET_MAX_S:
            return (
                f"The node's clock is {self.offset_s:+.1f} s from the database's; set it right, best by NTP."
            )
        return None

    def on_invalidate(self, invalidate: Callable[[], Awaitable[None]]) -> None:
        """Have `invalidate` called whenever something that this node may remember is outdated, wherever that was changed.

        It returns when nothing of that is used any more. Others wait for it: a node that takes long loses its lease.
        """
        self._invalidators.append(invalidate)

    def on_lease_lost(self, drop: Callable[[], None]) -> None:
        """Have `drop` called when the lease is over: what it was the holder of, others may hold."""
        self._lease_lost_listeners.append(drop)

    def on_nodes_changed(self, listener: Callable[[], None]) -> None:
        """Have `listener` called when other nodes are there than before."""
        self._nodes_changed_listeners.append(listener)

    async def until_valid(self) -> None:
        """See `Cluster.until_valid`."""
        while not self.valid:
            await self._changed.wait()

    async def while_leader(self, work: Callable[[], Awaitable[object]]) -> None:
        """See `Cluster.while_leader`."""
        await self._leadership.during(work)

    async def wait_for_all_nodes(self) -> None:
        """See `Cluster.wait_for_all_nodes`. Raises Unavailable (`not_confirmed`) as well."""
        epoch = await self._store.read(lambda reader: reader.epoch())
        self._bus.send("epoch", b"%d" % epoch)
        self._note_epoch(epoch)
        await self.barriers.reached(epoch)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Hold a lease until cancelled; started when there is one, and give it back at the end.

        All that is exclusive must have ended before the cancellation. Raises NotAdmitted if another node keeps this one away.
        """
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.barriers.run)
                nursery.start_soon(self._tell_when_valid, task_status)
                while True:
                    await self._join()
                    await self._keep_lease()
                    self._lose()
        finally:
            self._leadership.note(held=False)
            with trio.move_on_after(_LEAVE_TIMEOUT_S, shield=True):
                await self._leave()

    async def _tell_when_valid(self, task_status: trio.TaskStatus[None]) -> None:
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
            except NotAdmitted:  # the other may have been killed: then its lease is over soon
                if trio.current_time() > began + LEASE_DURATION_S + HEARTBEAT_INTERVAL_S:
                    raise
                await trio.sleep(_RETRY_DELAY_S)
            else:
                self.node = Node(self.node.name, incarnation)
                log.info("node.joined", node=self.node.name, incarnation=incarnation)
                return

    async def _keep_lease(self) -> None:
        """Beat until the lease is over."""
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
                # At once behind a beat that took long: it is old by now.
                with trio.move_on_at(began + pause_s):
                    await self._renew_due.wait()

    @property
    def _too_slow(self) -> bool:
        """True if the node is to be given up by the others, as it does not get to forgetting."""
        since = self._invalidating_since
        return since is not None and trio.current_time() - since > LEASE_DURATION_S

    async def _renew(self) -> bool:
        """Renew the lease; return False if it is over."""
        began, wall, seen = trio.current_time(), self._clock(), self._seen
        incarnation, lease_ms = self.node.incarnation, int(LEASE_DURATION_S * 1000)
        beat = await self._store.write(lambda tx: tx.beat(incarnation, lease_ms, seen))
        if beat is None:
            return False
        if began - self._renewed_at > LEASE_DURATION_S:
            self._steady_since = trio.current_time()
        self._renewed_at, self._renewed_wall_ms = began, wall
        self._note_clock(beat.now, wall)
        self._note_live(beat)
        self._note_epoch(beat.epoch)
        self._leadership.note(held=beat.is_leader)
        if seen > self._notified:
            self._notified = seen
            self.barriers.notify_seen()
        self._notify_changed()
        await self._expire_nodes(beat.leases)
        return True

    def _note_clock(self, now: int, sent_at: int) -> None:
        """Compare the machine's clock with the database's, which was read between the sending and now."""
        got_at, was_off = self._clock(), abs(self.offset_s) >= CLOCK_OFFSET_WARN_S
        ahead, behind = max(0, sent_at - now), max(0, now - got_at)
        self.offset_s = (ahead - behind) / 1000
        if abs(self.offset_s) >= CLOCK_OFFSET_WARN_S and not was_off:
            log.warning("node.clock_off", seconds=self.offset_s, advice="set the clocks by NTP")

    def _note_live(self, beat: HeartbeatResult) -> None:
        live = tuple(Node(lease.name, lease.incarnation) for lease in beat.leases)
        if live != self._live:
            self._live = live
            for listener in self._nodes_changed_listeners:
                listener()

    def _hinted(self, payload: bytes) -> None:
        if payload.isdigit():
            self._note_epoch(int(payload))

    def _note_epoch(self, epoch: int) -> None:
        if epoch > self._epoch:
            self._epoch = epoch
            self._outdated.set()

    async def _invalidate_outdated(self) -> None:
        """Forget whenever something is outdated, and have the next beat say so at once."""
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
            except (
                Exception
            ):  # the task's top: a bug costs the lease if it lasts, and ends nothing else (ADR 38)
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
        turned, self._changed = self._changed, trio.Event()
        turned.set()

    async def _expire_nodes(self, leases: Sequence[NodeLease]) -> None:
        """End leases whose time is over.

        Only who has been there for as long as a lease judges others: when the database was away, all leases are over, and
        who comes back first must not take everything.
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

    def _lose(self) -> None:
        """Drop all that was held with the lease that is over."""
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
