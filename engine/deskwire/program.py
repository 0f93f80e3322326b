"""The whole program in one nursery tree: storage, log, actors, deliveries and stream, HTTP front.

`serve` builds it from the outside in and takes it down from the inside out; every step of the way down
has a bound of its own. `run` adds what belongs to a process: signals, the words on the terminal, the
exit status.
"""

from __future__ import annotations

import gc
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Final

import structlog
import trio
from hypercorn.config import Config as HypercornConfig

from deskwire.admin.desk import Desk
from deskwire.admin.socket import serve_orders
from deskwire.config import Config
from deskwire.engine.chat import OpenAiChat
from deskwire.engine.clock import wall_clock
from deskwire.engine.credentials import Passwords
from deskwire.engine.delivery.address import Policy
from deskwire.engine.delivery.couriers import Couriers
from deskwire.engine.delivery.proxy import Proxy
from deskwire.engine.delivery.resolver import SystemResolver, spelled_addresses
from deskwire.engine.delivery.target import check_url
from deskwire.engine.directory import Directory
from deskwire.engine.erasure import Erasures
from deskwire.engine.errors import Unavailable
from deskwire.engine.indicator import Passing
from deskwire.engine.log import EventLog
from deskwire.engine.model import ChatModel
from deskwire.engine.retention import Pruned, run_retention
from deskwire.engine.sealing import Sealing, derived_key
from deskwire.engine.stream.hub import Hub
from deskwire.engine.surveys.refresh import Refreshes
from deskwire.engine.surveys.removal import Removals
from deskwire.engine.tickets.upkeep import Upkeep
from deskwire.engine.uploads.links import Links
from deskwire.engine.uploads.shelf import Shelf
from deskwire.engine.voice.reply import Voice
from deskwire.http.app import make_app
from deskwire.http.front import FrontLimits, serve_front
from deskwire.http.measured import Measured
from deskwire.http.multipart import OVERHEAD
from deskwire.http.routing import BASE
from deskwire.http.scraper import Scraping
from deskwire.http.services import Limits, Services, Surveys, Webhooks
from deskwire.http.socket import RealtimeStream
from deskwire.provision import (
    DEMO_FILE,
    Demo,
    SecretError,
    installation_secret,
    plan_demo,
    provision_demo,
    refresh_url,
)
from deskwire.signing import SigningError, signing
from deskwire.storage.database import DataDirectoryError
from deskwire.storage.files import DiskFiles
from deskwire.storage.store import SqliteStore, open_store
from deskwire.storage.writer import Commit
from deskwire.welcome import running, welcome

log: Final = structlog.get_logger(__name__)

_RECORDED_S: Final = 1.0
"""What a test of an endpoint waits beyond the receiver's time, for the attempt to be recorded."""

_STREAM_SHARE: Final = 0.5
"""Part of the stop's bound that requests under way may use; the rest is the stream's goodbye."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A service that is up.

    Args:
        url: what clients reach it by.
        demo: the demo's credentials if this start has made it.
        stop: begins an orderly stop; `serve` returns when that is done.
    """

    url: str
    demo: Demo | None
    _stop: trio.Event

    def stop(self) -> None:
        """Begin an orderly stop."""
        self._stop.set()


class StartError(Exception):
    """The service can't start; the text says why."""


async def run(config: Config) -> int:
    """Serve until SIGTERM or SIGINT; the exit status, 0 after an orderly stop."""
    status = 0
    try:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with trio.open_nursery() as nursery:
                serving: Serving = await nursery.start(serve, config)
                calm_collector()
                print(_greeting(serving, config), flush=True)
                await anext(signals)
                log.info("program.stopping")
                serving.stop()
    except* (DataDirectoryError, SecretError, SigningError, StartError) as group:
        for reason in _leaves(group):
            print(f"Deskwire can't start: {reason}", file=sys.stderr)
        status = 1
    return status


def calm_collector() -> None:
    """Keep what the start has made out of garbage collection, and collect less often.

    Measured (docs/performance.md): a quarter to two fifths more requests, and a p99 of a third to a fifth.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


async def serve(config: Config, *, task_status: trio.TaskStatus[Serving] = trio.TASK_STATUS_IGNORED) -> None:
    """Build the program and serve until `Serving.stop` is called; started when it is ready.

    Raises DataDirectoryError, SecretError, SigningError or StartError if it can't start.
    """
    tell = _Readers()
    async with _opened(config, tell) as store:
        secret = installation_secret(config.data_dir, config.secret)
        sealing, signers = Sealing(secret), signing(config, secret)
        events = _event_log(config, store)
        couriers = _couriers(config, store, sealing)
        hub = Hub(store, events, wall_clock, resume_window_s=config.stream_resume_window_s)
        upkeep = Upkeep(store, wall_clock)
        tell.log, tell.couriers, tell.upkeep = events, couriers, upkeep
        listeners = await _listen(config)
        url = config.public_url or _url(config.host, listeners[0])
        shelf = _shelf(config, store, derived_key(secret, "uploads"), url)
        await _clear(shelf)
        tell.shelf = shelf
        stream = _stream(config, store, hub, derived_key(secret, "stream"))
        measured = _measured(store, couriers, stream)
        async with trio.open_nursery() as outgoing:
            await outgoing.start(couriers.run)
            await outgoing.start(hub.run)
            outgoing.start_soon(_retain, config, store, measured.pruned)
            outgoing.start_soon(measured.stalls.run)
            outgoing.start_soon(upkeep.run)
            outgoing.start_soon(signers.run)
            outgoing.start_soon(shelf.run, config.retention_interval_s)
            async with trio.open_nursery() as actors:
                directory = _directory(config, actors, store, hub, couriers, shelf.links)
                services = Services(
                    store=store,
                    directory=directory,
                    erasures=Erasures(actors, store, directory),
                    log=events,
                    clock=wall_clock,
                    tokens=signers.tokens,
                    verifier=signers.verifier,
                    passwords=Passwords(config.argon2_memory_kib),
                    webhooks=_webhooks(config, sealing, couriers),
                    hub=hub,
                    surveys=Surveys(
                        Refreshes(actors, store, wall_clock, _model(config)), Removals(actors, store)
                    ),
                    shelf=shelf,
                    voice=_voice(config, store, shelf),
                    stream_key=derived_key(secret, "stream"),
                    limits=_limits(config),
                    version=version("deskwire"),
                    measured=measured,
                    scraping=Scraping(config.metrics_token, config.public_url),
                    sign_in=config.own_tokens,
                )
                await services.erasures.resume()
                await services.surveys.refreshes.recover()
                actors.start_soon(services.surveys.removals.clear)
                await actors.start(serve_orders, config.data_dir, _desk(config, services))
                await _front(config, services, stream, listeners, url, task_status)
                actors.cancel_scope.cancel()
            outgoing.cancel_scope.cancel()


def _opened(config: Config, tell: _Readers) -> AbstractAsyncContextManager[SqliteStore]:
    return open_store(
        config.data_dir, batch=config.writer_batch, readers=config.read_connections, on_commit=tell
    )


def _event_log(config: Config, store: SqliteStore) -> EventLog:
    return EventLog(
        store,
        store.peek(lambda reader: reader.last_event_position()),
        ring_events=config.log_ring_events,
        ring_bytes=config.log_ring_bytes,
    )


class _Readers:
    """What reads commits: set once it is there, told of each commit before its answers go out."""

    log: EventLog | None = None
    couriers: Couriers | None = None
    upkeep: Upkeep | None = None
    shelf: Shelf | None = None

    def __call__(self, commit: Commit) -> None:
        if self.log is not None:
            self.log.publish(commit.events, commit.erased)
        if self.couriers is not None:
            self.couriers.commit_nowait(commit.deliveries, commit.erased)
        if self.upkeep is not None:
            self.upkeep.note_nowait(commit.due)
        if self.shelf is not None and commit.erased:
            self.shelf.wake_nowait()


async def _listen(config: Config) -> list[trio.SocketListener]:
    """Take the port; whoever connects waits until the front is up."""
    try:
        return await trio.open_tcp_listeners(config.port, host=config.host)
    except OSError as error:
        where = f"{config.host}:{config.port}"
        raise StartError(
            f"It can't listen on {where}: {error.strerror or error}. Try another --port."
        ) from error


async def _clear(shelf: Shelf) -> None:
    try:
        await shelf.clear()
    except Unavailable as error:
        raise StartError(f"The folder of the uploads can't be used. {error}") from error


async def _front(
    config: Config,
    services: Services,
    stream: RealtimeStream,
    listeners: list[trio.SocketListener],
    url: str,
    task_status: trio.TaskStatus[Serving],
) -> None:
    """Serve until the stop."""
    demo = await _provision(config, services, url)
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(
            partial(
                serve_front,
                listeners,
                make_app(services),
                stream_handler=stream.handle,
                close_streams=stream.close_all,
                stop=stop,
                config=_hypercorn(config),
                limits=FrontLimits(
                    write_timeout_s=config.stream_write_timeout_s,
                    requests_s=config.shutdown_s * _STREAM_SHARE,
                    shutdown_s=config.shutdown_s,
                ),
            )
        )
        services.readiness.up = True
        log.info("program.ready", url=url, data=str(config.data_dir))
        if config.allow_private_webhooks:
            log.warning("webhooks.private_addresses_allowed", advice="for development only")
        task_status.started(Serving(url, demo, stop))
        await stop.wait()
        services.readiness.up = False


async def _provision(config: Config, services: Services, url: str) -> Demo | None:
    """Make the demo at the first start. Its file is there before the demo is, so that no crash loses it."""
    if not config.demo or services.store.peek(lambda reader: reader.has_projects()):
        refresh_url(config.data_dir, url)
        return None
    now = services.clock()
    plan = await trio.to_thread.run_sync(plan_demo, services.tokens, services.passwords, now)
    plan.demo.write(config.data_dir, url)
    await services.store.write(lambda tx: provision_demo(tx, plan, now))
    return plan.demo


def _directory(
    config: Config, actors: trio.Nursery, store: SqliteStore, hub: Hub, couriers: Couriers, links: Links
) -> Directory:
    return Directory(
        actors,
        store,
        wall_clock,
        mailbox=config.mailbox_commands,
        idle_s=config.actor_idle_s,
        live=config.actors_live,
        passing=Passing(wall_clock, hub.pass_on, couriers.pass_on),
        links=links,
    )


def _couriers(config: Config, store: SqliteStore, sealing: Sealing) -> Couriers:
    return Couriers(
        store,
        wall_clock,
        sealing,
        _policy(config),
        webhook_timeout_s=config.webhook_timeout_s,
        retry_after_s=config.webhook_retry_after_s,
        jitter=config.webhook_retry_jitter,
        concurrency=config.webhook_concurrency,
        window_s=config.webhook_window_s,
        memory_deliveries=config.webhook_memory_deliveries,
        proxy=Proxy.parse(config.webhook_proxy) if config.webhook_proxy else None,
    )


def _desk(config: Config, services: Services) -> Desk:
    tokens = services.tokens if config.own_tokens else None
    return Desk(services.store, services.clock, services.passwords, lambda: tokens)


def _policy(config: Config) -> Policy:
    return Policy(allow=config.webhook_allow, allow_private=config.allow_private_webhooks)


def _webhooks(config: Config, sealing: Sealing, couriers: Couriers) -> Webhooks:
    policy = _policy(config)
    resolver = spelled_addresses if config.webhook_proxy else SystemResolver()
    return Webhooks(
        check_url=lambda url: check_url(url, policy, resolver),
        seal=sealing.seal,
        add=couriers.add,
        change=couriers.change,
        remove=couriers.remove,
        probe=couriers.probe,
        first_result=partial(couriers.first_result, timeout_s=config.webhook_timeout_s + _RECORDED_S),
    )


def _model(config: Config) -> ChatModel | None:
    if config.model_url is None or config.model_name is None:
        return None
    return OpenAiChat(config.model_url, config.model_key, config.model_name, timeout_s=config.model_timeout_s)


def _limits(config: Config) -> Limits:
    return Limits(
        body_limit_bytes=config.body_limit_bytes,
        network_logs_limit_bytes=config.network_logs_limit_bytes,
        body_timeout_s=config.body_timeout_s,
        stream_token_s=config.stream_token_s,
        upload_body_bytes=config.upload_limit_bytes + OVERHEAD,
        upload_timeout_s=config.upload_timeout_s,
    )


def _stream(config: Config, store: SqliteStore, hub: Hub, key: bytes) -> RealtimeStream:
    return RealtimeStream(
        store,
        hub,
        wall_clock,
        key=key,
        ping_s=config.stream_ping_s,
        write_timeout_s=config.stream_write_timeout_s,
        inbound_bytes=config.stream_inbound_bytes,
        unsubscribed_s=config.stream_unsubscribed_s,
    )


def _shelf(config: Config, store: SqliteStore, key: bytes, url: str) -> Shelf:
    return Shelf(
        store,
        DiskFiles(config.data_dir),
        wall_clock,
        Links(key, f"{url}{BASE}/uploads", lifetime_s=config.upload_url_s),
        limit=config.upload_limit_bytes,
        unattached_s=config.upload_unattached_s,
    )


def _voice(config: Config, store: SqliteStore, shelf: Shelf) -> Voice:
    return Voice(
        store,
        shelf,
        wall_clock,
        _model(config),
        audio_bytes=config.voice_audio_bytes,
        audio_s=config.voice_audio_s,
    )


def _measured(store: SqliteStore, couriers: Couriers, stream: RealtimeStream) -> Measured:
    return Measured(
        commits=store.commits,
        waiting=lambda: store.waiting,
        room=store.room,
        couriers=couriers,
        connections=lambda: stream.connections,
        traffic=stream.traffic,
    )


def _hypercorn(config: Config) -> HypercornConfig:
    hypercorn = HypercornConfig()
    hypercorn.errorlog = logging.getLogger("hypercorn.error")  # the log's own way, redaction included
    hypercorn.keep_alive_timeout = config.idle_connection_s
    hypercorn.include_server_header = False
    return hypercorn


async def _retain(config: Config, store: SqliteStore, pruned: Pruned) -> None:
    await run_retention(
        store,
        wall_clock,
        interval_s=config.retention_interval_s,
        event_window_s=config.event_window_s,
        delivery_log_s=config.delivery_log_s,
        pruned=pruned,
    )


def _url(host: str, listener: trio.SocketListener) -> str:
    """The address to try: that of the loopback interface if it listens on all."""
    port = listener.socket.getsockname()[1]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"


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
