"""Dependencies and settings shared by all workers (decisions 6)."""

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
from deskwire.engine.events.versions import EVENT_VERSIONS, EventVersions
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.http.address import AddressPolicy, Resolver, SystemResolver
from deskwire.engine.webhooks.http.client import Client
from deskwire.engine.webhooks.http.connectors import DirectConnector, Proxy, ProxyConnector
from deskwire.engine.webhooks.ports import DeliveryReader
from deskwire.engine.webhooks.publish import HealthTransaction
from deskwire.engine.webhooks.queue.backlog import Backlog
from deskwire.engine.webhooks.queue.outbox import Outbox
from deskwire.engine.webhooks.queue.retries import Retries
from deskwire.engine.webhooks.retry.circuit_breaker import CircuitBreaker, CircuitRule
from deskwire.engine.webhooks.retry.schedule import Schedule
from deskwire.engine.webhooks.signature import SigningSecrets


def ignore_delivery(_delivery: Delivery) -> None:
    """Ignore a change of a delivery."""


class DeliveryCounters(Struct):
    """Counts since the start, for metrics.

    Typing events leave no rows, so they have counters of their own.

    Args:
        failed_attempts, paused_attempts: attempts that failed, and attempts whose response asked for a pause.
        attempt_s: durations of the attempts counted in `attempts`, in seconds.
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
    """The dispatcher's arguments and shared dependencies; see `Dispatcher`.

    Args:
        store_retry_delay_s: delay before a failed database operation is retried.
        watched: for each delivery position whose first result a caller awaits, the event to set.
        notify: called with each new delivery, and with each delivery whose attempt was recorded.
        cluster: this node and its lease. No attempt starts after the lease has expired.
        versions: the versions of events that endpoints may be pinned to.
    """

    store: Store[DeliveryReader, HealthTransaction]
    clock: Clock
    sealing: Encryption
    policy: AddressPolicy
    schedule: Schedule
    timeout_s: float
    rule: CircuitRule
    concurrency: int
    waiting: int
    catch_up_per_s: float
    memory: int
    stop_grace_s: float
    store_retry_delay_s: float
    ssl_context: ssl.SSLContext = field(default_factory=httpx.create_ssl_context)
    proxy: Proxy | None = None
    resolver: Resolver | None = None
    rng: random.Random = field(default_factory=random.Random)
    counters: DeliveryCounters = field(default_factory=DeliveryCounters)
    watched: dict[int, trio.Event] = field(default_factory=dict)
    notify: Callable[[Delivery], None] = ignore_delivery
    cluster: Cluster = field(default_factory=SingleNode)
    versions: EventVersions = EVENT_VERSIONS

    def signing(self, endpoint: Endpoint) -> SigningSecrets:
        """Return the endpoint's signing secrets.

        Raises DecryptionFailed if one can't be opened.
        """
        old = None if endpoint.old_secret is None else self.sealing.open(endpoint.old_secret)
        return SigningSecrets(self.sealing.open(endpoint.sealed_secret), old, endpoint.old_secret_until)

    def breaker(self, endpoint: Endpoint) -> CircuitBreaker:
        """Return a circuit breaker with the endpoint's stored circuit."""
        return CircuitBreaker(
            endpoint.circuit, self.rule, succeeded_at=endpoint.last_success_at, held_upto=endpoint.held_upto
        )

    def outbox(self, breaker: CircuitBreaker) -> Outbox:
        """Return an empty outbox for an endpoint with this circuit breaker."""
        return Outbox(
            self.memory,
            max(1, self.concurrency // 4),
            Retries(self.memory, self.schedule.ahead_max_ms),
            Backlog(self.catch_up_per_s, max(1, self.concurrency // 2), self.memory),
            holds=breaker.release_due or not breaker.closed,
            held_upto=breaker.held_upto,
        )

    def client(self, url: str) -> Client:
        """Return a client for one endpoint.

        It has its own resolver unless one was configured.
        """
        resolver = self.resolver or SystemResolver()
        connector = (
            DirectConnector(self.policy, resolver)
            if self.proxy is None
            else ProxyConnector(self.proxy, self.policy, resolver, self.ssl_context)
        )
        return Client(
            url, connector, ssl_context=self.ssl_context, timeout_s=self.timeout_s, clock=self.clock
        )
