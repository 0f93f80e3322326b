"""One process of the service: its parts as `program.serve` assembles them, from the store to the API's answers."""

from __future__ import annotations

import random
import ssl
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from deskwire.config.config import Config
from deskwire.engine.accounts.credential_ends import CredentialLife
from deskwire.engine.accounts.credentials import Passwords, Tokens
from deskwire.engine.accounts.identity.dummy_hashes import DummyHashes
from deskwire.engine.accounts.identity.oidc.provider import Providers
from deskwire.engine.accounts.identity.verifier import Verifier
from deskwire.engine.accounts.people import Project
from deskwire.engine.agents.streams import AgentStreams
from deskwire.engine.audit.refusals import RefusedCalls
from deskwire.engine.cluster.cluster import NoBus, SingleNode
from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.held_sending import HeldSender
from deskwire.engine.conversations.timers import WorkflowTimer
from deskwire.engine.conversations.typing import EphemeralPublisher
from deskwire.engine.core.commits import Subscribers
from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.values import replace
from deskwire.engine.customers.presence import ContactPresence
from deskwire.engine.customers.stream import rendered_event
from deskwire.engine.customers.streams import CustomerStreams
from deskwire.engine.customers.tokens import VisitorTokens
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.versions import EVENT_VERSIONS
from deskwire.engine.idempotency.idempotent_requests import StoredResponses
from deskwire.engine.merging.merges import Merges
from deskwire.engine.ports import Commit
from deskwire.engine.privacy.erasure import Erasures
from deskwire.engine.privacy.retention import Retention, RetentionCounters, RetentionPeriods
from deskwire.engine.push.vapid import VapidKey
from deskwire.engine.search.indexer import Indexer
from deskwire.engine.stream.channel import StreamChannel
from deskwire.engine.stream.hub import Hub
from deskwire.engine.stream.subscription import Subscription
from deskwire.engine.stream.token import Grant
from deskwire.engine.surveys.insights.refresh import Refreshes
from deskwire.engine.surveys.removal import Removals
from deskwire.engine.tickets.follow import TicketFollower
from deskwire.engine.uploads.file_store import SingleNodeFileStore
from deskwire.engine.uploads.links import Links
from deskwire.engine.uploads.service import UploadService
from deskwire.engine.voice.reply import Voice
from deskwire.engine.webhooks.dispatcher import Dispatcher
from deskwire.engine.webhooks.http.address import AddressPolicy
from deskwire.engine.webhooks.retry.circuit_breaker import CircuitRule
from deskwire.engine.webhooks.url import check_url
from deskwire.http.api.auth.credential_caches import EndedTokenCache, MachineCredentialCache, ServerKeyCache
from deskwire.http.api.auth.customers import CustomerSessions
from deskwire.http.api.auth.metrics_token import ScrapeAccess
from deskwire.http.api.auth.oidc import OidcSignIns
from deskwire.http.api.channel_cache import ChannelCache
from deskwire.http.api.output.static import DeskFiles, Lazy
from deskwire.http.api.readiness import ReadinessProbe
from deskwire.http.api.services import SecondFactors, Services, Surveys, Webhooks, WebPush
from deskwire.http.app import ROUTES
from deskwire.http.description import errors_page, permissions
from deskwire.http.description.asyncapi import document as asyncapi
from deskwire.http.description.openapi.document import description
from deskwire.http.server.adapters.quart_app import make_app
from deskwire.http.stream.server import RealtimeStream
from deskwire.http.transport.connection_slots import Connections
from deskwire.program import wiring as parts
from deskwire.program.opening import OpenedStore
from deskwire.program.wiring import voice
from deskwire.storage.files import DiskFiles
from tests.simulation.disk import Disk
from tests.simulation.judge import Judge
from tests.simulation.network import Link
from tests.support.seeing import seen
from tests.support.streaming import KEY, trio_ms

if TYPE_CHECKING:
    from tests.simulation.world import World

ADDRESS: Final = "192.0.2.200"
"""The backends' address."""
SECRET: Final = "the secret of this installation, 32 bytes"
_CONNECTION: Final[ContextVar[Link]] = ContextVar("connection")
_STOP_S: Final = 5.1
"""The time within which the streams end after a stop."""
_END_S: Final = 60.0
"""The time within which all tasks end."""
_PASSWORDS: Final = Passwords(1024)
_PROCESS: Final = SimpleNamespace(services=SimpleNamespace(limits=parts.limits(Config())))
"""The holder of the services that the app uses: there is one process at a time."""


class _Current:
    """The services of the process that is up, so that the app's routes are assembled only once."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_PROCESS.services, name)


APP: Final = make_app(cast(Services, _Current()), ROUTES)
_tls: Final = cache(partial(ssl.SSLContext, ssl.PROTOCOL_TLS_CLIENT))


@dataclass(eq=False)
class Asked:
    """A request in progress and its answer; `body` is None if no complete answer came.

    Args:
        heard: receives the pieces of an endless answer; None to keep them in `body`.
    """

    status: int = 0
    body: bytes | None = None
    replayed: bool = False
    heard: Callable[[bytes], None] | None = None
    gone: trio.Event = field(default_factory=trio.Event)
    over: trio.Event = field(default_factory=trio.Event)


class TellingHub(Hub):
    """The hub, which reports changes of holders to the judge."""

    judge: Judge

    async def subscribe(
        self, project: Project, channel: StreamChannel, grant: Grant, lost: Any
    ) -> Subscription:
        held = await super().subscribe(project, channel, grant, lost)
        self.judge.seated(_CONNECTION.get(), channel.name, grant.consumer_id)
        return held

    def leave(self, holder: Subscription, *, for_good: bool) -> None:
        super().leave(holder, for_good=for_good)
        self.judge.left(_CONNECTION.get(), holder.channel.name, for_good=for_good)


class Server:
    """One process, from `run` to `stop` or `kill`."""

    def __init__(self, world: World, path: Path) -> None:
        self.config = world.config
        self.up = False
        self._world = world
        self.disk = self._open(path)
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        config = self.config
        self.log = self._make_log()
        self._hub = self._make_hub()
        self._hub.judge = world.judge
        self.stream = RealtimeStream(self.disk, self._hub, trio_ms, keys=lambda: (KEY,))
        self._sealing = Encryption(Secrets(SECRET))
        self.dispatcher = self._make_dispatcher()
        self.answers = StoredResponses(Secrets(SECRET), trio_ms, config.idempotency_s)
        self.directory: ActorRegistry | None = None
        self.services: Services | None = None
        self._waits: WorkflowTimer | None = None
        self._held: HeldSender | None = None
        self._nursery: trio.Nursery | None = None
        self._commits: Subscribers[Commit] = Subscribers()

    def _open(self, path: Path) -> Disk:
        return Disk(path, self._world.dice, self._world.committed, self._publish)

    def _make_log(self) -> EventLog:
        last, config = seen(self.disk, lambda reader: reader.last_event_position()), self.config
        return EventLog(self.disk, last, ring_events=config.log_ring_events, ring_bytes=config.log_ring_bytes)

    def _make_hub(self) -> TellingHub:
        window_s = self.config.stream_resume_window_s
        return TellingHub(self.disk, self.log, trio_ms, resume_window_s=window_s)

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        """Serve until stopped or killed; reports `started` once it is ready."""
        with self._scope:
            async with trio.open_nursery() as storage:
                await storage.start(self.disk.run)
                async with trio.open_nursery() as outgoing:
                    await outgoing.start(self.dispatcher.run)
                    await outgoing.start(self._hub.run)
                    outgoing.start_soon(self.stream.run)
                    async with trio.open_nursery() as self._nursery:
                        await self._begin(self._nursery)
                        task_status.started()
                        await trio.sleep_forever()
                    outgoing.cancel_scope.cancel()
                storage.cancel_scope.cancel()
        self._ended.set()

    async def _begin(self, actors: trio.Nursery) -> None:
        config = self.config
        links = Links(lambda: (b"k" * 32,), "https://files.test/v3/uploads")
        self.directory = ActorRegistry(
            actors,
            self.disk,
            trio_ms,
            mailbox=config.mailbox_commands,
            idle_s=config.actor_idle_s,
            live=config.actors_live,
            publisher=EphemeralPublisher(trio_ms, self._hub.offer_ephemeral, self.dispatcher.offer_ephemeral),
            links=links,
            ticket_follower=TicketFollower(),
        )
        self._waits = WorkflowTimer(self.disk, trio_ms, self.directory)
        self._held = HeldSender(self.disk, trio_ms, self.directory)
        services = self._services(actors, self.directory, links)
        retention = self._retention(self.directory)
        actors.start_soon(retention.run, config.retention_interval_s)
        await services.merges.resume()
        await services.erasures.resume()
        actors.start_soon(self._waits.run)
        actors.start_soon(self._held.run)
        self.services = services
        self._serve_with(services)
        self.up = True

    def _serve_with(self, services: Services) -> None:
        _PROCESS.services = services
        self._app = APP

    # Connections and requests

    def connect(self, link: Link) -> None:
        """Accept a stream's connection."""
        assert self._nursery is not None
        self._nursery.start_soon(self._serve, link)

    def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        heard: Callable[[bytes], None] | None = None,
        address: str = ADDRESS,
    ) -> Asked:
        """Start a request of the API from an address; `heard` receives the pieces of a stream."""
        assert self._nursery is not None
        asked = Asked(heard=heard)
        self._nursery.start_soon(self._answer, asked, method, path, headers, body, address)
        return asked

    # Stop and kill

    async def stop(self) -> None:
        """End all streams in an orderly way, then the process."""
        self.up = False
        self.stream.close_all()
        if self.services is not None:
            self.services.customer_streams.close_all()
        await trio.sleep(_STOP_S)  # virtual time: the mock clock jumps
        if self.stream.connections:
            self._world.judge.wrong("the stop did not end the streams in time")
        assert self._nursery is not None
        self._nursery.cancel_scope.cancel()
        await self._end()

    async def kill(self) -> None:
        """End the remaining tasks of the process, whose disk has crashed."""
        self.up = False
        self._scope.cancel()
        self.disk.let_go()
        await self._end()

    async def _end(self) -> None:
        """Wait until all its tasks have ended. Raises trio.TooSlowError if they never do."""
        with trio.fail_after(_END_S):
            await self._ended.wait()

    def over_bounds(self) -> list[str]:
        """Return the sizes that exceed their bounds."""
        config, live = self.config, 0 if self.directory is None else len(self.directory)
        held = max((supervised.worker.held for supervised in self.dispatcher._workers.values()), default=0)
        sizes = {
            "actors": (live, config.actors_live),
            "ring": (len(self.log._order), config.log_ring_events),
            "ring's bytes": (self.log._bytes, config.log_ring_bytes),
            "an endpoint's deliveries": (held, 3 * config.webhook_memory_deliveries),
            "writer's queue": (len(self.disk.backlog), config.writer_queue),
        }
        return [f"{name}: {size}, {bound} at most" for name, (size, bound) in sizes.items() if size > bound]

    async def _serve(self, link: Link) -> None:
        _CONNECTION.set(link)
        await self.stream.handle(link.server)

    async def _answer(
        self,
        asked: Asked,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        address: str = ADDRESS,
    ) -> None:
        path, _, query = path.partition("?")
        scope: Any = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            "client": (address, 4000),
            "server": ("desk.test", 80),
            "extensions": {},
        }
        coming = [{"type": "http.request", "body": body, "more_body": False}]
        pieces: list[bytes] = []

        async def receive() -> Any:
            if coming:
                return coming.pop()
            await asked.gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            await trio.lowlevel.checkpoint()
            if message["type"] == "http.response.start":
                asked.status = message["status"]
                asked.replayed = any(name == b"idempotent-replayed" for name, _ in message["headers"])
            else:
                (pieces.append if asked.heard is None or asked.status != 200 else asked.heard)(
                    message.get("body", b"")
                )
                if not message.get("more_body"):
                    asked.body = b"".join(pieces)
                    asked.over.set()

        try:
            await self._app(scope, receive, send)
        finally:
            asked.over.set()

    def _publish(self, commit: Commit) -> None:
        self._world.published(commit)
        self.log.publish(commit.events, commit.erased, commit.rewritten)
        self.dispatcher.commit_nowait(commit.deliveries, commit.erased, commit.rewritten)
        for finding in self.over_bounds():
            self._world.judge.wrong(finding)
        self._commits.tell(commit)
        self._wake(commit)

    def _wake(self, commit: Commit) -> None:
        """Wake the timers for which a commit created due work."""
        if self._waits is not None and commit.runs_due:
            self._waits.wake()
        if self._held is not None and commit.held_due:
            self._held.wake()

    # Its parts

    def _make_dispatcher(self) -> Dispatcher:
        config = self.config
        return Dispatcher(
            self.disk,
            trio_ms,
            self._sealing,
            AddressPolicy(allow_private=True),
            webhook_timeout_s=config.webhook_timeout_s,
            retry_delays_s=config.webhook_retry_after_s,
            jitter=config.webhook_retry_jitter,
            concurrency=config.webhook_concurrency,
            waiting=config.webhook_waiting,
            rule=CircuitRule(config.webhook_circuit_failures, config.webhook_circuit_s),
            horizon_s=config.webhook_horizon_s,
            catch_up_per_s=config.webhook_catch_up_per_s,
            memory_deliveries=config.webhook_memory_deliveries,
            ssl_context=_tls(),
            resolver=self._world.internet.resolve,
            rng=random.Random(self._world.dice.random()),
            cluster=self._cluster(),
        )

    def _cluster(self) -> Any:
        """Return the other nodes; None for a single one."""
        return None

    def _webhooks(self) -> Webhooks:
        made = parts.webhooks(self.config, self._sealing, self._deliverer(), EVENT_VERSIONS)
        policy, resolve = AddressPolicy(allow_private=True), self._world.internet.resolve
        return replace(made, check_url=lambda url: check_url(url, policy, resolve))

    def _deliverer(self) -> Any:
        return self.dispatcher

    def _retention(self, directory: ActorRegistry) -> Retention:
        config = self.config
        keep = RetentionPeriods(
            bot_only=config.bot_only_retention_s,
            day=config.retention_day_s,
            events=config.event_window_s,
            delivery_log=config.delivery_log_s,
            answers=config.idempotency_s,
            audit=config.audit_s,
            sessions=parts.session_life(config),
        )
        return Retention(self.disk, directory, trio_ms, keep, RetentionCounters())

    def _services(self, nursery: trio.Nursery, actors: ActorRegistry, links: Links) -> Services:
        config, tokens = self.config, Tokens(Secrets(SECRET))
        uploads = UploadService(
            self.disk,
            SingleNodeFileStore(self.disk, DiskFiles(self._world.directory)),
            trio_ms,
            links,
            limit=1,
            unattached_s=1,
        )
        agents = AgentStreams(self.disk, self.log, trio_ms)
        presence = ContactPresence(agents)
        channels = ChannelCache(self.disk)
        customers = CustomerSessions(
            self.disk,
            channels,
            VisitorTokens(lambda: (KEY,)),
            Encryption(Secrets(SECRET)),
            parts.sessions(config, self.disk),
        )
        streams = CustomerStreams(self.disk, self.log, presence, trio_ms, rendered_event)
        channels.follow(self._commits)
        customers.follow(self._commits)
        customers.follow_ends(self._commits)
        streams.follow(self._commits)
        return Services(
            store=self.disk,
            oidc=OidcSignIns(Providers(), "http://localhost/v3/auth/oidc/callback"),
            keys=ServerKeyCache(self.disk),
            machines=MachineCredentialCache(self.disk),
            channels=channels,
            sessions=parts.sessions(config, self.disk),
            ended_tokens=EndedTokenCache(self.disk),
            credential_life=CredentialLife(),
            customers=customers,
            customer_limits=parts.customer_limits_of(config, Secrets(SECRET)),
            push=WebPush(
                VapidKey(self.disk, trio_ms, Encryption(Secrets(SECRET)), None), Encryption(Secrets(SECRET))
            ),
            second_factors=SecondFactors(Encryption(Secrets(SECRET)).seal, Encryption(Secrets(SECRET)).open),
            actors=actors,
            erasures=Erasures(nursery, self.disk, trio_ms, actors),
            merges=Merges(nursery, self.disk, trio_ms, actors),
            log=self.log,
            clock=trio_ms,
            tokens=tokens,
            verifier=Verifier(tokens, None),
            passwords=_PASSWORDS,
            refused_calls=RefusedCalls(self.disk),
            dummy_hashes=DummyHashes(self.disk, _PASSWORDS.cost, KEY, trio.current_time),
            webhooks=self._webhooks(),
            sites=parts.site_checks(config, "https://support.example"),
            hub=self._hub,
            agents=agents,
            customer_streams=streams,
            surveys=Surveys(Refreshes(nursery, self.disk, trio_ms, None), Removals(nursery, self.disk)),
            uploads=uploads,
            voice=self._voice(uploads),
            answers=self.answers,
            rate_limits=parts.rate_limits(config),
            admission=parts.admission(config, self.disk, SingleNode()),
            stream_keys=lambda: (KEY,),
            secrets=Secrets("a secret of a simulation"),
            limits=parts.limits(config),
            version="0",
            commit="0",
            measured=parts.measured(
                self._opened(),
                Indexer(self.disk, self.disk.index),
                self.dispatcher,
                self.stream,
                None,
                None,
                Connections(),
            ),
            scraping=ScrapeAccess(None, None, ()),
            desk=DeskFiles(shown=False),
            description=Lazy(description),
            event_description=Lazy(asyncapi.description),
            error_page=Lazy(errors_page.page),
            permission_table=Lazy(permissions.served),
            log_request=lambda *_: None,
            readiness=ReadinessProbe(self.disk, self.disk.commits),
        )

    def _opened(self) -> OpenedStore:
        return OpenedStore(
            store=self.disk,
            cluster=SingleNode(),
            membership=None,
            leases=None,
            bus=NoBus(),
            heads=None,
            files=DiskFiles(self._world.directory),
            index=self.disk.index,
            scrubbing=lambda: self.disk.scrubbing,
            scrub_delay=lambda: self.disk.scrub_delay,
            room=self.disk.room,
        )

    def _voice(self, uploads: UploadService) -> Voice:
        return voice(Config(), self.disk, uploads)
