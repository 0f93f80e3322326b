"""The long-lived parts of the service, and the services of the API made from them; `serve` runs them."""

from __future__ import annotations

from math import inf
from typing import Final

import structlog
import trio
from msgspec import Struct

from deskwire.config.config import Config
from deskwire.engine.accounts.credential_ends import CredentialLife
from deskwire.engine.accounts.credentials import Passwords
from deskwire.engine.agents.streams import AgentStreams
from deskwire.engine.audit.refusals import RefusedCalls
from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.writing_events import WritingEvents
from deskwire.engine.core import build
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.commits import Subscribers
from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.secret import Secrets
from deskwire.engine.customers.streams import CustomerStreams
from deskwire.engine.customers.tokens import VISITOR_KEY, VisitorTokens
from deskwire.engine.events.follower import Follower
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.relay import TypingRelay
from deskwire.engine.events.versions import EventVersions
from deskwire.engine.idempotency.idempotent_requests import StoredResponses
from deskwire.engine.mail.queue import Mailer
from deskwire.engine.merging.merges import Merges
from deskwire.engine.ports import Commit
from deskwire.engine.privacy.erasure import Erasures
from deskwire.engine.push.vapid import VapidKey
from deskwire.engine.search.indexer import POLL_INTERVAL_S, Indexer
from deskwire.engine.stream.hub import Hub
from deskwire.engine.surveys.insights.refresh import Refreshes
from deskwire.engine.surveys.removal import Removals
from deskwire.engine.tickets.snooze import TicketSnoozeTimer
from deskwire.engine.uploads.service import UploadService
from deskwire.engine.webhooks.dispatcher import Dispatcher
from deskwire.engine.webhooks.endpoint_leases import EndpointLeases
from deskwire.engine.webhooks.notifications import DeliveryNotifier
from deskwire.engine.webhooks.ownership import LapseMonitor
from deskwire.http.api.auth.credential_caches import EndedTokenCache, MachineCredentialCache, ServerKeyCache
from deskwire.http.api.auth.customers import CustomerSessions
from deskwire.http.api.auth.metrics_token import ScrapeAccess
from deskwire.http.api.auth.oidc import OidcSignIns
from deskwire.http.api.auth.sessions import Sessions
from deskwire.http.api.channel_cache import ChannelCache
from deskwire.http.api.output.static import DeskFiles, Lazy
from deskwire.http.api.readiness import ReadinessProbe
from deskwire.http.api.services import SecondFactors, Services, Surveys, WebPush
from deskwire.http.measurements import Measurements
from deskwire.http.server.certificate import Certificate
from deskwire.http.stream.server import RealtimeStream
from deskwire.http.transport.connection_slots import Connections
from deskwire.logs.access import log_request
from deskwire.program import outbound, reference, wiring
from deskwire.program.errors import StartError
from deskwire.program.oidc import oidc_sign_ins
from deskwire.program.opening import OpenedStore, RunningStore
from deskwire.program.port import Port, advice, take
from deskwire.program.rotation import Rotation
from deskwire.program.signing import Signing, signing_of

log: Final = structlog.get_logger(__name__)


class Parts(Struct, frozen=True, kw_only=True):
    """The parts that live as long as the store, not yet running.

    Args:
        port: the listening sockets.
        url: the URL at which clients reach the service.
        certificate: None for plain HTTP.
    """

    config: Config
    here: OpenedStore
    store: RunningStore
    port: Port
    url: str
    certificate: Certificate | None
    versions: EventVersions
    secrets: Secrets
    sealing: Encryption
    rotation: Rotation
    signing: Signing
    oidc: OidcSignIns
    keys: ServerKeyCache
    machines: MachineCredentialCache
    channels: ChannelCache
    sessions: Sessions
    ended_tokens: EndedTokenCache
    customers: CustomerSessions
    events: EventLog
    follower: Follower | None
    relay: TypingRelay | None
    hub: Hub
    agents: AgentStreams
    customer_streams: CustomerStreams
    stream: RealtimeStream
    dispatcher: Dispatcher
    lapses: LapseMonitor
    endpoint_leases: EndpointLeases | None
    delivery_notifier: DeliveryNotifier
    writing: WritingEvents
    snooze_timer: TicketSnoozeTimer
    uploads: UploadService
    indexer: Indexer
    connections: Connections
    measured: Measurements
    mailer: Mailer | None
    push_key: VapidKey


async def assemble(
    config: Config,
    here: OpenedStore,
    secrets: Secrets,
    commits: Subscribers[Commit],
    certificate: Certificate | None,
    port: Port | None,
    versions: EventVersions,
) -> Parts:
    """Create the parts, subscribe them to commits, and listen.

    Args:
        port: the sockets to use; None for the configured port.
        versions: the versions of events that webhook endpoints may be pinned to.

    Raises DataDirectoryError, SigningError or StartError.
    """
    store = here.store
    rotation = Rotation.of(config, store, secrets)
    await rotation.settle()
    sealing, signing = Encryption(secrets), signing_of(config, secrets)
    events = await wiring.event_log(config, here)
    snooze_timer = TicketSnoozeTimer(store, wall_clock)
    hub = Hub(
        store,
        events,
        wall_clock,
        resume_window_s=config.stream_resume_window_s,
        nodes=None if here.heads is None else (here.cluster, here.bus),
    )
    keys, machines, sessions = (
        ServerKeyCache(store),
        MachineCredentialCache(store),
        wiring.sessions(config, store),
    )
    ended_tokens, channels = EndedTokenCache(store), ChannelCache(store)
    customers = CustomerSessions(store, channels, VisitorTokens(secrets.keys(VISITOR_KEY)), sealing, sessions)
    agents = wiring.agents(config, here, events)
    connections = wiring.connections(config)
    customer_streams = wiring.customer_streams(config, here, events, agents, connections)
    delivery_notifier = wiring.delivery_notifier(store, agents)
    dispatcher = wiring.dispatcher(config, store, sealing, delivery_notifier, here.membership, versions)
    endpoint_leases = wiring.endpoint_leases(here, dispatcher)
    lapses = wiring.lapses(store, dispatcher, commits)
    follower = wiring.follower(here, events, dispatcher, commits)
    if follower is not None:
        follower.on_log_replaced(hub.log_replaced)
    snooze_timer.follow(commits, "due")
    port = port or _taken(config)
    url = config.public_url or _url(config, port, certificate)
    keys.follow(commits)
    machines.follow(commits)
    channels.follow(commits)
    sessions.follow(commits)
    ended_tokens.follow(commits)
    customers.follow(commits)
    customers.follow_ends(commits)
    uploads = await wiring.open_uploads(config, store, here.files, secrets, url)
    stream = wiring.stream(config, here, hub, secrets.keys("stream"))
    stream.follow(commits)
    agents.follow(commits)
    customer_streams.follow(commits)
    uploads.follow(commits)
    indexer = Indexer(
        store, here.index, poll_interval_s=inf if config.database_url is None else POLL_INTERVAL_S
    )
    indexer.follow(commits)
    here.bus.receive("events", lambda _: indexer.wake_nowait())
    return Parts(
        config=config,
        here=here,
        store=store,
        port=port,
        url=url,
        certificate=certificate,
        versions=versions,
        secrets=secrets,
        sealing=sealing,
        rotation=rotation,
        signing=signing,
        oidc=oidc_sign_ins(config, url),
        keys=keys,
        machines=machines,
        channels=channels,
        sessions=sessions,
        ended_tokens=ended_tokens,
        customers=customers,
        events=events,
        follower=follower,
        relay=wiring.relay(here, hub, dispatcher, agents, customer_streams),
        hub=hub,
        agents=agents,
        customer_streams=customer_streams,
        stream=stream,
        dispatcher=dispatcher,
        endpoint_leases=endpoint_leases,
        lapses=lapses,
        delivery_notifier=delivery_notifier,
        writing=wiring.writing_events(here, agents, uploads.links, commits),
        snooze_timer=snooze_timer,
        uploads=uploads,
        indexer=indexer,
        connections=connections,
        measured=wiring.measured(here, indexer, dispatcher, stream, follower, certificate, connections),
        mailer=outbound.mailer(config, sealing, url),
        push_key=outbound.push_key(store, sealing, url),
    )


def services_of(parts: Parts, actors: trio.Nursery, registry: ActorRegistry) -> Services:
    """Return the services of the API; their tasks run in the actors' nursery."""
    config, store, secrets = parts.config, parts.store, parts.secrets
    passwords, cluster = Passwords(config.argon2_memory_kib, config.one_time_password_s), parts.here.cluster
    return Services(
        store=store,
        keys=parts.keys,
        machines=parts.machines,
        channels=parts.channels,
        sessions=parts.sessions,
        ended_tokens=parts.ended_tokens,
        credential_life=CredentialLife.of(config.credential_max_s),
        customers=parts.customers,
        customer_limits=wiring.customer_limits_of(config, secrets),
        actors=registry,
        erasures=Erasures(actors, store, wall_clock, registry, cluster),
        merges=Merges(
            actors, store, wall_clock, registry, cluster, wiring.merged_presence(parts.customer_streams)
        ),
        log=parts.events,
        clock=wall_clock,
        tokens=parts.signing.tokens,
        verifier=parts.signing.verifier,
        passwords=passwords,
        dummy_hashes=wiring.dummy_hashes(store, passwords, secrets),
        oidc=parts.oidc,
        refused_calls=RefusedCalls(store),
        second_factors=SecondFactors(parts.sealing.seal, parts.sealing.open),
        webhooks=wiring.webhooks(
            config, parts.sealing, parts.endpoint_leases or parts.dispatcher, parts.versions
        ),
        push=WebPush(parts.push_key, parts.sealing),
        sites=wiring.site_checks(config, parts.url),
        hub=parts.hub,
        agents=parts.agents,
        customer_streams=parts.customer_streams,
        surveys=Surveys(
            Refreshes(actors, store, wall_clock, wiring.model(config), cluster), Removals(actors, store)
        ),
        uploads=parts.uploads,
        voice=wiring.voice(config, store, parts.uploads),
        answers=StoredResponses(
            secrets, wall_clock, config.idempotency_s, several=parts.follower is not None
        ),
        rate_limits=wiring.rate_limits(config),
        admission=wiring.admission(config, store, cluster),
        stream_keys=secrets.keys("stream"),
        secrets=secrets,
        limits=wiring.limits(config),
        version=build.version(),
        commit=build.commit(),
        measured=parts.measured,
        scraping=ScrapeAccess(config.metrics_token, config.public_url, config.trusted_proxies),
        trusted_proxies=config.trusted_proxies,
        description=Lazy(reference.openapi),
        event_description=Lazy(reference.asyncapi),
        error_page=Lazy(reference.errors),
        permission_table=Lazy(reference.permissions),
        desk=DeskFiles(config.web_dir, shown=config.ui),
        log_request=log_request,
        readiness=ReadinessProbe(
            store,
            store.commits,
            wiring.apart(parts.here),
            parts.here.store.identity,
            lambda: parts.dispatcher.unsigned,
        ),
        cluster=cluster,
        authorization_refused=parts.stream.authorization_refused,
        sign_in=config.own_tokens,
        mailer=parts.mailer,
    )


def _taken(config: Config) -> Port:
    """Listen on the configured port; clients wait until the front is up. Raises StartError."""
    try:
        return take(config.host, config.port)
    except OSError as error:
        where = f"{config.host}:{config.port}"
        raise StartError(
            f"The service can't listen on {where}: {error.strerror or error}. {advice(error)}"
        ) from error


def _url(config: Config, port: Port, certificate: Certificate | None) -> str:
    """Return a URL for clients: the loopback interface's if the service listens on all."""
    address = port.sockets[0].getsockname()
    host = address[0] if port.outlives else config.host
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    if certificate is None:
        return f"http://{shown}:{address[1]}"
    if not certificate.covers(shown.strip("[]")):
        log.warning("tls.address_not_in_certificate", address=shown, advice="set DESKWIRE_PUBLIC_URL")
    return f"https://{shown}:{address[1]}"
