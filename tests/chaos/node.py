"""A node as a process that is restarted whenever it ends, as by a supervisor; and the load balancer of all nodes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import httpx
import trio

from tests.chaos.network import Relay, steady_port
from tests.support.sockets.server_process import EndedError, Server

_LOOK_S: Final = 0.2
_AGAIN_S: Final = 2.0
"""The supervisor's pause before it restarts a node that refused to start; `RestartSec` of docs/deploy/deskwire.service."""
_REFUSED: Final = "Deskwire can't start: The PostgreSQL "
"""Begins the last log line of a node that finds its database gone, starting or recovering."""
_STARTED_WITHIN_S: Final = 90.0
_HEALTH_S: Final = 0.5
"""Interval of the balancer's health checks."""
_HEALTHY_WITHIN_S: Final = 2.0
"""Timeout of a health check; generous because the machine may be busy."""


class Node(Server):
    """A node. `reachable` is the result of the balancer's last health check.

    Args:
        complain: called when the node ends without being stopped.
        note: called when a start takes too long; the run goes on without the node until it is ready.
    """

    def __init__(
        self,
        directory: Path,
        *options: str,
        environ: Mapping[str, str],
        complain: Callable[[str], None],
        note: Callable[[str], None],
    ) -> None:
        directory.mkdir(exist_ok=True)
        super().__init__(directory, *options, environ=environ, port=steady_port())
        self.name = directory.name
        self.reachable = False
        self.stopped = False
        self._complain = complain
        self._note = note
        self._wanted = False
        self._turn = trio.Lock()

    async def begin(self) -> None:
        """Start the node, and keep it running from now on."""
        self._wanted = True
        async with self._turn:
            await self.start()

    async def start(self) -> None:
        """Start the node and wait until it is ready; start it again if it refuses because its database is down.

        A start that takes too long, on a busy machine, is noted; the process is left running.
        """
        try:
            with trio.fail_after(_STARTED_WITHIN_S):
                while True:
                    if await self._starts():
                        return
                    await trio.sleep(_AGAIN_S)  # as a supervisor does
        except trio.TooSlowError:
            self._note(f"{self.name} was not ready after {_STARTED_WITHIN_S:.0f} s")

    async def _starts(self) -> bool:
        """Start the node; return whether it became ready."""
        try:
            await super().start()
        except EndedError:
            self._judge_end()
            return False
        return True

    def _judge_end(self) -> None:
        """Report an unexpected end, unless the last log line says that the database is down."""
        assert self._process is not None
        last = self.log().splitlines()[-1:]
        if not (last and last[0].startswith(_REFUSED)):
            self._complain(f"{self.name} ended with status {self._process.poll()}: {self.log()[-1_500:]}")

    async def watch(self) -> None:
        """Restart the node whenever it has ended, until cancelled."""
        while True:
            await trio.sleep(_LOOK_S)  # poll: there is no notification
            if not self._wanted or self._turn.locked() or self._runs():
                continue
            self._judge_end()
            await self.begin()

    def _runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def crash(self, away_s: float) -> None:
        """Kill the node, and start it again after `away_s`."""
        async with self._turn:
            await self.kill()
            self.reachable = False
            await trio.sleep(away_s)  # the downtime
            self.stopped = False
            await self.start()

    async def leave(self, away_s: float) -> int:
        """Stop the node gracefully, start it again after `away_s`, and return its exit status."""
        async with self._turn:
            status = await self.stop()
            self.reachable = False
            await trio.sleep(away_s)  # the downtime
            await self.start()
        return status

    async def pause(self, seconds: float) -> None:
        """Suspend the process for a while, with SIGSTOP."""
        async with self._turn:
            os.kill(self.pid, signal.SIGSTOP)
            self.stopped = True
            try:
                await trio.sleep(seconds)  # this is how long it is stopped
            finally:
                os.kill(self.pid, signal.SIGCONT)
                self.stopped = False

    async def finish(self) -> int:
        """Stop the node gracefully and permanently; return its exit status."""
        self._wanted = False
        async with self._turn:
            return await self.stop()


class Balancer:
    """One address for all nodes: a round-robin load balancer over those that report that they are ready."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._turn = 0
        self.relay = Relay(self._choose, patience_s=5.0)

    @property
    def url(self) -> str:
        """The address."""
        return f"http://127.0.0.1:{self.relay.port}"

    def _choose(self) -> int | None:
        ready = [node for node in self._nodes if node.reachable]
        self._turn += 1
        return ready[self._turn % len(ready)].port if ready else None

    async def all_reachable(self) -> None:
        """Return once every node is ready."""
        while True:
            if all(node.reachable for node in self._nodes):
                return
            await trio.sleep(_LOOK_S)  # poll: there is no notification

    async def watch(self) -> None:
        """Check the health of the nodes until cancelled; close connections to a node that is down."""
        async with trio.open_nursery() as nursery:
            for node in self._nodes:
                nursery.start_soon(self._ask, node)

    async def _ask(self, node: Node) -> None:
        while True:
            async with httpx.AsyncClient(trust_env=False, timeout=_HEALTHY_WITHIN_S) as http:
                try:
                    ready = (await http.get(f"{node.url}/readyz")).is_success
                except httpx.TransportError:
                    ready = False
            if node.reachable and not ready:
                self.relay.cut(node.port)
            node.reachable = ready
            await trio.sleep(_HEALTH_S)  # poll: there is no notification
