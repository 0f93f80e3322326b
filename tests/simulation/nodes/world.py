"""Several nodes on one database, with the clients and receivers of a life of one process; consumers there are none."""

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
"""A look at the lease that went before the record may lead to an attempt as long after it."""


class NodesWorld(World):
    """What there is; `start` brings all nodes up."""

    def __init__(self, directory: Path, dice: random.Random, nursery: trio.Nursery) -> None:
        self.nodes: list[Node] = []
        self._lives: set[int] = set()
        super().__init__(directory, dice, nursery)
        self.client.redacts = False  # the modelled log has no notes of what was rewritten
        self.client.merges = False  # nor has it a way to hold contacts
        for receiver in self.internet.receivers:
            receiver.delays = (
                ""  # deliveries that wait for it outlive the last fault by more than the rest of a life
            )
        self.database = Database(self._path, dice, self.committed)
        self.wires = Wires(dice, self.later, dice.choice((0.0, 0.3, 1.0)))
        self.order = Order(self.judge.wrong)
        self.internet.gate = open_or_stopped

    def committed(self, commit: Commit, connection: sqlite3.Connection) -> None:
        """A commit is on the disk; nobody else knows of it yet."""
        super().committed(commit, connection)
        self.order.committed(commit)
        lives = {life for (life,) in connection.execute("SELECT incarnation FROM nodes")}
        if self._lives - lives:
            self.mail.ended()  # what it had under way comes again
        self._lives = lives

    def _posting(self, receiver: Receiver, link: Link, data: bytes) -> None:
        if data.startswith(b"POST "):
            self._check_not_recorded(data)
        super()._posting(receiver, link, data)

    def _check_not_recorded(self, data: bytes) -> None:
        """A delivery that was recorded as delivered for some time is sent by nobody any more."""
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
        """The node that whoever asks next gets to; None if none is up."""
        up = self.up
        return self.dice.choice(up) if up else None

    @server.setter
    def server(self, _: object) -> None:
        pass  # of the world with one process

    @property
    def up(self) -> Sequence[Node]:
        """The nodes that are up, as a balancer knows; one that is stopped just now may be among them."""
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
        """Look into the database."""
        with closing(connect_reader(self._path)) as connection:
            self.ledger.audit(connection, settled=settled)
            self.mail.audit(connection, settled=settled)
            self.held.audit(connection, settled=settled)

    def check(self) -> None:
        """Look whether anything is too big."""
        for node in self.up:
            for finding in node.over_bounds():
                self.judge.wrong(finding)
