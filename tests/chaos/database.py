"""A primary with a standby that follows it, each behind a relay; they change places when the primary is killed."""

from __future__ import annotations

import shutil
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Literal

import trio

from tests.chaos.network import Relay, relaying, steady_port
from tests.support.postgres import PostgresServer

_LOOK_S: Final = 0.05
_FOLLOWS_S: Final = 60.0
DATABASE: Final = "chaos"
Death = Literal["killed", "gone", "hung"]
"""How a primary ends, as its clients see it."""
_SETTINGS: Final = {"autovacuum_naptime": "5s", "wal_keep_size": "512MB"}
_FOLLOWING: Final = (
    "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = ANY('{sync,quorum}')"
)
_FOLLOWING_LATER: Final = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"


class Pair:
    """Two servers. Made by `pair`.

    Args:
        synchronous: whether a commit waits for the standby; otherwise a fail-over loses the last commits.
        nodes: the number of nodes; each has a relay of its own to either server.
    """

    def __init__(self, nodes: int, *, synchronous: bool) -> None:
        self._synchronous = synchronous
        self._servers = [PostgresServer(settings=_SETTINGS) for _ in range(2)]
        for server in self._servers:
            server.port = steady_port()
        self._primary = 0
        self.ways: Sequence[Sequence[Relay]] = [
            [Relay(partial(self._port, place)) for place in (0, 1)] for _ in range(nodes)
        ]
        """Of each node: its relays to the two servers."""
        self.replication = Relay(lambda: self.primary.port)
        """Between standby and primary."""
        self.promotions = 0

    def _port(self, place: int) -> int:
        return self._servers[place].port

    @property
    def primary(self) -> PostgresServer:
        """The server that takes writes."""
        return self._servers[self._primary]

    @property
    def standby(self) -> PostgresServer:
        """The server that follows."""
        return self._servers[1 - self._primary]

    def url(self, node: int) -> str:
        """The connection URL with both servers, for one node."""
        hosts = ",".join(f"127.0.0.1:{relay.port}" for relay in self.ways[node])
        return f"postgresql://deskwire@{hosts}/{DATABASE}"

    @property
    def direct_url(self) -> str:
        """The address of the current primary, bypassing the relays."""
        return self.primary.url(DATABASE)

    async def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Run one statement on the primary."""
        return await trio.to_thread.run_sync(self.primary.run, sql, DATABASE)

    async def begin(self) -> None:
        """Start the primary with an empty database, and its standby."""
        await trio.to_thread.run_sync(self.primary.create)
        await trio.to_thread.run_sync(self.primary.start)
        await trio.to_thread.run_sync(self.primary.run, f"CREATE DATABASE {DATABASE}")
        await self.follow()

    async def follow(self) -> None:
        """Create the standby from a copy of the primary; if synchronous, commits wait for it from then on."""
        await trio.to_thread.run_sync(self.standby.kill)  # it may hang, or be the old primary
        for relay in (self.replication, *(relay for way in self.ways for relay in way)):
            relay.appear()
        shutil.rmtree(self.standby.data, ignore_errors=True)
        await trio.to_thread.run_sync(self.standby.create_standby, self.primary)
        self.standby.settings["primary_conninfo"] = (
            f"host=127.0.0.1 port={self.replication.port} user=deskwire application_name=standby"
        )
        await trio.to_thread.run_sync(self.standby.start)
        if self._synchronous:
            await self._set_standbys("standby")
        await self.wait_until_followed()

    async def wait_until_followed(self) -> None:
        """Return once the standby has every commit, so that a fail-over loses nothing."""
        sql = _FOLLOWING if self._synchronous else _FOLLOWING_LATER
        with trio.fail_after(_FOLLOWS_S):
            while True:
                if (await self.run(sql))[0][0]:
                    return
                await trio.sleep(_LOOK_S)  # poll: there is no notification

    async def _set_standbys(self, names: str) -> None:
        await self.run(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        await self.run("SELECT pg_reload_conf()")

    async def close(self) -> None:
        """Stop both servers."""
        for server in self._servers:
            await trio.to_thread.run_sync(server.close)

    # Faults

    async def end_sessions(self) -> None:
        """End every client session with `pg_terminate_backend`."""
        await self.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )

    async def restart(self, how: signal.Signals, away_s: float) -> None:
        """Stop the primary, and start it again after a while; SIGKILL kills it."""
        end = self.primary.kill if how is signal.SIGKILL else partial(self.primary.stop, how)
        await trio.to_thread.run_sync(end)
        await trio.sleep(away_s)  # the downtime
        await trio.to_thread.run_sync(self.primary.start)

    async def fail_over(self, death: Death = "killed", *, caught_up: bool = True) -> None:
        """End the primary and promote the standby, which has no standby of its own until `follow`.

        Args:
            death: "killed" refuses connections; "gone" answers no packet, like a host without power; "hung" accepts connections and
                bytes but never responds, like a server on a stalled disk.
            caught_up: whether to wait until the standby has everything.
        """
        if caught_up:
            await self.wait_until_followed()
        if death == "hung":
            await trio.to_thread.run_sync(self.primary.hang)
        else:
            if death == "gone":
                self._vanish()
            await trio.to_thread.run_sync(self.primary.kill)
        self._primary = 1 - self._primary
        # As an HA manager does: the new primary must not wait for a standby that is not there.
        await trio.to_thread.run_sync(self.primary.promote)
        if self._synchronous:
            await trio.to_thread.run_sync(self.primary.run, "ALTER SYSTEM SET synchronous_standby_names = ''")
            await trio.to_thread.run_sync(self.primary.run, "SELECT pg_reload_conf()")
        self.promotions += 1

    def _vanish(self) -> None:
        for relay in (self.replication, *(way[self._primary] for way in self.ways)):
            relay.vanish()

    async def bring_back(self) -> None:
        """Start the old primary beside the new one, as a manager without fencing does; it waits for no standby."""
        self.standby.settings["synchronous_standby_names"] = ""
        try:
            await trio.to_thread.run_sync(self.standby.start)
        finally:
            del self.standby.settings["synchronous_standby_names"]

    def cut(self) -> None:
        """Reset every connection of every node."""
        for way in self.ways:
            for relay in way:
                relay.cut()


@asynccontextmanager
async def pair(nodes: int, *, synchronous: bool = True) -> AsyncIterator[Pair]:
    """Two servers, for the block."""
    made = Pair(nodes, synchronous=synchronous)
    async with relaying(made.replication, *(relay for way in made.ways for relay in way)):
        try:
            await made.begin()
            yield made
        finally:
            with trio.CancelScope(shield=True):
                await made.close()
