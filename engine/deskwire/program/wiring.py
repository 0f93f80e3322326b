"""The parts of the program as the settings want them; `program` puts them together."""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

import structlog
import trio
from hypercorn.config import Config as HypercornConfig

from deskwire.config.settings import Config
from deskwire.engine.accounts.credentials import Passwords
from deskwire.engine.accounts.identity.standins import StandIns
from deskwire.engine.conversations.registry import ActorRegistry
from deskwire.engine.conversations.typing.indicator import Passing
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.limits.rate_limit import Buckets
from deskwire.engine.core.limits.sketch import Sketch
from deskwire.engine.core.sealing import Sealing
from deskwire.engine.core.secret import Keyring, Secrets, derived_key
from deskwire.engine.events.log import EventLog
from deskwire.engine.privacy.retention import Keep, Pruned, Retention
from deskwire.engine.stream.hub import Hub
from deskwire.engine.tickets.follow import TicketFollower
from deskwire.engine.uploads.links import Links
from deskwire.engine.webhooks.dispatcher import Dispatcher
from deskwire.engine.webhooks.http.address import Policy
from deskwire.engine.webhooks.http.proxy import Proxy
from deskwire.engine.webhooks.http.resolver import SystemResolver, spelled_addresses
from deskwire.engine.webhooks.retry.circuit import Rule
from deskwire.engine.webhooks.target import check_url
from deskwire.http.api.admission import Admission
from deskwire.http.api.input.multipart import OVERHEAD
from deskwire.http.api.rate_limits import RateLimits, rate_of
from deskwire.http.api.services import Limits, Webhooks
from deskwire.http.metrics.measurements import Measurements
from deskwire.http.server.certificate import Certificate
from deskwire.http.server.connections import Connections
from deskwire.http.stream.server import RealtimeStream
from deskwire.logs import setup as logs
from deskwire.program import descriptors
from deskwire.storage.backup.copies import run_copies
from deskwire.storage.store import SqliteStore

log: Final = structlog.get_logger(__name__)

_RECORDED_S: Final = 1.0
"""What a test of an endpoint waits beyond the receiver's time, for the attempt to be recorded."""


async def event_log(config: Config, store: SqliteStore) -> EventLog:
    """The log, going on behind what is stored."""
    return EventLog(
        store,
        await store.read(lambda reader: reader.last_event_position()),
        ring_events=config.log_ring_events,
        ring_bytes=config.log_ring_bytes,
    )


def directory(
    config: Config, actors: trio.Nursery, store: SqliteStore, hub: Hub, couriers: Dispatcher, links: Links
) -> ActorRegistry:
    """The conversations' actors."""
    return ActorRegistry(
        actors,
        store,
        wall_clock,
        mailbox=config.mailbox_commands,
        idle_s=config.actor_idle_s,
        live=config.actors_live,
        passing=Passing(wall_clock, hub.pass_on, couriers.pass_on),
        links=links,
        wrappers=(TicketFollower(),),
    )


def couriers(config: Config, store: SqliteStore, sealing: Sealing) -> Dispatcher:
    """The deliveries to webhooks."""
    return Dispatcher(
        store,
        wall_clock,
        sealing,
        webhook_policy(config),
        webhook_timeout_s=config.webhook_timeout_s,
        retry_after_s=config.webhook_retry_after_s,
        jitter=config.webhook_retry_jitter,
        concurrency=config.webhook_concurrency,
        waiting=config.webhook_waiting,
        rule=Rule(config.webhook_circuit_failures, config.webhook_circuit_s),
        horizon_s=min(config.webhook_horizon_s, config.event_window_s),
        catch_up_per_s=config.webhook_catch_up_per_s,
        memory_deliveries=config.webhook_memory_deliveries,
        proxy=Proxy.parse(config.webhook_proxy) if config.webhook_proxy else None,
    )


def webhook_policy(config: Config) -> Policy:
    """Which addresses webhooks may go to."""
    return Policy(allow=config.webhook_allow, allow_private=config.allow_private_webhooks)


def webhooks(config: Config, sealing: Sealing, couriers: Dispatcher) -> Webhooks:
    """What the endpoints' routes need of the deliveries."""
    policy = webhook_policy(config)
    resolver = spelled_addresses if config.webhook_proxy else SystemResolver(shared=True)
    return Webhooks(
        check_url=lambda url: check_url(url, policy, resolver),
        seal=sealing.seal,
        change=couriers.change,
        remove=couriers.remove,
        probe=couriers.probe,
        first_result=partial(couriers.first_result, timeout_s=config.webhook_timeout_s + _RECORDED_S),
    )


def limits(config: Config) -> Limits:
    """The bounds on requests."""
    return Limits(
        body_limit_bytes=config.body_limit_bytes,
        network_logs_limit_bytes=config.network_logs_limit_bytes,
        body_timeout_s=config.body_timeout_s,
        stream_token_s=config.stream_token_s,
        upload_body_bytes=config.upload_limit_bytes + OVERHEAD,
        upload_timeout_s=config.upload_timeout_s,
        cors_origins=config.cors_origins,
    )


def quotas(config: Config) -> RateLimits:
    """How often callers may call."""
    calls = rate_of(config.rate_limit_per_minute, config.rate_limit_burst)
    authorizations = rate_of(config.stream_auth_per_minute, config.stream_auth_burst)
    failures = rate_of(config.auth_failures_per_minute, config.auth_failures_per_minute)
    return RateLimits(Buckets(calls), Buckets(authorizations), Sketch(failures))


def stand_ins(store: SqliteStore, passwords: Passwords, secrets: Secrets) -> StandIns:
    """What passwords of unknown addresses are checked against."""
    return StandIns(store, passwords.cost, derived_key(secrets.current, "stand-ins"), trio.current_time)


def load(config: Config, store: SqliteStore) -> Admission:
    """How much may be under way. What the service itself has to write keeps half of the writer's queue."""
    return Admission(
        requests_max=config.requests_under_way,
        waits_max=config.feed_waits,
        bodies_bytes_max=config.request_bodies_bytes,
        writes_max=config.writer_queue // 2,
        writes=store.backlog,
    )


def stream(config: Config, store: SqliteStore, hub: Hub, keys: Keyring) -> RealtimeStream:
    """The websocket side of the stream."""
    return RealtimeStream(
        store,
        hub,
        wall_clock,
        keys=keys,
        ping_s=config.stream_ping_s,
        write_timeout_s=config.stream_write_timeout_s,
        inbound_bytes=config.stream_inbound_bytes,
        unsubscribed_s=config.stream_unsubscribed_s,
        unsubscribed_each=config.stream_unsubscribed_each,
        trusted_proxies=config.trusted_proxies,
    )


def connections(config: Config) -> Connections:
    """The clients' connections: as many as are wanted, or as file descriptors are enough for."""
    limit = descriptors.take_all()
    most = descriptors.connections(limit, config.connections)
    if most < config.connections:
        log.warning("front.few_descriptors", limit=limit, connections=most, wanted=config.connections)
    return Connections(most, config.request_bodies_bytes)


def measured(
    store: SqliteStore,
    couriers: Dispatcher,
    stream: RealtimeStream,
    certificate: Certificate | None,
    connections: Connections,
) -> Measurements:
    """Where the metrics are read."""
    return Measurements(
        commits=store.commits,
        waiting=lambda: len(store.backlog),
        scrubbing=lambda: store.scrubbing,
        scrub_delay=lambda: store.scrub_delay,
        room=store.room,
        dispatcher=couriers,
        connections=connections,
        consumers=lambda: stream.connections,
        traffic=stream.traffic,
        log_dropped=logs.dropped,
        certificate_ends=lambda: None if certificate is None else certificate.ends,
    )


def hypercorn(config: Config) -> HypercornConfig:
    """Hypercorn's settings."""
    hypercorn = HypercornConfig()
    hypercorn.errorlog = logging.getLogger("hypercorn.error")  # the log's own way, redaction included
    hypercorn.keep_alive_timeout = config.idle_connection_s
    hypercorn.include_server_header = False
    return hypercorn


def certificate(config: Config) -> Certificate | None:
    """The server's certificate, if it has one. Raises BadCertificate."""
    if config.tls_cert is None or config.tls_key is None:
        return None
    return Certificate(config.tls_cert, config.tls_key, wall_clock)


def retention(config: Config, store: SqliteStore, directory: ActorRegistry, pruned: Pruned) -> Retention:
    """What lets go of everything that has left its window."""
    keep = Keep(
        bot_only=config.bot_only_retention_s,
        day=config.retention_day_s,
        events=config.event_window_s,
        delivery_log=config.delivery_log_s,
        answers=config.idempotency_s,
        audit=config.audit_s,
    )
    return Retention(store, directory, wall_clock, keep, pruned)


async def keep_copies(config: Config) -> None:
    """Remove the copies made before upgrades when their time is over, until cancelled."""
    await run_copies(
        config.data_dir, wall_clock, kept_s=config.upgrade_copies_s, interval_s=config.retention_interval_s
    )
