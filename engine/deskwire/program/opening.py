"""Opens the configured store with the cluster membership, the bus to other nodes, and the files of uploads.

Other modules know these only by their ports; only this one knows which database they belong to.
"""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sized
from contextlib import asynccontextmanager, closing
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import structlog
import trio
from msgspec import Struct
from msgspec.structs import asdict

from deskwire.config.config import Config
from deskwire.config.locations import place_of
from deskwire.engine import ports
from deskwire.engine.cluster.cluster import Bus, Cluster, NoBus, SingleNode
from deskwire.engine.cluster.membership import ClusterMembership
from deskwire.engine.core import store as core
from deskwire.engine.core.build import version
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.counters import CommitCounters, DiskSpace, SharedCommitCounters
from deskwire.engine.core.database_identity import DatabaseIdentity
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.tasks.failure import run_with_restarts
from deskwire.engine.events.shared_log import SharedLogReader
from deskwire.engine.search.ports import SearchIndex
from deskwire.engine.uploads.ports import Files
from deskwire.program.errors import driver_needed
from deskwire.storage.file_stores import open_files
from deskwire.storage.sqlite.backup.manifest import secret_id
from deskwire.storage.sqlite.store import open_store

if TYPE_CHECKING:
    from deskwire.storage.postgres.driver.servers import Servers  # in an optional dependency

log: Final = structlog.get_logger(__name__)

_CLOSE_TIMEOUT_S: Final = 10.0  # for the database to finish pending work after an unclean stop
_HOST_CHARACTERS: Final = 40  # of the host's name in a generated node name


class RunningStore(core.Store[ports.Reader, ports.Transaction], Protocol):
    """An open store with its measurements."""

    @property
    def commits(self) -> CommitCounters:
        """Return the writer's counters."""

    @property
    def backlog(self) -> Sized:
        """Return the queue of the writer."""

    @property
    def identity(self) -> DatabaseIdentity:
        """Return the comparison of the database with the one that the installation used before."""


class OpenedStore(Struct, frozen=True, kw_only=True):
    """An open store and its companions.

    Args:
        cluster: this node and the others that share the store.
        membership: its lease, which must be run; None if the node needs none.
        leases: the storage of leases; None likewise.
        bus: the message bus to other nodes.
        heads: the store's log heads for followers, None for a single node.
        files: the files of uploads.
        index: the search index.
        scrubbing: whether bytes of erased data may still be in the storage of rows.
        scrub_delay: seconds that the oldest erased bytes have waited beyond the intended delay.
        room: the free space on the disk; None if the disk is managed elsewhere. Raises OSError.
        shared: the costs of sharing commits, None for a single node.
        messages: counters of messages to and from other nodes.
        give_up: limits pending work of the store to some seconds, after which its sessions are closed. A file needs none.
    """

    store: RunningStore
    cluster: Cluster
    membership: ClusterMembership | None
    leases: core.Store[ports.Reader, ports.Transaction] | None
    bus: Bus
    heads: core.Store[SharedLogReader, ports.Transaction] | None
    files: Files
    index: SearchIndex
    scrubbing: Callable[[], bool]
    scrub_delay: Callable[[], float]
    room: Callable[[], DiskSpace | None]
    shared: SharedCommitCounters | None = None
    messages: Callable[[], Mapping[str, int]] = dict
    give_up: Callable[[float], None] = lambda seconds: None


@asynccontextmanager
async def opened(
    config: Config, installation: Callable[[], Secrets], on_commit: Callable[[ports.Commit], None]
) -> AsyncIterator[OpenedStore]:
    """Open the configured store, and run it while the context is open.

    Args:
        installation: returns the installation's secrets.

    Raises DataDirectoryError, DatabaseUnusableError, NotAdmitted, SecretError or StartError.
    """
    if config.database_url is not None:
        async with _postgres(config, config.database_url, installation(), on_commit) as here:
            yield here
        return
    async with open_store(
        config.data_dir,
        batch=config.writer_batch,
        queue=config.writer_queue,
        readers=config.read_connections,
        on_commit=on_commit,
        read_timeout_s=config.read_timeout_s,
        upgrade_copies=config.upgrade_copies,
        serving=True,
    ) as store:
        yield OpenedStore(
            store=store,
            cluster=SingleNode(),
            membership=None,
            leases=None,
            bus=NoBus(),
            heads=None,
            files=open_files("disk", config.data_dir, None),
            index=store.index,
            scrubbing=lambda: store.scrubbing,
            scrub_delay=lambda: store.scrub_delay,
            room=store.room,
        )


@asynccontextmanager
async def _postgres(
    config: Config, url: str, installation: Secrets, on_commit: Callable[[ports.Commit], None]
) -> AsyncIterator[OpenedStore]:
    with driver_needed():
        from deskwire.storage.postgres.admin.days import add_days, add_days_ahead
        from deskwire.storage.postgres.admin.installation import InstallationIdentity, claim
        from deskwire.storage.postgres.admin.preflight import examine
        from deskwire.storage.postgres.admin.scrub import VacuumDuty
        from deskwire.storage.postgres.admin.watchdog import run_wait_watchdog, run_watchdog, watch_servers
        from deskwire.storage.postgres.bus import PostgresBus
        from deskwire.storage.postgres.commit.commit_log import clear_lanes
        from deskwire.storage.postgres.driver.servers import Servers, watched
        from deskwire.storage.postgres.driver.session import Database
        from deskwire.storage.postgres.heartbeats import HeartbeatStore
        from deskwire.storage.postgres.migrations.apply import migrate
        from deskwire.storage.postgres.search.index import PostgresIndex
        from deskwire.storage.postgres.store import open_postgres
    place, name = place_of(config.uploads_at), node_name(config)
    identity = InstallationIdentity([secret_id(each) for each in installation.known], place)
    servers = Servers()

    def prepare() -> None:
        with watched(servers, Database(url, name, servers).options("setup")):
            found = examine(url, require_sync_standby=config.require_sync_standby, servers=servers)
            for note in found.notes:
                log.warning("database.doubtful", note=note)
            for migration in migrate(url, servers=servers):
                log.info("database.migrated", name=migration)
            claim(url, identity, name, servers)
            add_days(url, servers)

    # A stop does not wait for the thread: sessions end with the process, and the server rolls their transactions back.
    await trio.to_thread.run_sync(prepare, abandon_on_cancel=True)
    async with (
        _given_up(servers) as give_up,
        open_postgres(
            url,
            node=name,
            batch=config.writer_batch,
            queue=config.writer_queue,
            readers=config.read_connections,
            on_commit=on_commit,
            read_timeout_s=config.read_timeout_s,
            servers=servers,
        ) as store,
        trio.open_nursery() as nursery,
    ):
        bus = PostgresBus(store.database)
        nursery.start_soon(run_with_restarts, "nodes.bus", bus.run)
        heartbeat_store = HeartbeatStore(store.database, nursery)
        membership = ClusterMembership(heartbeat_store, bus, name, version(), wall_clock, place)
        vacuums = VacuumDuty(url, config.scrub_s, servers)
        for duty, run in (
            ("vacuums", vacuums.run),
            ("watchdog", partial(run_watchdog, store.database)),
            ("lanes", partial(clear_lanes, store.database)),
            ("days", partial(add_days_ahead, url, servers)),
        ):
            nursery.start_soon(run_with_restarts, f"storage.{duty}", partial(membership.while_leader, run))
        nursery.start_soon(
            run_with_restarts, "storage.waits", partial(run_wait_watchdog, store.database, store.waited_s)
        )
        nursery.start_soon(run_with_restarts, "storage.servers", partial(watch_servers, store.database))
        with (
            closing(heartbeat_store),
            closing(PostgresIndex(store.database)) as index,
            closing(open_files(config.uploads_at, config.data_dir, url, servers)) as files,
        ):
            here = OpenedStore(
                store=store,
                cluster=membership,
                membership=membership,
                leases=heartbeat_store,
                bus=bus,
                heads=store,
                files=files,
                index=index,
                scrubbing=lambda: vacuums.due_since is not None,
                scrub_delay=lambda: vacuums.late_s,
                room=lambda: None,
                shared=store.shared,
                messages=lambda: asdict(bus.counters),
                give_up=give_up,
            )
            try:
                yield here
            finally:
                give_up(_CLOSE_TIMEOUT_S)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def _given_up(servers: Servers) -> AsyncIterator[Callable[[float], None]]:
    """Yield a function that closes all sessions with the database after some seconds; only its first call counts.

    A thread measures the time, because tasks that wait for the database may be shielded from cancellation.
    """
    begun, over = threading.Event(), threading.Event()

    def stop_after(seconds: float) -> None:
        if not over.wait(seconds):
            servers.stop()

    def give_up(seconds: float) -> None:
        if not begun.is_set():
            begun.set()
            threading.Thread(target=stop_after, args=(seconds,), daemon=True).start()

    try:
        yield give_up
    finally:
        over.set()


@asynccontextmanager
async def leased(membership: ClusterMembership | None) -> AsyncIterator[None]:
    """Hold this node's lease while the context is open, and release it after everything that depends on it."""
    if membership is None:
        yield
        return
    async with trio.open_nursery() as nursery:
        await nursery.start(membership.run)
        yield
        nursery.cancel_scope.cancel()


def node_name(config: Config) -> str:
    """Return the node's configured name, or a unique one."""
    if config.node is not None:
        return config.node
    host = "".join(
        each
        for each in socket.gethostname()[:_HOST_CHARACTERS]
        if each.isascii() and (each.isalnum() or each in "-.")
    )
    return f"{host.strip('-.') or 'node'}-{secrets.token_hex(3)}"
