"""Several nodes on one database, with the clients and receivers of a one-process life, but no consumers."""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import trio

from deskwire.engine.ports import Commit
from deskwire.storage.sqlite.database import connect_reader
from tests.simulation.network import Link
from tests.simulation.nodes.bus import Wires
from tests.simulation.nodes.node import NODES, Node, open_or_stopped
from tests.simulation.nodes.order import Order
from tests.simulation.nodes.shared import Database
from tests.simulation.peers.receiver import Receiver
from tests.simulation.world import World
from tests.support.streaming import trio_ms

_DELIVERY: Final = re.compile(rb"(?i)service-delivery-id: (\S+)")
_KNOWN_MS: Final = 3_000
"""An attempt may follow the delivery's record by this much, because its lease was checked before that."""


class NodesWorld(World):
    """The parts of a life with several nodes; `start` starts all of them."""

    def __init__(self, directory: Path, dice: random.Random, nursery: trio.Nursery) -> None:
        self.nodes: list[Node] = []
        self._lives: set[int] = set()
        super().__init__(directory, dice, nursery)
        self.client.redacts = False  # the modelled log does not record rewritten events
        self.client.merges = False  # nor can it hold contacts
        for receiver in self.internet.receivers:
            receiver.delays = ""  # delayed deliveries would outlast the end of the life
        self.database = Database(self._path, dice, self.committed)
        self.wires = Wires(dice, self.later, dice.choice((0.0, 0.3, 1.0)))
        self.order = Order(self.judge.wrong)
        self.internet.gate = open_or_stopped

    def committed(self, commit: Commit, connection: sqlite3.Connection) -> None:
        """Pass a commit to the judges before any other code learns about it."""
        super().committed(commit, connection)
        self.order.committed(commit)
        lives = {life for (life,) in connection.execute("SELECT incarnation FROM nodes")}
        if self._lives - lives:
            self.mail.ended()  # attempts of an ended node are repeated
        self._lives = lives

    def _posting(self, receiver: Receiver, link: Link, data: bytes) -> None:
        if data.startswith(b"POST "):
            self._check_not_recorded(data)
        super()._posting(receiver, link, data)

    def _check_not_recorded(self, data: bytes) -> None:
        """Report a delivery that is sent again some time after it was recorded as delivered."""
        (found,) = _DELIVERY.findall(data) or [b""]
        with closing(connect_reader(self._path)) as connection:
            row = connection.execute(
                "SELECT ended_at FROM deliveries WHERE id = ? AND status = 'delivered'", (found.decode(),)
            ).fetchone()
        if row is not None and row[0] < trio_ms() - _KNOWN_MS:
            self.judge.wrong(
                f"{found.decode()} is sent again, {trio_ms() - row[0]} ms after it was delivered"
            )

    @property
    def server(self) -> Node | None:
        """The node that the next caller reaches; None if none is up."""
        up = self.up
        return self.dice.choice(up) if up else None

    @server.setter
    def server(self, _: object) -> None:
        pass  # used only by the world with one process

    @property
    def up(self) -> Sequence[Node]:
        """The nodes that are up for a load balancer; one that is paused may be among them."""
        return [node for node in self.nodes if node.up]

    async def start(self) -> None:
        """Start all nodes."""
        for number in range(NODES):
            await self._begin(number)

    async def _begin(self, number: int) -> None:
        node = Node(self, number)
        await self._nursery.start(node.run)
        self.nodes.append(node)

    async def kill(self, node: Node) -> None:
        """End a node's process, and start it again after a while."""
        if node not in self.nodes:
            return
        self.nodes.remove(node)
        self.judge.note(f"{node.name} ends: killed")
        await node.kill()
        await trio.sleep(self.dice.random() * 8)  # virtual time: the mock clock jumps
        await self._begin(node.number)

    def audit(self, *, recover: bool = False, settled: bool = False) -> None:
        """Check the database."""
        with closing(connect_reader(self._path)) as connection:
            self.ledger.audit(connection, settled=settled)
            self.mail.audit(connection, settled=settled)
            self.held.audit(connection, settled=settled)

    def check(self) -> None:
        """Check that no size exceeds its bound."""
        for node in self.up:
            for finding in node.over_bounds():
                self.judge.wrong(finding)
