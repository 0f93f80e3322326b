"""All couriers: one for each enabled endpoint, each in a task that nothing else's failure reaches."""

from __future__ import annotations

import random
import ssl
from collections.abc import Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from typing import Final, get_args

import httpx
import trio

from deskwire.engine.core.clock import Clock
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.sealing import SealBroken, Sealing
from deskwire.engine.core.store import Store
from deskwire.engine.events.types import EphemeralEvent
from deskwire.engine.webhooks.cleanup import close_endpoint
from deskwire.engine.webhooks.context import Counters, DeliveryContext
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.ephemeral_dispatcher import EphemeralDispatcher
from deskwire.engine.webhooks.http.address import Policy
from deskwire.engine.webhooks.http.proxy import Proxy
from deskwire.engine.webhooks.http.resolver import Resolver
from deskwire.engine.webhooks.isolation import RESTART_PAUSE_S, run_isolated
from deskwire.engine.webhooks.ports import DeliveryCommit, DeliveryReader, DeliveryTransaction
from deskwire.engine.webhooks.retry.breaker import Breaker
from deskwire.engine.webhooks.retry.circuit import DEFAULT_RULE, Rule, State
from deskwire.engine.webhooks.retry.schedule import Schedule
from deskwire.engine.webhooks.worker import EndpointWorker

_STOP_GRACE_S: Final = 1.0
"""How long a stop waits for attempts under way: most receivers answer in less, a silent one holds nothing up."""

_PAUSE_S: Final = 1.0
"""Between two tries of something that the disk refused."""


@dataclass(slots=True, eq=False)
class _Seat:
    """A courier's place: it outlives the courier that failed in it."""

    endpoint: Endpoint
    breaker: Breaker
    courier: EndpointWorker
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    gone: trio.Event = field(default_factory=trio.Event)


class Dispatcher:
    """Delivers what is committed to the endpoints that it is for (contract 6.4).

    Args:
        store: where deliveries and attempts are.
        clock: wall-clock milliseconds, for what is stored.
        sealing: opens the endpoints' secrets.
        policy: which addresses may be dialled.
        webhook_timeout_s: for one attempt, from its name's lookup to the head of the answer.
        retry_after_s: the pauses after failed attempts; one attempt more than there are pauses.
        jitter: share of a pause by which it varies, up and down.
        concurrency: attempts under way to one endpoint at the same time at most.
        waiting: attempts that may wait for their answer besides, after a second without one.
        rule: when an endpoint's circuit opens.
        horizon_s: age of a delivery after which no attempt begins.
        catch_up_per_s: how many attempts a second go to what an outage left behind, of each endpoint.
        memory_deliveries: deliveries of one endpoint that are in memory at most, of each part of its outbox.
        stop_grace_s: how long a stop waits for attempts under way.
        ssl_context: verifies receivers; the default trusts the public authorities.
        proxy: what all attempts go through, if not straight to the receivers.
        resolver: for all endpoints; the default gives each one of its own.
        rng: for the jitter.
    """

    def __init__(
        self,
        store: Store[DeliveryReader, DeliveryTransaction],
        clock: Clock,
        sealing: Sealing,
        policy: Policy,
        *,
        webhook_timeout_s: float = 5.0,  # contract 6.4.1
        retry_after_s: tuple[float, ...] = (2.0, 6.0, 12.0),  # contract 6.4.2, decisions 6
        jitter: float = 0.2,  # decisions 6
        concurrency: int = 16,  # decisions 6
        waiting: int = 96,  # ADR 40
        rule: Rule = DEFAULT_RULE,  # contract 6.4.3, ADR 40
        horizon_s: float = 86_400.0,  # ADR 40
        catch_up_per_s: float = 200.0,  # ADR 40
        memory_deliveries: int = 1000,
        stop_grace_s: float = _STOP_GRACE_S,
        ssl_context: ssl.SSLContext | None = None,
        proxy: Proxy | None = None,
        resolver: Resolver | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._store = store
        self.counters = Counters()
        self._means = DeliveryContext(
            store=store,
            clock=clock,
            sealing=sealing,
            policy=policy,
            schedule=Schedule(retry_after_s, jitter, horizon_s),
            rule=rule,
            timeout_s=webhook_timeout_s,
            concurrency=concurrency,
            waiting=waiting,
            catch_up_per_s=catch_up_per_s,
            memory=memory_deliveries,
            stop_grace_s=stop_grace_s,
            pause_s=_PAUSE_S,
            ssl_context=ssl_context or httpx.create_ssl_context(),
            proxy=proxy,
            resolver=resolver,
            rng=rng or random.Random(),
            counters=self.counters,
        )
        self._seats: dict[int, _Seat] = {}
        self._passing = EphemeralDispatcher(self._means)
        self._nursery: trio.Nursery | None = None

    @property
    def held(self) -> int:
        """How many pending deliveries are in memory; more may wait as rows."""
        return sum(seat.courier.held for seat in self._seats.values())

    @property
    def typing_held(self) -> int:
        """How many deliveries of typing events wait."""
        return self._passing.held

    @property
    def outages(self) -> Mapping[str, int]:
        """How many deliveries outages keep waiting: held by an open circuit, and missed, to be sent once more."""
        outages = [seat.courier.outage for seat in self._seats.values()]
        return {"held": sum(each.held for each in outages), "missed": sum(each.missed for each in outages)}

    def circuits(self) -> Mapping[str, int]:
        """How many endpoints that are delivered to have their circuit in each state."""
        now = self._means.clock()
        states = [seat.breaker.circuit.state(now) for seat in self._seats.values()]
        return {state: states.count(state) for state in get_args(State)}

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Deliver to all enabled endpoints until cancelled, beginning with what is pending.

        Raises Unavailable if the endpoints can't be read at the start.

        Cancellation: attempts under way have `stop_grace_s` to end; the rest stays pending.
        """
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                for endpoint in await self._store.read(lambda reader: reader.endpoints()):
                    if endpoint.rowid not in self._seats:
                        self.add(endpoint)
                for rowid in await self._store.read(lambda reader: reader.unserved_endpoints()):
                    self._close(rowid)
                task_status.started()
                await trio.sleep_forever()
        finally:
            self._nursery = None
            self._seats.clear()
            self._passing.clear()

    def add(self, endpoint: Endpoint) -> None:
        """Deliver to an endpoint from now on, beginning with what is pending for it.

        One that is there already is taken anew. Without effect if it is not enabled, and while `run` does
        not run, which reads what is stored.
        """
        previous = self._seats.get(endpoint.rowid)
        self._unseat(endpoint.rowid)
        if self._nursery is None or endpoint.status != "enabled":
            return
        breaker = self._means.breaker(endpoint)
        seat = _Seat(endpoint, breaker, EndpointWorker(endpoint, self._means, breaker))
        self._seats[endpoint.rowid] = seat
        Context().run(self._nursery.start_soon, self._keep, seat, previous)
        self._passing.add(endpoint, breaker, self._nursery)

    def change(self, endpoint: Endpoint) -> None:
        """Go on with an endpoint's changed fields; attempts under way are cut off only if its URL is another."""
        seat = self._seats.get(endpoint.rowid)
        if endpoint.status != "enabled":
            self.remove(endpoint.rowid)
        elif seat is None or self._nursery is None or seat.endpoint.url != endpoint.url:
            self.add(endpoint)
        else:
            seat.endpoint = endpoint
            try:
                seat.courier.change(endpoint)
                self._passing.change(endpoint, seat.breaker, self._nursery)
            except SealBroken:  # the new courier says so in the log
                self.add(endpoint)

    def remove(self, endpoint_rowid: int) -> None:
        """Stop delivering to an endpoint at once, in mid-attempt too; what is pending for it is closed."""
        self._unseat(endpoint_rowid)
        self._close(endpoint_rowid)

    def probe(self, endpoint_rowid: int, position: int | None = None) -> None:
        """Send a probe at once if the circuit is open: the delivery at this position, or the oldest."""
        seat = self._seats.get(endpoint_rowid)
        if seat is not None:
            seat.courier.probe(position)

    async def first_result(self, delivery: Delivery, timeout_s: float) -> None:
        """Return when an attempt at a delivery that was just made is recorded, or it ended without one.

        Or after `timeout_s`, if that is earlier.
        """
        recorded = self._means.watched.setdefault(delivery.position, trio.Event())
        try:
            with trio.move_on_after(timeout_s):
                await recorded.wait()
        finally:
            self._means.watched.pop(delivery.position, None)

    def follow(self, commits: Commits[DeliveryCommit]) -> None:
        """Deliver what is committed from now on."""
        commits.subscribe(
            lambda commit: self.commit_nowait(commit.deliveries, commit.erased), "deliveries", "erased"
        )

    def commit_nowait(self, deliveries: Sequence[Delivery], erased: frozenset[int] = frozenset()) -> None:
        """Take note of a commit; to be called on the Trio thread, in commit order.

        Args:
            deliveries: those it made.
            erased: conversations it erased; nothing more of them is sent.
        """
        if erased:
            self._passing.forget(erased)
            for seat in self._seats.values():
                seat.courier.forget(erased)
        for delivery in deliveries:
            seated = self._seats.get(delivery.endpoint)
            if seated is not None:
                seated.courier.offer(delivery)

    def pass_on(self, event: EphemeralEvent) -> None:
        """Deliver a typing event, from memory, to the endpoints that list its type (contract 6.2.4)."""
        self._passing.pass_on(event)

    def _unseat(self, endpoint_rowid: int) -> None:
        seat = self._seats.pop(endpoint_rowid, None)
        if seat is not None:
            seat.courier.abandon()
            seat.scope.cancel()
        self._passing.remove(endpoint_rowid)

    def _close(self, endpoint_rowid: int) -> None:
        if self._nursery is not None:
            start = self._nursery.start_soon
            Context().run(start, close_endpoint, self._store, self._means.clock, endpoint_rowid)

    async def _keep(self, seat: _Seat, previous: _Seat | None) -> None:
        """Run the seat's courier; after a failure a new one, which begins with the pending rows."""
        try:
            if previous is not None:
                await previous.gone.wait()
            with seat.scope:
                while True:
                    await run_isolated(seat.endpoint, seat.courier.run)
                    await trio.sleep(RESTART_PAUSE_S)
                    seat.courier = EndpointWorker(seat.endpoint, self._means, seat.breaker)
        finally:
            seat.gone.set()
