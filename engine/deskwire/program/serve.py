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

from deskwire.commands.admin.context import AdminContext
from deskwire.commands.admin.socket import serve_commands
from deskwire.config.locations import shown_database
from deskwire.config.settings import Config
from deskwire.engine.cluster.ports import NotAdmitted
from deskwire.engine.conversations.automation.timers import WorkflowTimers
from deskwire.engine.conversations.held.sender import HeldSender
from deskwire.engine.conversations.waking import Wakings
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.commits import Subscribers
from deskwire.engine.core.store import Inline
from deskwire.engine.core.tasks.failure import kept_running
from deskwire.engine.ports import Commit
from deskwire.http.api.app import ROUTES
from deskwire.http.api.services import Services
from deskwire.http.server.certificate import BadCertificate, Certificate
from deskwire.http.server.fast_path import FastPath
from deskwire.http.server.listener import FrontLimits, serve_front
from deskwire.http.stream.pusher import RESTARTING, SHUTTING_DOWN
from deskwire.logs.setup import say
from deskwire.program import nodes, wiring
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
from deskwire.storage.postgres.driver.unusable import DatabaseUnusableError
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
        certificate: None for plain HTTP.
        stop: starts an orderly stop; `serve` returns at its end.
    """

    url: str
    demo: Demo | None
    certificate: Certificate | None
    _stop: trio.Event

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
    task_status: trio.TaskStatus[Serving] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Build the program and serve until `Serving.stop` is called; started when the service is ready.

    Args:
        port: the sockets, closed on return; None for the configured port.
        password: returns the demo's password, in a thread; None to generate it when needed.
        new_secret: serve a data directory even if its secret is missing or wrong.

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
        parts = await assemble(config, here, secrets, commits, certificate, port)
        interval_s = config.retention_interval_s
        on_duty = here.cluster.on_duty
        nodes.invalidate_with_other_nodes(parts)
        async with leased(here.membership), trio.open_nursery() as outgoing:
            await parts.lapses.begin()
            await outgoing.start(parts.dispatcher.run)
            outgoing.start_soon(kept_running, "webhooks.lapses", parts.lapses.run)
            if parts.couriers is not None:
                outgoing.start_soon(kept_running, "webhooks.couriers", parts.couriers.run)
                outgoing.start_soon(kept_running, "webhooks.clearing", partial(on_duty, parts.couriers.clear))
            if parts.follower is not None:
                outgoing.start_soon(kept_running, "events.follower", parts.follower.run)
            if parts.relay is not None:
                outgoing.start_soon(kept_running, "typing.relay", parts.relay.run)
            outgoing.start_soon(kept_running, "stream.positions", parts.hub.run)
            outgoing.start_soon(kept_running, "stream.flusher", parts.stream.run)
            outgoing.start_soon(kept_running, "agents.streams", parts.agents.run)
            outgoing.start_soon(kept_running, "deliveries.news", parts.news.run)
            outgoing.start_soon(kept_running, "agents.writing", parts.writing.run)
            outgoing.start_soon(kept_running, "stalls", parts.measured.stalls.run)
            outgoing.start_soon(kept_running, "tickets.upkeep", partial(on_duty, parts.snooze_timer.run))
            outgoing.start_soon(kept_running, "identity.keys", parts.signing.run)
            outgoing.start_soon(
                kept_running, "uploads.shelf", partial(parts.uploads.run, interval_s, here.cluster)
            )
            pusher = wiring.pusher(config, store, parts.sealing)
            outgoing.start_soon(kept_running, "audit.pushes", partial(on_duty, pusher.run))
            outgoing.start_soon(kept_running, "secret.rotation", partial(parts.rotation.run, interval_s))
            outgoing.start_soon(kept_running, "search.index", partial(on_duty, parts.indexer.run))
            if config.database_url is None:
                outgoing.start_soon(kept_running, "upgrades.copies", partial(wiring.keep_copies, config))
            if certificate is not None:
                outgoing.start_soon(kept_running, "tls.certificate", certificate.run)
            async with trio.open_nursery() as actors:
                registry = wiring.registry(
                    config,
                    actors,
                    store,
                    parts.uploads.links,
                    parts.hub,
                    parts.dispatcher,
                    parts.agents,
                    parts.relay,
                    None if parts.relay is None else here.bus,
                )
                timers = WorkflowTimers(store, wall_clock, registry)
                timers.follow(commits, "runs_due")
                wakings = Wakings(store, wall_clock, registry)
                wakings.follow(commits, "wakings_due")
                held = HeldSender(store, wall_clock, registry)
                held.follow(commits, "held_due")
                services = services_of(parts, actors, registry)
                actors.start_soon(kept_running, "audit.refusals", services.refused_calls.run)
                retention = wiring.retention(config, store, registry, parts.measured.pruned)
                retain = partial(retention.run, interval_s)
                actors.start_soon(kept_running, "retention", partial(on_duty, retain))
                clear = services.surveys.removals.clear
                actors.start_soon(kept_running, "surveys.removal", partial(on_duty, clear))
                actors.start_soon(kept_running, "workflows.waits", partial(on_duty, timers.run))
                actors.start_soon(kept_running, "conversations.wakings", partial(on_duty, wakings.run))
                actors.start_soon(kept_running, "conversations.held_messages", partial(on_duty, held.run))
                nodes.share_limits(here, services)
                if here.membership is None:
                    await services.merges.resume()
                    await services.erasures.resume()
                    await services.surveys.refreshes.recover()
                else:
                    recover = services.surveys.refreshes.keep_recovering
                    actors.start_soon(kept_running, "surveys.refreshes", partial(on_duty, recover))
                    merge = services.merges.keep_resuming
                    actors.start_soon(kept_running, "contacts.merges", partial(on_duty, merge))
                    resume = services.erasures.keep_resuming
                    actors.start_soon(kept_running, "privacy.erasures", partial(on_duty, resume))
                if here.heads is not None:
                    wiring.share_times(here.bus, commits, (parts.snooze_timer, timers, wakings, held))
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
        task_status.started(Serving(parts.url, demo, certificate, stop))
        await stop.wait()
        parts.here.give_up(config.shutdown_s * _DATABASE_SHARE)
        services.readiness.up = False
        services.agents.close_all()
        await services.agents.last_words()


async def _provision(
    config: Config, services: Services, password: Callable[[], DemoPassword], url: str
) -> Demo | None:
    """Create the demo at the first start. The file is written before the commit, so that no crash loses it."""
    if not config.demo or await services.store.read(Inline(lambda reader: reader.has_projects())):
        refresh_url(config.data_dir, url)
        return None
    now = services.clock()
    plan = plan_demo(services.tokens, await trio.to_thread.run_sync(password), now)
    written = keep_demo(plan.demo, config.data_dir, url, needed=config.database_url is None)
    if not await services.store.write(lambda tx: provision_demo(tx, plan, now)):
        written.unlink(missing_ok=True)  # another node has created and shown its own demo
        return None
    return plan.demo


def _admin_context(parts: Parts, services: Services) -> AdminContext:
    tokens = services.tokens if parts.config.own_tokens else None
    return AdminContext(
        parts.store, services.clock, services.passwords, lambda: tokens, lambda: parts.rotation
    )


def _greeting(serving: Serving, config: Config) -> str:
    written = config.data_dir / DEMO_FILE
    if serving.demo is None:
        return running(serving.url, written, desk=config.ui)
    return welcome(serving.demo, serving.url, written, desk=config.ui)


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
