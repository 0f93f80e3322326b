"""The parts that all workers share: the numbers of decisions 6, the store, and the way to receivers."""

from __future__ import annotations

import random
import ssl
from collections.abc import Callable

import httpx
import trio
from msgspec import Struct, field

from deskwire.engine.cluster.cluster import Cluster, SingleNode
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.counters import Histogram
from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.store import Store
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.health import HealthTransaction
from deskwire.engine.webhooks.http.address import Policy
from deskwire.engine.webhooks.http.client import Client
from deskwire.engine.webhooks.http.dialer import Dialer
from deskwire.engine.webhooks.http.proxy import Proxy, ProxyDialer
from deskwire.engine.webhooks.http.resolver import Resolver, SystemResolver
from deskwire.engine.webhooks.ports import DeliveryReader
from deskwire.engine.webhooks.queue.backlog import Backlog
from deskwire.engine.webhooks.queue.outbox import Outbox
from deskwire.engine.webhooks.queue.retries import Retries
from deskwire.engine.webhooks.retry.breaker import Breaker
from deskwire.engine.webhooks.retry.circuit import Rule
from deskwire.engine.webhooks.retry.schedule import Schedule
from deskwire.engine.webhooks.signature import SigningSecrets


def nobody(_delivery: Delivery) -> None:
    """Ignore what happens to a delivery."""


class Counters(Struct):
    """Counts since the start, for metrics; typing, which leaves no rows, is counted apart.

    Args:
        failed_attempts, paused_attempts: the attempts that failed, and those whose response asked for a pause.
        attempt_s: the duration of the attempts that are counted in `attempts`, in seconds.
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


class DeliveryContext(Struct, frozen=True, kw_only=True):
    """The dispatcher's arguments and the parts that are made of them; see `Dispatcher`.

    Args:
        pause_s: pause before the store is asked again after it has refused.
        watched: for each delivery whose first result is waited for, by its position, the event to set.
        note: is told of each delivery that was made, and of each whose attempt is recorded.
        cluster: this node among those that deliver; no attempt begins while its lease may not be its own.
    """

    store: Store[DeliveryReader, HealthTransaction]
    clock: Clock
    sealing: Encryption
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
    note: Callable[[Delivery], None] = nobody
    cluster: Cluster = field(default_factory=SingleNode)

    def signing(self, endpoint: Endpoint) -> SigningSecrets:
        """Return the secrets that sign the endpoint's deliveries. Raises DecryptionFailed if one can't be opened."""
        old = None if endpoint.old_secret is None else self.sealing.open(endpoint.old_secret)
        return SigningSecrets(self.sealing.open(endpoint.sealed_secret), old, endpoint.old_secret_until)

    def breaker(self, endpoint: Endpoint) -> Breaker:
        """Return a breaker with the endpoint's stored circuit."""
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
        """Return a client for one endpoint, with a resolver of its own unless one was given."""
        resolver = self.resolver or SystemResolver()
        route = (
            Dialer(self.policy, resolver)
            if self.proxy is None
            else ProxyDialer(self.proxy, self.policy, resolver, self.ssl_context)
        )
        return Client(url, route, ssl_context=self.ssl_context, timeout_s=self.timeout_s, clock=self.clock)
