"""Builds the parts of the program from the settings, one by one; `parts` assembles them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final

import structlog
import trio

from deskwire.config.config import Config
from deskwire.engine.accounts.credentials import Passwords
from deskwire.engine.accounts.identity.dummy_hashes import DummyHashes
from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.sessions import SessionLifetime
from deskwire.engine.agents.presence import ephemeral_event
from deskwire.engine.agents.streams import AgentStreams
from deskwire.engine.audit.trail import AttributedStore, ChangeOrigin
from deskwire.engine.cluster.cluster import Bus, Cluster
from deskwire.engine.contacts.contact import MergedContact
from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.typing import EphemeralPublisher
from deskwire.engine.conversations.writing_events import WritingEvents
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.commits import Subscribers
from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.limits.rate_limit import Buckets, RateLimit
from deskwire.engine.core.limits.sketch import Sketch
from deskwire.engine.core.secret import Keyring, Secrets, derived_key
from deskwire.engine.core.tasks.scheduled import ScheduledTask
from deskwire.engine.customers.limits import CustomerLimits
from deskwire.engine.customers.page_fetch import PageFetcher
from deskwire.engine.customers.presence import ContactKey, ContactPresence
from deskwire.engine.customers.proof_of_work import PROOF_KEY, ProofsOfWork
from deskwire.engine.customers.stream import rendered_event
from deskwire.engine.customers.streams import CustomerStreams
from deskwire.engine.events.follower import Follower
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.relay import TypingRelay
from deskwire.engine.events.shared_log import SharedLog
from deskwire.engine.events.types import EphemeralEvent
from deskwire.engine.events.versions import EventVersions
from deskwire.engine.llm.chat import ChatModel, OpenAiChat
from deskwire.engine.ports import Commit, Store
from deskwire.engine.privacy.retention import Retention, RetentionCounters, RetentionPeriods
from deskwire.engine.search.indexer import Indexer
from deskwire.engine.stream.hub import Hub
from deskwire.engine.tickets.follow import TicketFollower
from deskwire.engine.uploads.file_store import SharedFileStore, SingleNodeFileStore
from deskwire.engine.uploads.links import Links
from deskwire.engine.uploads.ports import Files
from deskwire.engine.uploads.service import UploadService
from deskwire.engine.voice.reply import Voice
from deskwire.engine.webhooks.delivery_follower import DeliveryFollower
from deskwire.engine.webhooks.dispatcher import Dispatcher
from deskwire.engine.webhooks.endpoint_leases import EndpointLeases
from deskwire.engine.webhooks.http.address import SystemResolver, literal_addresses
from deskwire.engine.webhooks.http.connectors import Proxy
from deskwire.engine.webhooks.notifications import DeliveryNotifier
from deskwire.engine.webhooks.ownership import LapseMonitor
from deskwire.engine.webhooks.retry.circuit_breaker import CircuitRule
from deskwire.engine.webhooks.url import check_url
from deskwire.http.api.admission import Admission
from deskwire.http.api.auth.sessions import Sessions
from deskwire.http.api.input.multipart import OVERHEAD
from deskwire.http.api.rate_limits import RateLimits, rate_of
from deskwire.http.api.routing import BASE
from deskwire.http.api.services import Limits, Services, SiteChecks, Webhooks
from deskwire.http.app import ROUTES
from deskwire.http.measurements import Measurements, NodeMeasurements
from deskwire.http.server.adapters.hypercorn import HypercornServer
from deskwire.http.server.adapters.quart_app import make_app
from deskwire.http.server.certificate import Certificate
from deskwire.http.server.fast_path import FastPath
from deskwire.http.stream.server import RealtimeStream
from deskwire.http.transport.connection_slots import Connections
from deskwire.logs import setup as logs
from deskwire.program import process
from deskwire.program.opening import OpenedStore, RunningStore
from deskwire.program.outbound import connector_of, trusted_roots, webhook_policy
from deskwire.storage.sqlite.backup.copies import run_copies
from deskwire.storage.sqlite.directory import DataDirectoryError

log: Final = structlog.get_logger(__name__)

_USERS_SHARE: Final = 5  # a user's rate limit is this fraction of a project's, by default

_CONNECTIONS_EXPECTED: Final = 10_000  # without a setting, fewer than these are worth a warning
_CUSTOMERS_SHARE: Final = 0.75  # of all connections, for streams of customers

_RECORDED_TIMEOUT_S: Final = (
    1.0  # for recording the attempt of an endpoint's test, after the receiver's timeout
)


async def event_log(config: Config, here: OpenedStore) -> EventLog:
    """Return the event log, which continues after the stored events."""
    if here.heads is not None:
        return SharedLog(here.heads, ring_events=config.log_ring_events, ring_bytes=config.log_ring_bytes)
    return EventLog(
        here.store,
        await here.store.read(lambda reader: reader.last_event_position()),
        ring_events=config.log_ring_events,
        ring_bytes=config.log_ring_bytes,
    )


def follower(
    here: OpenedStore, events: EventLog, dispatcher: Dispatcher, commits: Subscribers[Commit]
) -> Follower | None:
    """Subscribe the log and the deliveries to commits. Return the follower of other nodes' commits, if there can be any."""
    if here.heads is None or not isinstance(events, SharedLog):
        events.follow(commits)
        dispatcher.follow(commits)
        return None
    deliveries = DeliveryFollower(dispatcher, here.bus)
    found = Follower(here.heads, events, here.bus, deliveries)
    found.follow(commits)
    deliveries.follow(commits)
    return found


def relay(
    here: OpenedStore,
    hub: Hub,
    dispatcher: Dispatcher,
    agents: AgentStreams,
    customers: CustomerStreams,
) -> TypingRelay | None:
    """Return the relay of typing to and from other nodes, if there can be any."""
    if here.heads is None:
        return None

    def listening() -> Iterable[int]:
        return chain(hub.typing_projects, dispatcher.typing_projects, agents.projects, customers.projects)

    def deliver(event: EphemeralEvent) -> None:
        agents.offer_ephemeral(event)
        if not event.internal:
            hub.offer_ephemeral(event)
            customers.offer_ephemeral(event)
            dispatcher.offer_ephemeral(event)

    return TypingRelay(here.bus, here.cluster.node.name, listening, deliver)


def agents(config: Config, here: OpenedStore, events: EventLog) -> AgentStreams:
    """Return the agents' streams."""
    return AgentStreams(
        here.store,
        events,
        wall_clock,
        streams_max=config.agent_streams,
        bus=None if here.heads is None else here.bus,
        node=here.cluster.node.name,
        cluster=here.cluster,
    )


def customer_streams(
    config: Config, here: OpenedStore, events: EventLog, agents: AgentStreams, connections: Connections
) -> CustomerStreams:
    """Return the customers' streams. They leave a part of the connections to everyone else."""
    bus = None if here.heads is None else here.bus
    return CustomerStreams(
        here.store,
        events,
        ContactPresence(agents, bus, here.cluster.node.name),
        wall_clock,
        rendered_event,
        streams_max=min(config.customer_streams, int(connections.most * _CUSTOMERS_SHARE)),
        bus=bus,
        cluster=here.cluster,
    )


def registry(
    config: Config,
    actors: trio.Nursery,
    store: Store,
    links: Links,
    hub: Hub,
    dispatcher: Dispatcher,
    agents: AgentStreams,
    customers: CustomerStreams,
    relay: TypingRelay | None,
    bus: Bus | None,
) -> ActorRegistry:
    """Return the registry of conversation actors.

    Args:
        bus: to other nodes, which also change conversations; None for a single node.
    """

    def tell_agents_and_nodes(event: EphemeralEvent) -> None:
        agents.offer_ephemeral(event)
        if relay is not None:
            relay.offer(event)

    return ActorRegistry(
        actors,
        store,
        wall_clock,
        mailbox=config.mailbox_commands,
        idle_s=config.actor_idle_s,
        live=config.actors_live,
        publisher=EphemeralPublisher(
            wall_clock,
            hub.offer_ephemeral,
            customers.offer_ephemeral,
            dispatcher.offer_ephemeral,
            agents=tell_agents_and_nodes,
        ),
        links=links,
        ticket_follower=TicketFollower(),
        bus=bus,
    )


def share_times(bus: Bus, commits: Subscribers[Commit], tasks: Sequence[ScheduledTask[Any, Any]]) -> None:
    """Let other nodes wake tasks that only one node runs, when they make something due."""

    def hinted(_: bytes) -> None:
        for task in tasks:
            task.wake()

    for task in tasks:
        task.poll_for_other_nodes()
    bus.receive("due", hinted)
    commits.subscribe(
        lambda _: bus.send("due", b""), "due", "runs_due", "snoozes_due", "held_due", "bulk_due"
    )


def dispatcher(
    config: Config,
    store: Store,
    sealing: Encryption,
    notifier: DeliveryNotifier,
    cluster: Cluster | None,
    versions: EventVersions,
) -> Dispatcher:
    """Return the dispatcher of webhook deliveries, shared with the cluster's other nodes if there are any."""
    return Dispatcher(
        store,
        wall_clock,
        sealing,
        webhook_policy(config),
        webhook_timeout_s=config.webhook_timeout_s,
        retry_delays_s=config.webhook_retry_after_s,
        jitter=config.webhook_retry_jitter,
        concurrency=config.webhook_concurrency,
        waiting=config.webhook_waiting,
        rule=CircuitRule(config.webhook_circuit_failures, config.webhook_circuit_s),
        horizon_s=min(config.webhook_horizon_s, config.event_window_s),
        catch_up_per_s=config.webhook_catch_up_per_s,
        memory_deliveries=config.webhook_memory_deliveries,
        proxy=Proxy.parse(config.webhook_proxy) if config.webhook_proxy else None,
        notify=notifier.enqueue,
        cluster=cluster,
        versions=versions,
    )


def lapses(store: Store, dispatcher: Dispatcher, commits: Subscribers[Commit]) -> LapseMonitor:
    """Return the task that disables endpoints of expired machine credentials."""

    def stop(endpoint: int) -> None:
        if dispatcher.delivers_to(endpoint):
            dispatcher.remove(endpoint)

    made = LapseMonitor(
        lambda at: AttributedStore(ChangeOrigin(Actor("system"), at), store), wall_clock, stop
    )
    made.follow(commits)
    return made


def endpoint_leases(here: OpenedStore, dispatcher: Dispatcher) -> EndpointLeases | None:
    """Return the leases of the endpoints that this node delivers to; None for a single node, which delivers to all."""
    if here.membership is None or here.leases is None:
        return None
    made = EndpointLeases(here.store, here.leases, dispatcher, here.membership, here.bus, wall_clock)
    here.membership.on_nodes_changed(made.wake)
    here.membership.on_lease_lost(made.stop_all)
    return made


def delivery_notifier(store: Store, agents: AgentStreams) -> DeliveryNotifier:
    """Return the notifications about deliveries for agents who have the conversation open."""

    def tell(project: int, conversation: str, item: Mapping[str, Any]) -> None:
        event = ephemeral_event("delivery.changed", {"conversationId": conversation, **item})
        agents.broadcast(project, event, viewing=conversation)

    return DeliveryNotifier(store, wall_clock, agents, tell)


def writing_events(
    here: OpenedStore, agents: AgentStreams, links: Links, commits: Subscribers[Commit]
) -> WritingEvents:
    """Return the events of drafts and held messages, subscribed to commits."""
    bus = None if here.heads is None else here.bus
    made = WritingEvents(here.store, agents, links, wall_clock, bus)
    made.follow(commits)
    return made


def merged_presence(streams: CustomerStreams) -> Callable[[Project, MergedContact], None]:
    """Return the function by which agents' pages follow a merge of contacts."""

    def follow(project: Project, merged: MergedContact) -> None:
        source, target = (ContactKey(project.rowid, each.id) for each in (merged.source, merged.target))
        streams.presence.merged(source, target)

    return follow


def webhooks(
    config: Config, sealing: Encryption, dispatcher: Dispatcher | EndpointLeases, versions: EventVersions
) -> Webhooks:
    """Return the delivery functions for the routes of endpoints."""
    policy = webhook_policy(config)
    resolver = literal_addresses if config.webhook_proxy else SystemResolver(shared=True)
    return Webhooks(
        check_url=lambda url: check_url(url, policy, resolver),
        versions=versions,
        seal=sealing.seal,
        change=dispatcher.change,
        remove=dispatcher.remove,
        probe=dispatcher.probe,
        first_result=partial(
            dispatcher.first_result, timeout_s=config.webhook_timeout_s + _RECORDED_TIMEOUT_S
        ),
    )


def site_checks(config: Config, url: str) -> SiteChecks:
    """Return the operations on websites for the routes of channels."""
    trusted = trusted_roots()
    connector = connector_of(config, SystemResolver(shared=True), trusted)
    return SiteChecks(PageFetcher(webhook_policy(config), connector, trusted).fetch, url)


def limits(config: Config) -> Limits:
    """Return the limits on requests."""
    return Limits(
        body_limit_bytes=config.body_limit_bytes,
        network_logs_limit_bytes=config.network_logs_limit_bytes,
        body_timeout_s=config.body_timeout_s,
        stream_token_s=config.stream_token_s,
        upload_body_bytes=config.upload_limit_bytes + OVERHEAD,
        upload_timeout_s=config.upload_timeout_s,
        cors_origins=config.cors_origins,
    )


def rate_limits(config: Config) -> RateLimits:
    """Return the rate limits of callers."""
    calls = rate_of(config.rate_limit_per_minute, config.rate_limit_burst)
    users = rate_of(_calls_of_a_user(config), config.rate_limit_burst)
    authorizations = rate_of(config.stream_auth_per_minute, config.stream_auth_burst)
    failures = rate_of(config.auth_failures_per_minute, config.auth_failures_per_minute)
    members = config.members_per_hour
    added = RateLimit(members, members, minutes=60) if members else None
    return RateLimits(
        Buckets(calls), Buckets(users), Buckets(authorizations), Sketch(failures), Buckets(added)
    )


def customer_limits_of(config: Config, secrets: Secrets) -> CustomerLimits:
    """Return the limits on customers."""
    calls = rate_of(config.customer_calls_per_minute, config.customer_calls_per_minute)
    return CustomerLimits(ProofsOfWork(secrets.keys(PROOF_KEY)), Buckets(calls))


def _calls_of_a_user(config: Config) -> int:
    """Return a user's calls per minute, 0 for no limit."""
    calls = config.user_rate_limit_per_minute
    return -(-config.rate_limit_per_minute // _USERS_SHARE) if calls is None else calls


def sessions(config: Config, store: Store) -> Sessions:
    """Return the browser sessions."""
    return Sessions(
        store, session_life(config), config.public_url, config.own_tokens or bool(config.oidc_providers)
    )


def session_life(config: Config) -> SessionLifetime:
    """Return the lifetime of browser sessions."""
    return SessionLifetime(int(config.session_idle_s * 1000), int(config.session_max_s * 1000))


def dummy_hashes(store: Store, passwords: Passwords, secrets: Secrets) -> DummyHashes:
    """Return the dummy hashes for passwords of unknown addresses."""
    return DummyHashes(store, passwords.cost, derived_key(secrets.current, "stand-ins"), trio.current_time)


def admission(config: Config, store: RunningStore, cluster: Cluster) -> Admission:
    """Return the limits on work in progress. Half of the writer's queue is reserved for the service's own writes."""
    return Admission(
        requests_max=config.requests_under_way,
        waits_max=config.feed_waits,
        bodies_bytes_max=config.request_bodies_bytes,
        writes_max=config.writer_queue // 2,
        writes=store.backlog,
        cluster=cluster,
    )


def stream(config: Config, here: OpenedStore, hub: Hub, keys: Keyring) -> RealtimeStream:
    """Return the websocket side of the stream."""
    return RealtimeStream(
        here.store,
        hub,
        wall_clock,
        keys=keys,
        ping_s=config.stream_ping_s,
        write_timeout_s=config.stream_write_timeout_s,
        inbound_bytes=config.stream_inbound_bytes,
        unsubscribed_s=config.stream_unsubscribed_s,
        unsubscribed_each=config.stream_unsubscribed_each,
        trusted_proxies=config.trusted_proxies,
        bus=None if here.heads is None else here.bus,
    )


def connections(config: Config) -> Connections:
    """Return the registry of client connections, with as many as configured or as file descriptors allow."""
    limit = process.raise_descriptor_limit()
    most = process.connections_max(limit, config.connections)
    # The default is more than most installations need, so too few for it are no problem.
    configured = config.origin.get("connections", "default") != "default"
    wanted = config.connections if configured else min(config.connections, _CONNECTIONS_EXPECTED)
    if most < wanted:
        log.warning("front.few_descriptors", limit=limit, connections=most, wanted=wanted)
    return Connections(most, config.request_bodies_bytes)


def measured(
    here: OpenedStore,
    indexer: Indexer,
    dispatcher: Dispatcher,
    stream: RealtimeStream,
    follower: Follower | None,
    certificate: Certificate | None,
    connections: Connections,
) -> Measurements:
    """Return the sources of the metrics."""
    return Measurements(
        commits=here.store.commits,
        waiting=lambda: len(here.store.backlog),
        scrubbing=lambda: here.scrubbing() or indexer.scrubbing,
        scrub_delay=lambda: max(here.scrub_delay(), indexer.scrub_delay),
        indexed=indexer.progress,
        room=here.room,
        identity=here.store.identity,
        dispatcher=dispatcher,
        connections=connections,
        consumers=lambda: stream.connections,
        traffic=stream.traffic,
        deaf=stream.count_unsubscribed,
        log_dropped=logs.dropped,
        certificate_ends=lambda: None if certificate is None else certificate.ends,
        node=_node_measured(here, follower),
    )


def _node_measured(here: OpenedStore, follower: Follower | None) -> NodeMeasurements | None:
    node, shared = here.membership, here.shared
    if node is None or shared is None or follower is None:
        return None
    hints = follower.counters
    return NodeMeasurements(
        commits=shared,
        lease_s=lambda: max(0.0, node.valid_until - trio.current_time()),
        clock_offset_s=lambda: node.offset_s,
        live=lambda: node.size,
        is_leader=lambda: node.is_leader,
        behind=lambda: follower.missing_events,
        hints=lambda: {"new": hints.new, "known": hints.hints - hints.new},
        messages=here.messages,
        barrier_s=node.barriers.waited_s,
    )


def apart(here: OpenedStore) -> Callable[[], str | None]:
    """Return a function for the reason why this node can't work with the others; a single node never has one."""
    return (lambda: None) if here.membership is None else here.membership.refusal


def http_server(config: Config, services: Services, fast_path: FastPath) -> HypercornServer:
    """Return the server for requests outside of the fast path."""
    return HypercornServer(
        make_app(services, ROUTES),
        idle_s=config.idle_connection_s,
        head_s=config.head_timeout_s,
        fast_path=fast_path,
    )


def certificate(config: Config) -> Certificate | None:
    """Return the server's certificate, if configured. Raises BadCertificate."""
    if config.tls_cert is None or config.tls_key is None:
        return None
    return Certificate(config.tls_cert, config.tls_key, wall_clock)


def retention(config: Config, store: Store, directory: ActorRegistry, pruned: RetentionCounters) -> Retention:
    """Return the task that deletes everything past its retention."""
    keep = RetentionPeriods(
        bot_only=config.bot_only_retention_s,
        day=config.retention_day_s,
        events=config.event_window_s,
        delivery_log=config.delivery_log_s,
        answers=config.idempotency_s,
        audit=config.audit_s,
        sessions=session_life(config),
    )
    return Retention(store, directory, wall_clock, keep, pruned)


async def keep_copies(config: Config) -> None:
    """Delete expired copies of earlier upgrades, until cancelled."""
    await run_copies(
        config.data_dir, wall_clock, kept_s=config.upgrade_copies_s, interval_s=config.retention_interval_s
    )


async def open_uploads(
    config: Config, store: Store, files: Files, secrets: Secrets, url: str
) -> UploadService:
    """Open the upload service.

    Args:
        secrets: the installation's.
        url: the URL for clients.

    Raises DataDirectoryError if the folder can't be used.
    """
    # A node with files on its own disk is the only one that knows them.
    own = config.uploads_at == "disk"
    file_store = SingleNodeFileStore(store, files) if own else SharedFileStore(store, files, wall_clock)
    uploads = UploadService(
        store,
        file_store,
        wall_clock,
        Links(secrets.keys("uploads"), f"{url}{BASE}/uploads", lifetime_s=config.upload_url_s),
        limit=config.upload_limit_bytes,
        unattached_s=config.upload_unattached_s,
    )
    try:
        await uploads.clear()
    except Unavailable as error:
        raise DataDirectoryError(f"The folder of the uploads can't be used. {error}") from error
    return uploads


def voice(config: Config, store: Store, uploads: UploadService) -> Voice:
    """Return the maker of voice replies, with or without a model."""
    return Voice(
        store,
        uploads,
        wall_clock,
        model(config),
        audio_bytes=config.voice_audio_bytes,
        audio_s=config.voice_audio_s,
        concurrency=config.voice_at_once,
    )


def model(config: Config) -> ChatModel | None:
    """Return the language model, if configured."""
    if config.model_url is None or config.model_name is None:
        return None
    return OpenAiChat(config.model_url, config.model_key, config.model_name, timeout_s=config.model_timeout_s)
