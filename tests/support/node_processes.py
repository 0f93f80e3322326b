"""Nodes as processes of their own on one PostgreSQL, and clients of each."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import trio

from tests.plants.serving import serving
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.postgres import fresh_database
from tests.support.postgres_nodes import rows
from tests.support.sockets.server_process import Server

SETTLE_S: Final = 7.0
"""The time after which nodes judge others: each must have run for the length of a lease."""
ENVIRON: Final = {
    "DESKWIRE_SECRET": "the secret of several nodes" * 2,
    "DESKWIRE_RATE_LIMIT_PER_MINUTE": "0",
}


@dataclass
class Nodes:
    """Nodes of one database, and clients of each."""

    url: str
    servers: list[Server]
    project: str = ""
    token: str = ""
    key: str = ""
    stream_key: str = ""

    async def start(self) -> None:
        """Start all nodes in turn."""
        for server in self.servers:
            server.directory.mkdir()
            await server.start()
        demo = self.servers[0].demo()
        self.project, self.token, self.key = demo["projectId"], demo["token"], demo["serverKey"]
        self.stream_key = demo["streamKey"]

    def client(self, node: int, credential: str) -> httpx.AsyncClient:
        """Return a client of one node."""
        headers = {"Authorization": f"Bearer {credential}"}
        url = f"{self.servers[node].url}/v3"
        return httpx.AsyncClient(base_url=url, headers=headers, timeout=HANG_TIMEOUT_S, trust_env=False)

    def leased(self) -> list[str]:
        """Return the names of the nodes whose lease has not been ended."""
        return sorted(row[0] for row in rows(self.url, "SELECT node FROM nodes"))

    def lives(self) -> dict[str, int]:
        """Return the incarnation of each node that has a lease."""
        return {row[0]: row[1] for row in rows(self.url, "SELECT node, incarnation FROM nodes")}

    @contextmanager
    def stopped(self, node: int) -> Iterator[None]:
        """Stop a node with SIGSTOP for the block, and wait until it really stands still."""
        pid = self.servers[node].pid
        os.kill(pid, signal.SIGSTOP)
        try:
            while any(_state(thread) != "T" for thread in Path(f"/proc/{pid}/task").iterdir()):
                os.sched_yield()
            yield
        finally:
            os.kill(pid, signal.SIGCONT)


def _state(thread: Path) -> str:
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "T"  # it has ended, and no longer runs


@asynccontextmanager
async def running_nodes(
    directory: Path,
    names: str = "abc",
    environ: Mapping[str, str] | None = None,
    url: str | None = None,
    bug: str = "",
) -> AsyncIterator[Nodes]:
    """Start nodes with these one-letter names, on a fresh database or on that of the URL.

    Args:
        bug: a planted bug that all of them have.
    """
    if url is None:
        with fresh_database() as fresh:
            async with running_nodes(directory, names, environ, fresh, bug) as nodes:
                yield nodes
        return
    settings = {**ENVIRON, "DESKWIRE_DATABASE_URL": url, **(environ or {})}
    servers = [
        Server(
            directory / name,
            "--allow-private-webhooks",
            environ={**settings, "DESKWIRE_NODE": name},
            wrapped=serving(bug),
        )
        for name in names
    ]
    try:
        nodes = Nodes(url, servers)
        await nodes.start()
        yield nodes
    finally:
        for server in servers:
            with trio.CancelScope(shield=True):
                if server.directory.exists():
                    with suppress(ProcessLookupError, AssertionError):  # it was killed, or never started
                        os.kill(server.pid, signal.SIGCONT)
                    await server.stop()
