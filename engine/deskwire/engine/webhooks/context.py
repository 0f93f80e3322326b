"""What all couriers share: the numbers of decisions 6, and what they reach the world with."""

from __future__ import annotations

import random
import ssl
from dataclasses import dataclass, field

import httpx
import trio

from deskwire.engine.core.clock import Clock
from deskwire.engine.core.counters import Histogram
from deskwire.engine.core.sealing import Sealing
from deskwire.engine.core.store import Store
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.http.address import Policy
from deskwire.engine.webhooks.http.client import Client
from deskwire.engine.webhooks.http.dialer import Dialer
from deskwire.engine.webhooks.http.proxy import Proxy, ProxyDialer
from deskwire.engine.webhooks.http.resolver import Resolver, SystemResolver
from deskwire.engine.webhooks.ports import DeliveryReader, DeliveryTransaction
from deskwire.engine.webhooks.queue.backlog import Backlog
from deskwire.engine.webhooks.queue.outbox import Outbox
from deskwire.engine.webhooks.queue.retries import Retries
from deskwire.engine.webhooks.retry.breaker import Breaker
from deskwire.engine.webhooks.retry.circuit import Rule
from deskwire.engine.webhooks.retry.schedule import Schedule
from deskwire.engine.webhooks.signature import SigningSecrets


@dataclass(slots=True)
class Counters:
    """What has happened since the start, for metrics; typing, which leaves no rows, apart.

    Args:
        failed_attempts, paused_attempts: of the attempts those that failed, and those that were answered with a pause.
        attempt_s: how long the attempts that are counted in `attempts` took, in seconds.
    """

    attempts: int = 0
    failed_attempts: int = 0
    paused_attempts: int = 0
    delivered: int = 0
    dropped: int = 0
    skipped: int = 0
    typing_attempts: int = 0
    typing_failed_attempts: int = 0
    typing_paused_attempts: int = 0
    typing_delivered: int = 0
    typing_dropped: int = 0
    attempt_s: Histogram = field(default_factory=Histogram)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryContext:
    """See `Dispatcher` for what each of them is.

    `watched` has who waits for the first result of a delivery, by its position.
    """

    store: Store[DeliveryReader, DeliveryTransaction]
    clock: Clock
    sealing: Sealing
    policy: Policy
    schedule: Schedule
    timeout_s: float
    rule: Rule
    concurrency: int
    waiting: int
    catch_up_per_s: float
    memory: int
    stop_grace_s: float
    pause_s: float
    ssl_context: ssl.SSLContext = field(default_factory=httpx.create_ssl_context)
    proxy: Proxy | None = None
    resolver: Resolver | None = None
    rng: random.Random = field(default_factory=random.Random)
    counters: Counters = field(default_factory=Counters)
    watched: dict[int, trio.Event] = field(default_factory=dict)

    def signing(self, endpoint: Endpoint) -> SigningSecrets:
        """What signs the endpoint's deliveries. Raises SealBroken if a secret can't be opened."""
        old = None if endpoint.old_secret is None else self.sealing.open(endpoint.old_secret)
        return SigningSecrets(self.sealing.open(endpoint.sealed_secret), old, endpoint.old_secret_until)

    def breaker(self, endpoint: Endpoint) -> Breaker:
        """Return the endpoint's circuit as it is stored, at work."""
        return Breaker(
            endpoint.circuit, self.rule, succeeded_at=endpoint.last_success_at, held_upto=endpoint.held_upto
        )

    def outbox(self, breaker: Breaker) -> Outbox:
        """Return an empty outbox for an endpoint with this breaker."""
        return Outbox(
            self.memory,
            max(1, self.concurrency // 4),
            Retries(self.memory, self.schedule.ahead_max_ms),
            Backlog(self.catch_up_per_s, max(1, self.concurrency // 2), self.memory),
            holds=breaker.release_due or not breaker.closed,
            held_upto=breaker.held_upto,
        )

    def client(self, url: str) -> Client:
        """A client for one endpoint, with a resolver of its own unless one was given."""
        resolver = self.resolver or SystemResolver()
        route = (
            Dialer(self.policy, resolver)
            if self.proxy is None
            else ProxyDialer(self.proxy, self.policy, resolver, self.ssl_context)
        )
        return Client(url, route, ssl_context=self.ssl_context, timeout_s=self.timeout_s, clock=self.clock)
