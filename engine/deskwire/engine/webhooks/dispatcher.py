"""The dispatcher: one supervised worker per enabled webhook endpoint.

It also cleans up after disabled and removed endpoints, in small commits so that other commits do not wait
long. Pending deliveries of a disabled endpoint end as skipped; deliveries of a removed endpoint are deleted.
After a crash, the next start continues.
"""

from __future__ import annotations

import random
import ssl
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import Context
from typing import Final, get_args

import httpx
import structlog
import trio

from deskwire.engine.cluster.cluster import Cluster, SingleNode
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.encryption import DecryptionFailed, Encryption
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EphemeralEvent, StoredEvent
from deskwire.engine.events.versions import EVENT_VERSIONS, EventVersions
from deskwire.engine.webhooks.base_worker import SupervisedWorker
from deskwire.engine.webhooks.context import DeliveryContext, DeliveryCounters, ignore_delivery
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.endpoint import DROPPED_WINDOW_MS, Endpoint, HealthCode, unhealthy_code
from deskwire.engine.webhooks.ephemeral import EphemeralDispatcher
from deskwire.engine.webhooks.http.address import AddressPolicy, Resolver
from deskwire.engine.webhooks.http.connectors import Proxy
from deskwire.engine.webhooks.ports import DeliveryCommit, DeliveryReader, DeliveryTransaction
from deskwire.engine.webhooks.publish import HealthTransaction
from deskwire.engine.webhooks.retry.circuit_breaker import (
    DEFAULT_CIRCUIT_RULE,
    SECRET_LOST,
    CircuitRule,
    CircuitStatus,
)
from deskwire.engine.webhooks.retry.schedule import DEFAULT_RETRY_DELAYS_S, Schedule
from deskwire.engine.webhooks.worker import EndpointWorker

# Most receivers answer within this time, and a silent one must not delay a stop.
_STOP_GRACE_S: Final = 1.0

# Delay before a failed database operation is retried.
_STORE_RETRY_DELAY_S: Final = 1.0


# Deliveries per commit; a few milliseconds of the writer's time.
CLEANUP_BATCH_SIZE: Final = 500
_CLEANUP_RETRY_DELAY_S: Final = 1.0


class Dispatcher:
    """Sends committed events to the webhook endpoints (contract 6.4).

    Args:
        store: the store of deliveries and attempts.
        clock: gives wall-clock milliseconds for stored times.
        sealing: opens the endpoints' secrets.
        policy: which addresses may be dialled.
        webhook_timeout_s: timeout of one attempt, from the name lookup to the head of the response.
        retry_delays_s: see `Schedule`.
        jitter: maximum relative change of a delay, up or down.
        concurrency: maximum concurrent attempts at one endpoint.
        waiting: maximum further attempts that may wait for a response, after one second without one.
        rule: when an endpoint's circuit opens.
        horizon_s: age of a delivery after which no attempt starts.
        catch_up_per_s: maximum attempts per second at each endpoint for its backlog after an outage; see
            `queue.limits`.
        memory_deliveries: maximum deliveries of one endpoint in memory, for each part of its outbox.
        stop_grace_s: time that a stop leaves running attempts to finish.
        ssl_context: verifies receivers; by default with the public certificate authorities.
        proxy: the proxy for all attempts; None for direct connections.
        resolver: resolves names for all endpoints; by default each endpoint has its own.
        rng: source of the jitter.
        notify: called with each new delivery, and with each delivery whose attempt was recorded.
        cluster: this node among the nodes that share the store; None for a single node. In a cluster,
            `EndpointLeases` chooses this node's endpoints.
        versions: the versions of events that endpoints may be pinned to.
    """

    def __init__(
        self,
        store: Store[DeliveryReader, HealthTransaction],
        clock: Clock,
        sealing: Encryption,
        policy: AddressPolicy,
        *,
        webhook_timeout_s: float = 5.0,  # contract 6.4.1
        retry_delays_s: tuple[float, ...] = DEFAULT_RETRY_DELAYS_S,
        jitter: float = 0.2,  # decisions 6
        concurrency: int = 16,  # decisions 6
        waiting: int = 96,  # ADR 6
        rule: CircuitRule = DEFAULT_CIRCUIT_RULE,  # contract 6.4.3, ADR 10
        horizon_s: float = 86_400.0,  # ADR 10
        catch_up_per_s: float = 10_000.0,  # ADR 10
        memory_deliveries: int = 1000,
        stop_grace_s: float = _STOP_GRACE_S,
        ssl_context: ssl.SSLContext | None = None,
        proxy: Proxy | None = None,
        resolver: Resolver | None = None,
        rng: random.Random | None = None,
        notify: Callable[[Delivery], None] = ignore_delivery,
        cluster: Cluster | None = None,
        versions: EventVersions = EVENT_VERSIONS,
    ) -> None:
        self._shared = cluster is not None
        self._store = store
        self.counters = DeliveryCounters()
        self._context = DeliveryContext(
            store=store,
            clock=clock,
            sealing=sealing,
            policy=policy,
            schedule=Schedule(retry_delays_s, jitter, horizon_s),
            rule=rule,
            timeout_s=webhook_timeout_s,
            concurrency=concurrency,
            waiting=waiting,
            catch_up_per_s=catch_up_per_s,
            memory=memory_deliveries,
            stop_grace_s=stop_grace_s,
            store_retry_delay_s=_STORE_RETRY_DELAY_S,
            ssl_context=ssl_context or httpx.create_ssl_context(),
            proxy=proxy,
            resolver=resolver,
            rng=rng or random.Random(),
            counters=self.counters,
            notify=notify,
            cluster=cluster or SingleNode(),
            versions=versions,
        )
        self._workers: dict[int, SupervisedWorker[EndpointWorker]] = {}
        self._projects: dict[int, set[int]] = {}
        self._releasing: set[SupervisedWorker[EndpointWorker]] = set()
        self._ephemeral = EphemeralDispatcher(self._context)
        self._nursery: trio.Nursery | None = None

    @property
    def held(self) -> int:
        """The number of pending deliveries in memory. More may be waiting as rows."""
        return sum(supervised.worker.held for supervised in self._workers.values())

    @property
    def typing_held(self) -> int:
        """The number of waiting deliveries of typing events."""
        return self._ephemeral.held

    @property
    def outages(self) -> Mapping[str, int]:
        """The number of deliveries that wait because of outages, by kind.

        `held` deliveries wait for an open circuit to close; `missed` ones will be sent again.
        """
        outages = [supervised.worker.outage for supervised in self._workers.values()]
        return {
            "held": sum(outage.held for outage in outages),
            "missed": sum(outage.missed for outage in outages),
        }

    def circuits(self) -> Mapping[str, int]:
        """Return the number of enabled endpoints by the status of their circuit."""
        now = self._context.clock()
        states = [supervised.worker.breaker.circuit.state(now) for supervised in self._workers.values()]
        return {state: states.count(state) for state in get_args(CircuitStatus)}

    async def health_counts(self) -> Mapping[str, int]:
        """Return the number of this node's endpoints by health code, or `healthy`.

        Raises Unavailable.
        """
        now = self._context.clock()
        endpoints = [
            replace(each.worker.endpoint, circuit=each.worker.breaker.circuit)
            for each in self._workers.values()
        ]
        found = await self._store.read(lambda reader: _health_codes(reader, endpoints, now))
        return {code: found.count(code) for code in ("healthy", *get_args(HealthCode)) if code != "disabled"}

    @property
    def unsigned(self) -> int:
        """The number of enabled endpoints whose signing secret can't be unsealed."""
        return sum(
            supervised.worker.breaker.circuit.reason == SECRET_LOST for supervised in self._workers.values()
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Deliver to all enabled endpoints until cancelled.

        Pending deliveries come first. In a cluster it starts with no endpoint; `EndpointLeases` adds them.

        Raises Unavailable if the endpoints can't be read at the start.

        Cancellation: running attempts have `stop_grace_s` to finish; other deliveries stay pending.
        """
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                if not self._shared:
                    await self._begin()
                task_status.started()
                await trio.sleep_forever()
        finally:
            self._nursery = None
            self._workers.clear()
            self._projects.clear()
            self._releasing.clear()
            self._ephemeral.clear()

    async def _begin(self) -> None:
        for endpoint in await self._store.read(lambda reader: reader.endpoints()):
            if endpoint.rowid not in self._workers:
                self.add(endpoint)
        for rowid in await self._store.read(lambda reader: reader.unserved_endpoints()):
            self._close(rowid)

    def add(self, endpoint: Endpoint, generation: int | None = None) -> None:
        """Start to deliver to an endpoint, pending deliveries first.

        Replaces the worker that the endpoint has already. Without effect if the endpoint is disabled, or if
        `run` is not running: `run` reads the stored endpoints when it starts.

        Args:
            generation: generation of the endpoint's lease, if there is one. By default the new worker keeps
                that of its predecessor.
        """
        previous = self._workers.get(endpoint.rowid)
        self._stop_worker(endpoint.rowid)
        if self._nursery is None or endpoint.status != "enabled":
            return
        breaker = self._context.breaker(endpoint)
        if generation is None and previous is not None:
            generation = previous.worker.generation
        supervised = SupervisedWorker(EndpointWorker(endpoint, self._context, breaker, generation))
        self._workers[endpoint.rowid] = supervised
        self._projects.setdefault(endpoint.project, set()).add(endpoint.rowid)
        supervised.start(self._nursery, previous)
        self._ephemeral.add(endpoint, breaker, self._nursery)

    def change(self, endpoint: Endpoint) -> None:
        """Apply an endpoint's changed fields.

        Running attempts are cancelled only if the URL has changed.
        """
        supervised = self._workers.get(endpoint.rowid)
        if endpoint.status != "enabled":
            self.remove(endpoint.rowid)
        elif supervised is None or self._nursery is None or supervised.worker.endpoint.url != endpoint.url:
            self.add(endpoint)
        else:
            try:
                supervised.worker.change(endpoint)
                self._ephemeral.change(endpoint, supervised.worker.breaker, self._nursery)
            except DecryptionFailed:  # the new worker logs it
                self.add(endpoint)

    def remove(self, endpoint_rowid: int) -> None:
        """Stop deliveries to an endpoint at once, and end its pending deliveries.

        Running attempts are cancelled.
        """
        self._stop_worker(endpoint_rowid)
        self._close(endpoint_rowid)

    def drop(self, endpoint_rowid: int) -> None:
        """Stop deliveries to an endpoint at once; pending deliveries stay pending.

        Running attempts are cancelled.
        """
        self._stop_worker(endpoint_rowid)

    async def release(self, endpoint_rowid: int) -> None:
        """Start no more attempts at an endpoint; return when the running ones have ended.

        They have at most the grace period of a stop.
        """
        supervised = self._detach(endpoint_rowid)
        if supervised is not None:
            supervised.cancel()
            self._releasing.add(supervised)
            await supervised.ended()
            self._releasing.discard(supervised)

    def probe(self, endpoint_rowid: int, position: int | None = None) -> None:
        """Send a probe at once if the circuit is open.

        Args:
            position: the delivery to send; None for the oldest.
        """
        supervised = self._workers.get(endpoint_rowid)
        if supervised is not None:
            supervised.worker.probe(position)

    async def first_result(self, delivery: Delivery, timeout_s: float) -> None:
        """Return when an attempt at a new delivery is recorded, or after `timeout_s`.

        Also returns if the delivery ends without an attempt.
        """
        recorded = self._context.watched.setdefault(delivery.position, trio.Event())
        try:
            with trio.move_on_after(timeout_s):
                await recorded.wait()
        finally:
            self._context.watched.pop(delivery.position, None)

    def follow(self, commits: Commits[DeliveryCommit]) -> None:
        """Subscribe to commits and send their deliveries."""
        commits.subscribe(
            lambda commit: self.commit_nowait(commit.deliveries, commit.erased, commit.rewritten),
            "deliveries",
            "erased",
            "rewritten",
        )

    def commit_nowait(
        self,
        deliveries: Sequence[Delivery],
        erased: frozenset[int] = frozenset(),
        rewritten: Sequence[StoredEvent] = (),
    ) -> None:
        """Process a commit. Call it on the Trio thread, in commit order.

        Args:
            deliveries: the new deliveries.
            erased: erased conversations; their deliveries must no longer be sent.
            rewritten: events with redacted content; see `rewrite`.
        """
        if erased:
            self.forget(erased)
        if rewritten:
            self.rewrite(rewritten)
        for delivery in deliveries:
            addressee = self._workers.get(delivery.endpoint)
            if addressee is not None:
                addressee.worker.offer(delivery)
            self._context.notify(delivery)

    def forget(self, conversations: frozenset[int]) -> None:
        """Stop sending deliveries of erased conversations."""
        self._ephemeral.forget(conversations)
        for supervised in (*self._workers.values(), *self._releasing):
            supervised.worker.forget(conversations)

    def rewrite(self, events: Sequence[StoredEvent]) -> None:
        """Send these events with their new content.

        An attempt that has already sent bytes continues with the old content.
        """
        now = {event.position: event for event in events}
        for supervised in (*self._workers.values(), *self._releasing):
            supervised.worker.rewrite(now)

    @property
    def projects(self) -> Collection[int]:
        """Projects that have an endpoint with a worker here, by storage key."""
        return self._projects.keys()

    def delivers_to(self, endpoint_rowid: int) -> bool:
        """Return whether the endpoint has a worker here."""
        return endpoint_rowid in self._workers

    def note_rows(self, project: int, upto: int, *, again: bool = False) -> None:
        """Announce stored deliveries of a project that `commit_nowait` was not given.

        Args:
            upto: position of the last of them.
            again: whether redeliveries may be among them.
        """
        for endpoint in self._projects.get(project, ()):
            self._workers[endpoint].worker.note_rows(upto, again=again)

    def note_redeliveries(self, endpoint_rowid: int) -> None:
        """Announce redeliveries for an endpoint that `commit_nowait` was not given."""
        supervised = self._workers.get(endpoint_rowid)
        if supervised is not None:
            supervised.worker.note_rows(0, again=True)

    def restart_workers(self, project: int) -> None:
        """Replace a project's workers by new ones, which reload pending rows."""
        for endpoint in [*self._projects.get(project, ())]:
            self.add(self._workers[endpoint].worker.endpoint)

    @property
    def typing_projects(self) -> Collection[int]:
        """Projects with an endpoint here that lists typing events, by storage key."""
        return self._ephemeral.projects

    def offer_ephemeral(self, event: EphemeralEvent) -> None:
        """Queue a typing event for the endpoints that list its type (contract 6.2.4)."""
        self._ephemeral.offer(event)

    def _stop_worker(self, endpoint_rowid: int) -> None:
        stopped = [each for each in self._releasing if each.worker.endpoint.rowid == endpoint_rowid]
        if (supervised := self._detach(endpoint_rowid)) is not None:
            stopped.append(supervised)
        for each in stopped:
            each.worker.abandon()
            each.cancel()

    def _detach(self, endpoint_rowid: int) -> SupervisedWorker[EndpointWorker] | None:
        supervised = self._workers.pop(endpoint_rowid, None)
        if supervised is not None:
            served = self._projects[supervised.worker.endpoint.project]
            served.discard(endpoint_rowid)
            if not served:
                del self._projects[supervised.worker.endpoint.project]
        self._ephemeral.remove(endpoint_rowid)
        return supervised

    def _close(self, endpoint_rowid: int) -> None:
        if self._nursery is not None:
            start = self._nursery.start_soon
            Context().run(start, clean_up_endpoint, self._store, self._context.clock, endpoint_rowid)


def _health_codes(reader: DeliveryReader, endpoints: Sequence[Endpoint], now: int) -> Sequence[str]:
    """Return the health code of each endpoint, or `healthy`.

    One dropped delivery is enough for `dropped`, so no more are counted.
    """
    found = []
    for each in endpoints:
        code = unhealthy_code(each, 0)
        if code is None:
            dropped = reader.dropped_since(each.project, each.rowid, now - DROPPED_WINDOW_MS, 1)
            code = unhealthy_code(each, dropped)
        found.append(code or "healthy")
    return found


log: Final = structlog.get_logger(__name__)


async def clean_up_endpoint(
    store: Store[DeliveryReader, DeliveryTransaction], clock: Clock, endpoint: int
) -> None:
    """End or delete the deliveries of a disabled or removed endpoint.

    Returns when none is left, or when the endpoint is enabled again.
    """
    while True:
        try:
            while await store.write(_cleanup_part(endpoint, clock())):
                await trio.lowlevel.checkpoint()
        except Unavailable as refusal:
            log.warning("delivery.closing_delayed", reason=refusal.reason)
            await trio.sleep(_CLEANUP_RETRY_DELAY_S)
        else:
            return


def _cleanup_part(endpoint: int, now: int) -> Callable[[DeliveryTransaction], int]:
    return lambda tx: tx.close_deliveries(endpoint, now, CLEANUP_BATCH_SIZE)
