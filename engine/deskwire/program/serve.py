"""The program as one nursery tree: storage, log, actors, deliveries and stream, HTTP front.

`serve` builds the tree from the outside in and stops it from the inside out; every step of the stop
has its own timeout. `run` adds the process: signals, messages on the terminal, the exit status.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Final

import structlog
import trio
from msgspec import Struct

from deskwire.config.config import Config
from deskwire.config.locations import shown_database
from deskwire.engine.accounts.links import hash_link_token, link_url, make_first_owner_link, new_link_token
from deskwire.engine.cluster.ports import NotAdmitted
from deskwire.engine.conversations.bulk_running import BulkRunner
from deskwire.engine.conversations.held_sending import HeldSender
from deskwire.engine.conversations.timers import SnoozeTimer, WorkflowTimer
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.commits import Subscribers
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.tasks.failure import run_with_restarts
from deskwire.engine.events.versions import EVENT_VERSIONS, EventVersions
from deskwire.engine.ports import Commit
from deskwire.http.api.services import Services
from deskwire.http.app import ROUTES
from deskwire.http.server.certificate import BadCertificate, Certificate
from deskwire.http.server.fast_path import FastPath
from deskwire.http.server.listener import FrontLimits, serve_front
from deskwire.http.stream.pusher import RESTARTING, SHUTTING_DOWN
from deskwire.logs.setup import say
from deskwire.program import nodes, outbound, wiring
from deskwire.program.admin_context import AdminContext
from deskwire.program.admin_socket import serve_commands
from deskwire.program.demo_password import DemoPassword, new_password
from deskwire.program.errors import StartError
from deskwire.program.first_start import (
    DEMO_FILE,
    Demo,
    exposed,
    keep_demo,
    plan_demo,
    provision_demo,
    refresh_url,
    running,
    welcome,
)
from deskwire.program.installation import settled_secrets
from deskwire.program.opening import leased, opened
from deskwire.program.parts import Parts, assemble, services_of
from deskwire.program.port import Port
from deskwire.program.process import tune_collector_for_serving
from deskwire.program.secret_file import SecretError, installation_secrets
from deskwire.program.signing import SigningError
from deskwire.program.systemd import ALONE, READY, STOPPING, ServiceManager
from deskwire.storage.postgres.driver.errors import DatabaseUnusableError
from deskwire.storage.sqlite.directory import DataDirectoryError

log: Final = structlog.get_logger(__name__)


_STREAM_SHARE: Final = 0.5  # of the stop's timeout, for requests in progress; then the streams are closed
_FRONT_SHARE: Final = (
    0.9  # of the stop's timeout, for the whole front if PostgreSQL has to respond afterwards
)
_DATABASE_SHARE: Final = 0.95  # of the stop's timeout, after which all PostgreSQL sessions are closed


class Serving(Struct, frozen=True):
    """A running service.

    Args:
        url: the URL for clients.
        demo: the demo's credentials if this start created it.
        first_owner: the link for the first account, if there is none yet.
        certificate: None for plain HTTP.
        stop: starts an orderly stop; `serve` returns at its end.
    """

    url: str
    demo: Demo | None
    certificate: Certificate | None
    _stop: trio.Event
    first_owner: str | None = None

    def stop(self) -> None:
        """Start an orderly stop."""
        self._stop.set()


async def run(
    config: Config,
    port: Port | None = None,
    manager: ServiceManager = ALONE,
    password: Callable[[], DemoPassword] | None = None,
    *,
    new_secret: bool = False,
) -> int:
    """Serve until SIGTERM or SIGINT. Return the exit status, 0 after an orderly stop. See `serve` for the arguments."""
    status = 0
    if manager.passed_over:
        log.warning("systemd.sockets_for_another", LISTEN_PID=manager.passed_over, pid=os.getpid())
    try:
        with trio.open_signal_receiver(*_signals(config)) as signals:
            async with trio.open_nursery() as nursery:
                async with trio.open_nursery() as starting:
                    starting.start_soon(_end_at_signal, signals, nursery.cancel_scope)
                    serving: Serving = await nursery.start(
                        partial(serve, config, port, password, new_secret=new_secret)
                    )
                    starting.cancel_scope.cancel()
                tune_collector_for_serving()
                say(_greeting(serving, config), sys.stdout)
                _tell(manager, READY)
                while await anext(signals) == signal.SIGHUP:
                    assert serving.certificate is not None, "the signal is handled only with a certificate"
                    serving.certificate.renew()
                log.info("program.stopping")
                _tell(manager, STOPPING)
                serving.stop()
    except* (
        BadCertificate,
        DatabaseUnusableError,
        DataDirectoryError,
        NotAdmitted,
        SecretError,
        SigningError,
        StartError,
    ) as group:
        for reason in _leaves(group):
            say(f"Deskwire can't start: {reason}", sys.stderr)
        status = 1
    return status


def _place(config: Config) -> dict[str, str]:
    """Return the location of the data for the log: the directory, or the database URL without its password."""
    if config.database_url is None:
        return {"data": str(config.data_dir)}
    return {"database": shown_database(config.database_url)}


async def _end_at_signal(signals: AsyncIterator[int], started: trio.CancelScope) -> None:
    """Cancel a start at the first terminating signal; SIGHUP is ignored, because there is nothing to reload yet."""
    while await anext(signals) == signal.SIGHUP:
        pass
    log.info("program.stopping", effect="it was not ready yet")
    started.cancel()


def _tell(manager: ServiceManager, state: str) -> None:
    """Notify the service manager. A failure is logged and does not stop the service."""
    try:
        manager.tell(state)
    except OSError as error:
        log.warning("systemd.not_told", state=state, error=str(error))


def _signals(config: Config) -> tuple[int, ...]:
    """Return the signals to handle.

    SIGHUP reloads the certificate. Without a certificate it ends the process, like the end of its terminal.
    """
    return (signal.SIGTERM, signal.SIGINT, *((signal.SIGHUP,) if config.tls_cert is not None else ()))


async def serve(
    config: Config,
    port: Port | None = None,
    password: Callable[[], DemoPassword] | None = None,
    *,
    new_secret: bool = False,
    versions: EventVersions = EVENT_VERSIONS,
    task_status: trio.TaskStatus[Serving] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Build the program and serve until `Serving.stop` is called; started when the service is ready.

    Args:
        port: the sockets, closed on return; None for the configured port.
        password: returns the demo's password, in a thread; None to generate it when needed.
        new_secret: serve a data directory even if its secret is missing or wrong.
        versions: the versions of events that webhook endpoints may be pinned to.

    Raises BadCertificate, DatabaseUnusableError, DataDirectoryError, NotAdmitted, SecretError, SigningError or StartError if
    the service can't start.
    """
    commits = Subscribers[Commit]()
    certificate = wiring.certificate(config)
    configured = partial(installation_secrets, config.data_dir, config.secret, config.secret_previous)
    async with opened(config, configured, commits.tell) as here:
        store = here.store
        if config.database_url is None:
            secrets = await settled_secrets(config, store, new_secret=new_secret)
        else:
            secrets = configured()
        parts = await assemble(config, here, secrets, commits, certificate, port, versions)
        interval_s = config.retention_interval_s
        while_leader = here.cluster.while_leader
        nodes.invalidate_with_other_nodes(parts)
        async with leased(here.membership), trio.open_nursery() as outgoing:
            await parts.lapses.start()
            await outgoing.start(parts.dispatcher.run)
            outgoing.start_soon(run_with_restarts, "webhooks.lapses", parts.lapses.run)
            if parts.endpoint_leases is not None:
                outgoing.start_soon(run_with_restarts, "webhooks.couriers", parts.endpoint_leases.run)
                outgoing.start_soon(
                    run_with_restarts,
                    "webhooks.clearing",
                    partial(while_leader, parts.endpoint_leases.clean_up),
                )
            if parts.follower is not None:
                outgoing.start_soon(run_with_restarts, "events.follower", parts.follower.run)
            if parts.relay is not None:
                outgoing.start_soon(run_with_restarts, "typing.relay", parts.relay.run)
            outgoing.start_soon(run_with_restarts, "stream.positions", parts.hub.run)
            outgoing.start_soon(run_with_restarts, "stream.flusher", parts.stream.run)
            outgoing.start_soon(run_with_restarts, "agents.streams", parts.agents.run)
            outgoing.start_soon(run_with_restarts, "customers.streams", parts.customer_streams.run)
            outgoing.start_soon(run_with_restarts, "deliveries.news", parts.delivery_notifier.run)
            outgoing.start_soon(run_with_restarts, "agents.writing", parts.writing.run)
            outgoing.start_soon(run_with_restarts, "stalls", parts.measured.stalls.run)
            outgoing.start_soon(
                run_with_restarts, "tickets.upkeep", partial(while_leader, parts.snooze_timer.run)
            )
            outgoing.start_soon(run_with_restarts, "identity.keys", parts.signing.run)
            outgoing.start_soon(run_with_restarts, "identity.oidc", parts.oidc.providers.run)
            outgoing.start_soon(
                run_with_restarts, "uploads.shelf", partial(parts.uploads.run, interval_s, here.cluster)
            )
            pusher = outbound.pusher(config, store, parts.sealing)
            outgoing.start_soon(run_with_restarts, "audit.pushes", partial(while_leader, pusher.run))
            life = wiring.session_life(config)
            pushes = outbound.push_sender(
                config, store, parts.sealing, parts.push_key, life, parts.agents, parts.measured.pushes
            )
            outgoing.start_soon(run_with_restarts, "push.sender", partial(while_leader, pushes.run))
            if parts.mailer is not None:
                mails = outbound.mail_queue(config, store, parts.mailer, parts.measured.mails)
                outgoing.start_soon(run_with_restarts, "mail.queue", partial(while_leader, mails.run))
            outgoing.start_soon(run_with_restarts, "secret.rotation", partial(parts.rotation.run, interval_s))
            outgoing.start_soon(run_with_restarts, "search.index", partial(while_leader, parts.indexer.run))
            if config.database_url is None:
                outgoing.start_soon(run_with_restarts, "upgrades.copies", partial(wiring.keep_copies, config))
            if certificate is not None:
                outgoing.start_soon(run_with_restarts, "tls.certificate", certificate.run)
            async with trio.open_nursery() as actors:
                registry = wiring.registry(
                    config,
                    actors,
                    store,
                    parts.uploads.links,
                    parts.hub,
                    parts.dispatcher,
                    parts.agents,
                    parts.customer_streams,
                    parts.relay,
                    None if parts.relay is None else here.bus,
                )
                timers = WorkflowTimer(store, wall_clock, registry)
                timers.follow(commits, "runs_due")
                wakings = SnoozeTimer(store, wall_clock, registry)
                wakings.follow(commits, "snoozes_due")
                held = HeldSender(store, wall_clock, registry)
                held.follow(commits, "held_due")
                bulk = BulkRunner(store, wall_clock, registry, parts.agents)
                bulk.follow(commits, "bulk_due")
                services = services_of(parts, actors, registry)
                actors.start_soon(run_with_restarts, "audit.refusals", services.refused_calls.run)
                retention = wiring.retention(config, store, registry, parts.measured.pruned)
                retain = partial(retention.run, interval_s)
                actors.start_soon(run_with_restarts, "retention", partial(while_leader, retain))
                clear = services.surveys.removals.clear
                actors.start_soon(run_with_restarts, "surveys.removal", partial(while_leader, clear))
                actors.start_soon(run_with_restarts, "workflows.waits", partial(while_leader, timers.run))
                actors.start_soon(
                    run_with_restarts, "conversations.wakings", partial(while_leader, wakings.run)
                )
                actors.start_soon(
                    run_with_restarts, "conversations.held_messages", partial(while_leader, held.run)
                )
                actors.start_soon(
                    run_with_restarts, "conversations.bulk_jobs", partial(while_leader, bulk.run)
                )
                nodes.share_limits(here, services)
                if here.membership is None:
                    await services.merges.resume()
                    await services.erasures.resume()
                    await services.surveys.refreshes.recover()
                else:
                    recover = services.surveys.refreshes.keep_recovering
                    actors.start_soon(run_with_restarts, "surveys.refreshes", partial(while_leader, recover))
                    merge = services.merges.keep_resuming
                    actors.start_soon(run_with_restarts, "contacts.merges", partial(while_leader, merge))
                    resume = services.erasures.keep_resuming
                    actors.start_soon(run_with_restarts, "privacy.erasures", partial(while_leader, resume))
                if here.heads is not None:
                    wiring.share_times(here.bus, commits, (parts.snooze_timer, timers, wakings, held, bulk))
                if config.database_url is None:
                    await actors.start(serve_commands, config.data_dir, _admin_context(parts, services))
                await _front(
                    parts, services, password or partial(new_password, config.argon2_memory_kib), task_status
                )
                actors.cancel_scope.cancel()
            outgoing.cancel_scope.cancel()


async def _front(
    parts: Parts,
    services: Services,
    password: Callable[[], DemoPassword],
    task_status: trio.TaskStatus[Serving],
) -> None:
    """Serve clients until the stop."""
    config, port, certificate = parts.config, parts.port, parts.certificate
    demo = await _provision(config, services, password, parts.url)
    first_owner = await _first_owner_link(config, services, parts.url)
    if open_to_others := exposed(config.data_dir):
        log.warning(
            "data.open_to_others", names=open_to_others, advice="run chmod -R go= on the data directory"
        )
    stop = trio.Event()
    fast_path = FastPath(services, ROUTES, idle_s=config.idle_connection_s)
    async with trio.open_nursery() as nursery:
        await nursery.start(
            partial(
                serve_front,
                [trio.SocketListener(trio.socket.from_stdlib_socket(each)) for each in port.sockets],
                wiring.http_server(config, services, fast_path),
                stream_handler=parts.stream.handle,
                close_streams=partial(parts.stream.close_all, RESTARTING if port.outlives else SHUTTING_DOWN),
                stop=stop,
                limits=FrontLimits(
                    write_timeout_s=config.stream_write_timeout_s,
                    requests_s=config.shutdown_s * _STREAM_SHARE,
                    shutdown_s=config.shutdown_s * (1 if config.database_url is None else _FRONT_SHARE),
                ),
                tls=None if certificate is None else certificate.context,
                connections=parts.connections,
                fast_path=fast_path,
            )
        )
        services.readiness.up = True
        log.info("program.ready", url=parts.url, **_place(config))
        if config.allow_private_webhooks:
            log.warning("webhooks.private_addresses_allowed", advice="for development only")
        task_status.started(Serving(parts.url, demo, certificate, stop, first_owner))
        await stop.wait()
        parts.here.give_up(config.shutdown_s * _DATABASE_SHARE)
        services.readiness.up = False
        async with trio.open_nursery() as goodbyes:
            for streams in (services.agents, services.customer_streams):
                streams.close_all()
                goodbyes.start_soon(streams.drain_streams)


async def _provision(
    config: Config, services: Services, password: Callable[[], DemoPassword], url: str
) -> Demo | None:
    """Create the demo at the first start. The file is written before the commit, so that no crash loses it."""
    if not config.demo or await services.store.read(InlineQuery(lambda reader: reader.has_projects())):
        refresh_url(config.data_dir, url)
        return None
    now = services.clock()
    plan = plan_demo(services.tokens, await trio.to_thread.run_sync(password), services.webhooks.seal, now)
    written = keep_demo(plan.demo, config.data_dir, url, needed=config.database_url is None)
    if not await services.store.write(lambda tx: provision_demo(tx, plan, now)):
        written.unlink(missing_ok=True)  # another node has created and shown its own demo
        return None
    return plan.demo


async def _first_owner_link(config: Config, services: Services, url: str) -> str | None:
    """Return a new one-time link for the first account; None if there is an account, or users have no passwords here."""
    if not config.own_tokens:
        return None
    if await services.store.read(InlineQuery(lambda reader: reader.has_users())):
        return None
    token, now = new_link_token(), services.clock()
    stored = await services.store.write(lambda tx: make_first_owner_link(tx, hash_link_token(token), now))
    return link_url(url, token) if stored else None


def _admin_context(parts: Parts, services: Services) -> AdminContext:
    tokens = services.tokens if parts.config.own_tokens else None
    return AdminContext(
        parts.store,
        services.clock,
        services.passwords,
        lambda: tokens,
        lambda: parts.rotation,
        services.credential_life,
        parts.url,
        outbound.test_mail_sender(parts.config, parts.url),
    )


def _greeting(serving: Serving, config: Config) -> str:
    written = config.data_dir / DEMO_FILE
    if serving.demo is None:
        return running(serving.url, written, serving.first_owner, desk=config.ui)
    return welcome(serving.demo, serving.url, written, desk=config.ui)


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
