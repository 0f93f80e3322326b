"""The workers that deliver to webhook endpoints: one for each enabled endpoint, each in a supervised task."""

from __future__ import annotations

import random
import ssl
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import Context
from typing import Final, get_args

import httpx
import structlog
import trio

from deskwire.engine.cluster.cluster import Alone, Cluster
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.sealing import SealBroken, Sealing
from deskwire.engine.core.store import Store
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EphemeralEvent, StoredEvent
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

_STOP_GRACE_S: Final = 1.0
"""Time that a stop leaves to attempts under way: most receivers answer in less, and a silent one must not delay it."""

_STORE_RETRY_DELAY_S: Final = 1.0
"""Pause before the store is asked again after it has refused."""


class Dispatcher:
    """Delivers what is committed to the endpoints that it is for (contract 6.4).

    Args:
        store: the store of deliveries and attempts.
        clock: gives wall-clock milliseconds, for what is stored.
        sealing: opens the endpoints' secrets.
        policy: says which addresses may be dialled.
        webhook_timeout_s: time for one attempt, from the name's lookup to the head of the response.
        retry_delays_s: see `Schedule`.
        jitter: share of a delay by which it varies, up and down.
        concurrency: attempts under way to one endpoint at the same time at most.
        waiting: further attempts that may wait for a response, after a second without one.
        rule: says when an endpoint's circuit opens.
        horizon_s: age of a delivery after which no attempt begins.
        catch_up_per_s: attempts a second at most to each endpoint for what an outage left behind; see `queue.limits`.
        memory_deliveries: deliveries of one endpoint that are in memory at most, of each part of its outbox.
        stop_grace_s: time that a stop leaves to attempts under way.
        ssl_context: verifies receivers; the default trusts the public authorities.
        proxy: the proxy that all attempts go through; without one they go straight to the receivers.
        resolver: looks up names for all endpoints; by default each endpoint has one of its own.
        rng: draws the jitter.
        notify: is told of each delivery that was made, and of each whose attempt is recorded.
        cluster: this node among those that deliver. If it is not alone, `Couriers` says which endpoints are this one's.
    """

    def __init__(
        self,
        store: Store[DeliveryReader, HealthTransaction],
        clock: Clock,
        sealing: Sealing,
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
            cluster=cluster or Alone(),
        )
        self._workers: dict[int, SupervisedWorker[EndpointWorker]] = {}
        self._projects: dict[int, set[int]] = {}
        self._releasing: set[SupervisedWorker[EndpointWorker]] = set()
        self._ephemeral = EphemeralDispatcher(self._context)
        self._nursery: trio.Nursery | None = None

    @property
    def held(self) -> int:
        """The number of pending deliveries in memory; more may wait as rows."""
        return sum(supervised.worker.held for supervised in self._workers.values())

    @property
    def typing_held(self) -> int:
        """The number of deliveries of typing events that wait."""
        return self._ephemeral.held

    @property
    def outages(self) -> Mapping[str, int]:
        """The numbers of deliveries that outages keep waiting: `held` by an open circuit, or `missed`, to be sent once more."""
        outages = [supervised.worker.outage for supervised in self._workers.values()]
        return {
            "held": sum(outage.held for outage in outages),
            "missed": sum(outage.missed for outage in outages),
        }

    def circuits(self) -> Mapping[str, int]:
        """Return the number of enabled endpoints with a circuit in each state."""
        now = self._context.clock()
        states = [supervised.worker.breaker.circuit.state(now) for supervised in self._workers.values()]
        return {state: states.count(state) for state in get_args(CircuitStatus)}

    async def health_counts(self) -> Mapping[str, int]:
        """Return the number of enabled endpoints with a worker here that are `healthy`, or not, by `unhealthy_code`.

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
        """The number of enabled endpoints whose signing secret the installation's secret does not open."""
        return sum(
            supervised.worker.breaker.circuit.reason == SECRET_LOST for supervised in self._workers.values()
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Deliver to all enabled endpoints until cancelled, beginning with what is pending; to none yet if others do, too.

        Raises Unavailable if the endpoints can't be read at the start.

        Cancellation: attempts under way have `stop_grace_s` to end; the rest stays pending.
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
        """Deliver to an endpoint from now on, beginning with what is pending for it.

        A worker that it has already is replaced. Without effect if the endpoint is not enabled, and while
        `run` does not run, which reads what is stored.

        Args:
            generation: that of the courier's lease, if there is one; a worker that is replaced leaves its own.
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
        """Go on with an endpoint's changed fields; attempts under way are cut off only if its URL has changed."""
        supervised = self._workers.get(endpoint.rowid)
        if endpoint.status != "enabled":
            self.remove(endpoint.rowid)
        elif supervised is None or self._nursery is None or supervised.worker.endpoint.url != endpoint.url:
            self.add(endpoint)
        else:
            try:
                supervised.worker.change(endpoint)
                self._ephemeral.change(endpoint, supervised.worker.breaker, self._nursery)
            except SealBroken:  # the new worker says so in the log
                self.add(endpoint)

    def remove(self, endpoint_rowid: int) -> None:
        """Stop delivering to an endpoint at once, in mid-attempt too, and close what is pending for it."""
        self._stop_worker(endpoint_rowid)
        self._close(endpoint_rowid)

    def drop(self, endpoint_rowid: int) -> None:
        """Stop delivering to an endpoint at once, in mid-attempt too; what is pending stays so."""
        self._stop_worker(endpoint_rowid)

    async def release(self, endpoint_rowid: int) -> None:
        """Begin no more attempts for an endpoint, and return when those under way have ended, or their grace has."""
        supervised = self._detach(endpoint_rowid)
        if supervised is not None:
            supervised.cancel()
            self._releasing.add(supervised)
            await supervised.ended()
            self._releasing.discard(supervised)

    def probe(self, endpoint_rowid: int, position: int | None = None) -> None:
        """Send a probe at once if the circuit is open: the delivery at this position, or the oldest."""
        supervised = self._workers.get(endpoint_rowid)
        if supervised is not None:
            supervised.worker.probe(position)

    async def first_result(self, delivery: Delivery, timeout_s: float) -> None:
        """Return when an attempt at a delivery that was just made is recorded, or it ended without one.

        Or after `timeout_s`, if that is earlier.
        """
        recorded = self._context.watched.setdefault(delivery.position, trio.Event())
        try:
            with trio.move_on_after(timeout_s):
                await recorded.wait()
        finally:
            self._context.watched.pop(delivery.position, None)

    def follow(self, commits: Commits[DeliveryCommit]) -> None:
        """Deliver what is committed from now on."""
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
        """Take note of a commit; to be called on the Trio thread, in commit order.

        Args:
            deliveries: the new deliveries.
            erased: conversations that were erased; nothing more of them is sent.
            rewritten: events of which something was redacted; see `rewrite`.
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
        """Send nothing more of erased conversations."""
        self._ephemeral.forget(conversations)
        for supervised in (*self._workers.values(), *self._releasing):
            supervised.worker.forget(conversations)

    def rewrite(self, events: Sequence[StoredEvent]) -> None:
        """Send these events as they are now; an attempt of which something was sent goes on as it began."""
        now = {event.position: event for event in events}
        for supervised in (*self._workers.values(), *self._releasing):
            supervised.worker.rewrite(now)

    @property
    def projects(self) -> Collection[int]:
        """The projects with an endpoint that has a worker here, by their storage keys."""
        return self._projects.keys()

    def delivers_to(self, endpoint_rowid: int) -> bool:
        """Tell whether the endpoint has a worker here."""
        return endpoint_rowid in self._workers

    def note_rows(self, project: int, upto: int, *, again: bool = False) -> None:
        """Take note that deliveries of a project are stored up to this position, which nobody has given to `commit_nowait`.

        Args:
            again: whether there may be redeliveries among them.
        """
        for endpoint in self._projects.get(project, ()):
            self._workers[endpoint].worker.note_rows(upto, again=again)

    def note_redeliveries(self, endpoint_rowid: int) -> None:
        """Take note that there are redeliveries for an endpoint that nobody has given to `commit_nowait`."""
        supervised = self._workers.get(endpoint_rowid)
        if supervised is not None:
            supervised.worker.note_rows(0, again=True)

    def restart_workers(self, project: int) -> None:
        """Replace a project's workers by new ones, which begin with what is stored."""
        for endpoint in [*self._projects.get(project, ())]:
            self.add(self._workers[endpoint].worker.endpoint)

    @property
    def typing_projects(self) -> Collection[int]:
        """The projects with an endpoint here that lists typing events, by their storage keys."""
        return self._ephemeral.projects

    def offer_ephemeral(self, event: EphemeralEvent) -> None:
        """Deliver a typing event, from memory, to the endpoints that list its type (contract 6.2.4)."""
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
    """Return for each of these endpoints whether it is `healthy`, or why not; one dropped delivery is enough."""
    found = []
    for each in endpoints:
        code = unhealthy_code(each, 0)
        if code is None:
            dropped = reader.dropped_since(each.project, each.rowid, now - DROPPED_WINDOW_MS, 1)
            code = unhealthy_code(each, dropped)
        found.append(code or "healthy")
    return found


log: Final = structlog.get_logger(__name__)

CLEANUP_BATCH_SIZE: Final = 500
"""Deliveries in one commit; a few milliseconds of the writer's time."""

_CLEANUP_RETRY_DELAY_S: Final = 1.0


async def clean_up_endpoint(
    store: Store[DeliveryReader, DeliveryTransaction], clock: Clock, endpoint: int
) -> None:
    """Clear away an endpoint's deliveries until none are left, or it is enabled again."""
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
