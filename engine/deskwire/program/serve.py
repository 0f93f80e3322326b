"""The whole program in one nursery tree: storage, log, actors, deliveries and stream, HTTP front.

`serve` builds it from the outside in and takes it down from the inside out; every step of the way down
has a bound of its own. `run` adds what belongs to a process: signals, the words on the terminal, the
exit status.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Final

import structlog
import trio

from deskwire.commands.admin.context import AdminContext
from deskwire.commands.admin.socket import serve_orders
from deskwire.commands.reference.openapi.document import description
from deskwire.config.settings import Config
from deskwire.engine.accounts.credentials import Passwords
from deskwire.engine.conversations.automation.waits import WorkflowTimers
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.commits import Subscribers
from deskwire.engine.core.failure import kept_running
from deskwire.engine.core.sealing import Sealing
from deskwire.engine.core.store import Inline
from deskwire.engine.idempotency.once import Answers
from deskwire.engine.ports import Commit
from deskwire.engine.privacy.erasure import Erasures
from deskwire.engine.stream.hub import Hub
from deskwire.engine.surveys.insights.refresh import Refreshes
from deskwire.engine.surveys.removal import Removals
from deskwire.engine.tickets.snooze import SnoozeTimer
from deskwire.http.api.app import ROUTES, make_app
from deskwire.http.api.output.static import Once
from deskwire.http.api.server_keys import ServerKeys
from deskwire.http.api.services import Services, Surveys
from deskwire.http.metrics.scraper import Scraping
from deskwire.http.resources.service.readiness import Readiness
from deskwire.http.server.certificate import BadCertificate, Certificate
from deskwire.http.server.connections import Connections
from deskwire.http.server.fast_path import FastPath
from deskwire.http.server.listener import FrontLimits, serve_front
from deskwire.http.stream.pusher import RESTARTING, SHUTTING_DOWN
from deskwire.http.stream.server import RealtimeStream
from deskwire.logs.access import tell_request
from deskwire.logs.setup import say
from deskwire.program import wiring as parts
from deskwire.program.first_start import (
    DEMO_FILE,
    Demo,
    SecretError,
    exposed,
    installation_secrets,
    plan_demo,
    provision_demo,
    refresh_url,
    running,
    welcome,
)
from deskwire.program.memory import calm_collector
from deskwire.program.port import Port, take
from deskwire.program.rotation import Rotation
from deskwire.program.systemd import ALONE, READY, STOPPING, ServiceManager
from deskwire.storage.database import DataDirectoryError
from deskwire.storage.store import SqliteStore, open_store

log: Final = structlog.get_logger(__name__)


_STREAM_SHARE: Final = 0.5
"""Part of the stop's bound that requests under way may use; the rest is the stream's goodbye."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A service that is up.

    Args:
        url: what clients reach it by.
        demo: the demo's credentials if this start has made it.
        certificate: None for plain HTTP.
        stop: begins an orderly stop; `serve` returns when that is done.
    """

    url: str
    demo: Demo | None
    certificate: Certificate | None
    _stop: trio.Event

    def stop(self) -> None:
        """Begin an orderly stop."""
        self._stop.set()


class StartError(Exception):
    """The service can't start; the text says why."""


async def run(config: Config, port: Port | None = None, manager: ServiceManager = ALONE) -> int:
    """Serve until SIGTERM or SIGINT. Return the exit status: 0 after an orderly stop. `port` is as for `serve`."""
    status = 0
    if manager.passed_over:
        log.warning("systemd.sockets_for_another", LISTEN_PID=manager.passed_over, pid=os.getpid())
    try:
        with trio.open_signal_receiver(*_signals(config)) as signals:
            async with trio.open_nursery() as nursery:
                serving: Serving = await nursery.start(partial(serve, config, port))
                calm_collector()
                say(_greeting(serving, config), sys.stdout)
                _tell(manager, READY)
                while await anext(signals) == signal.SIGHUP:
                    assert serving.certificate is not None, "only with one is the signal taken"
                    serving.certificate.renew()
                log.info("program.stopping")
                _tell(manager, STOPPING)
                serving.stop()
    except* (BadCertificate, DataDirectoryError, SecretError, parts.SigningError, StartError) as group:
        for reason in _leaves(group):
            say(f"Deskwire can't start: {reason}", sys.stderr)
        status = 1
    return status


def _tell(manager: ServiceManager, state: str) -> None:
    """Tell the service manager; one that can't be reached is no reason to stop serving."""
    try:
        manager.tell(state)
    except OSError as error:
        log.warning("systemd.not_told", state=state, error=str(error))


def _signals(config: Config) -> tuple[int, ...]:
    """Return the signals to listen for. SIGHUP renews the certificate; without one it ends the process, as a terminal's end does."""
    return (signal.SIGTERM, signal.SIGINT, *((signal.SIGHUP,) if config.tls_cert is not None else ()))


async def serve(
    config: Config,
    port: Port | None = None,
    *,
    task_status: trio.TaskStatus[Serving] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Build the program and serve until `Serving.stop` is called; started when it is ready.

    Args:
        port: where to listen; None to take the port of the settings. It is closed on return.

    Raises BadCertificate, DataDirectoryError, SecretError, SigningError or StartError if it can't start.
    """
    commits = Subscribers[Commit]()
    certificate = parts.certificate(config)
    async with _opened(config, commits.tell) as store:
        secrets = installation_secrets(config.data_dir, config.secret, config.secret_previous)
        rotation = Rotation.of(config, store, secrets)
        await rotation.settle()
        sealing, signers = Sealing(secrets), parts.signing(config, secrets)
        events = await parts.event_log(config, store)
        dispatcher = parts.dispatcher(config, store, sealing)
        hub = Hub(store, events, wall_clock, resume_window_s=config.stream_resume_window_s)
        upkeep = SnoozeTimer(store, wall_clock)
        events.follow(commits)
        dispatcher.follow(commits)
        upkeep.follow(commits, "due")
        port = port or _taken(config)
        url = config.public_url or _url(config, port, certificate)
        keys = ServerKeys(store)
        keys.follow(commits)
        shelf = await parts.open_shelf(config, store, secrets, url)
        stream = parts.stream(config, store, hub, secrets.keys("stream"))
        stream.follow(commits)
        shelf.follow(commits)
        connections = parts.connections(config)
        measured = parts.measured(store, dispatcher, stream, certificate, connections)
        async with trio.open_nursery() as outgoing:
            await outgoing.start(dispatcher.run)
            outgoing.start_soon(kept_running, "stream.positions", hub.run)
            outgoing.start_soon(kept_running, "stream.flusher", stream.run)
            outgoing.start_soon(kept_running, "stalls", measured.stalls.run)
            outgoing.start_soon(kept_running, "tickets.upkeep", upkeep.run)
            outgoing.start_soon(kept_running, "identity.keys", signers.run)
            outgoing.start_soon(
                kept_running, "uploads.shelf", partial(shelf.run, config.retention_interval_s)
            )
            outgoing.start_soon(
                kept_running, "secret.rotation", partial(rotation.run, config.retention_interval_s)
            )
            outgoing.start_soon(kept_running, "upgrades.copies", partial(parts.keep_copies, config))
            if certificate is not None:
                outgoing.start_soon(kept_running, "tls.certificate", certificate.run)
            async with trio.open_nursery() as actors:
                directory = parts.directory(config, actors, store, hub, dispatcher, shelf.links)
                waits = WorkflowTimers(store, wall_clock, directory)
                waits.follow(commits, "runs_due")
                passwords = Passwords(config.argon2_memory_kib)
                services = Services(
                    store=store,
                    keys=keys,
                    directory=directory,
                    erasures=Erasures(actors, store, wall_clock, directory),
                    log=events,
                    clock=wall_clock,
                    tokens=signers.tokens,
                    verifier=signers.verifier,
                    passwords=passwords,
                    stand_ins=parts.stand_ins(store, passwords, secrets),
                    webhooks=parts.webhooks(config, sealing, dispatcher),
                    hub=hub,
                    surveys=Surveys(
                        Refreshes(actors, store, wall_clock, parts.model(config)), Removals(actors, store)
                    ),
                    shelf=shelf,
                    voice=parts.voice(config, store, shelf),
                    answers=Answers(secrets, wall_clock, config.idempotency_s),
                    quotas=parts.quotas(config),
                    load=parts.load(config, store),
                    stream_keys=secrets.keys("stream"),
                    limits=parts.limits(config),
                    version=version("deskwire"),
                    measured=measured,
                    scraping=Scraping(config.metrics_token, config.public_url, config.trusted_proxies),
                    trusted_proxies=config.trusted_proxies,
                    description=Once(description),
                    tell_request=tell_request,
                    readiness=Readiness(store, store.commits),
                    sign_in=config.own_tokens,
                )
                retention = parts.retention(config, store, directory, measured.pruned)
                actors.start_soon(
                    kept_running, "retention", partial(retention.run, config.retention_interval_s)
                )
                await services.erasures.resume()
                await services.surveys.refreshes.recover()
                actors.start_soon(kept_running, "surveys.removal", services.surveys.removals.clear)
                actors.start_soon(kept_running, "workflows.waits", waits.run)
                await actors.start(serve_orders, config.data_dir, _desk(config, services, rotation))
                await _front(config, services, stream, port, url, certificate, connections, task_status)
                actors.cancel_scope.cancel()
            outgoing.cancel_scope.cancel()


def _opened(config: Config, on_commit: Callable[[Commit], None]) -> AbstractAsyncContextManager[SqliteStore]:
    return open_store(
        config.data_dir,
        batch=config.writer_batch,
        queue=config.writer_queue,
        readers=config.read_connections,
        on_commit=on_commit,
        read_timeout_s=config.read_timeout_s,
        upgrade_copies=config.upgrade_copies,
    )


def _taken(config: Config) -> Port:
    """Take the port of the settings; clients that connect wait until the front is up. Raises StartError."""
    try:
        return take(config.host, config.port)
    except OSError as error:
        where = f"{config.host}:{config.port}"
        raise StartError(
            f"It can't listen on {where}: {error.strerror or error}. Try another --port."
        ) from error


async def _front(
    config: Config,
    services: Services,
    stream: RealtimeStream,
    port: Port,
    url: str,
    certificate: Certificate | None,
    connections: Connections,
    task_status: trio.TaskStatus[Serving],
) -> None:
    """Serve until the stop."""
    demo = await _provision(config, services, url)
    if open_to_others := exposed(config.data_dir):
        log.warning("data.open_to_others", names=open_to_others, advice="chmod -R go= the data directory")
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(
            partial(
                serve_front,
                [trio.SocketListener(trio.socket.from_stdlib_socket(each)) for each in port.sockets],
                make_app(services),
                stream_handler=stream.handle,
                close_streams=partial(stream.close_all, RESTARTING if port.outlives else SHUTTING_DOWN),
                stop=stop,
                config=parts.hypercorn(config),
                limits=FrontLimits(
                    head_s=config.head_timeout_s,
                    write_timeout_s=config.stream_write_timeout_s,
                    requests_s=config.shutdown_s * _STREAM_SHARE,
                    shutdown_s=config.shutdown_s,
                ),
                tls=None if certificate is None else certificate.context,
                connections=connections,
                lane=FastPath(services, ROUTES, idle_s=config.idle_connection_s),
            )
        )
        services.readiness.up = True
        log.info("program.ready", url=url, data=str(config.data_dir))
        if config.allow_private_webhooks:
            log.warning("webhooks.private_addresses_allowed", advice="for development only")
        task_status.started(Serving(url, demo, certificate, stop))
        await stop.wait()
        services.readiness.up = False


async def _provision(config: Config, services: Services, url: str) -> Demo | None:
    """Make the demo at the first start. Its file is there before the demo is, so that no crash loses it."""
    if not config.demo or await services.store.read(Inline(lambda reader: reader.has_projects())):
        refresh_url(config.data_dir, url)
        return None
    now = services.clock()
    plan = await trio.to_thread.run_sync(plan_demo, services.tokens, services.passwords, now)
    plan.demo.write(config.data_dir, url)
    await services.store.write(lambda tx: provision_demo(tx, plan, now))
    return plan.demo


def _desk(config: Config, services: Services, rotation: Rotation) -> AdminContext:
    tokens = services.tokens if config.own_tokens else None
    return AdminContext(services.store, services.clock, services.passwords, lambda: tokens, lambda: rotation)


def _url(config: Config, port: Port, certificate: Certificate | None) -> str:
    """Return the URL to try: that of the loopback interface if the service listens on all."""
    address = port.sockets[0].getsockname()
    host = address[0] if port.outlives else config.host
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    if certificate is None:
        return f"http://{shown}:{address[1]}"
    if not certificate.covers(shown.strip("[]")):
        log.warning("tls.address_not_in_certificate", address=shown, advice="set DESKWIRE_PUBLIC_URL")
    return f"https://{shown}:{address[1]}"


def _greeting(serving: Serving, config: Config) -> str:
    written = config.data_dir / DEMO_FILE
    if serving.demo is None:
        return running(serving.url, written)
    return welcome(serving.demo, serving.url, written)


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
