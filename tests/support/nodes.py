"""Several nodes in one process that share a store, whose clock governs leases; each connection can be cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import trio

from deskwire.engine.cluster.membership import ClusterMembership
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.ports import Transaction
from tests.support.builders import InlineStore

T = TypeVar("T")
_START: Final = 1_800_000_000_000


def with_clock(store: InlineStore) -> InlineStore:
    """Return the SQLite store with the functions that leases need; its clock is Trio's, from some time in 2027."""
    connection = store.connection
    connection.create_function("lease_now", 0, database_clock)
    connection.create_function("clock_ms", 0, database_clock)
    connection.create_function("lease_end", 1, lambda ms: database_clock() + ms)
    connection.create_function("lease_left", 1, lambda end: end - database_clock())
    return store


def database_clock() -> int:
    return _START + round(trio.current_time() * 1000)


def advance_epoch(tx: Transaction) -> None:
    """Make all nodes clear their caches, as PostgreSQL's triggers do."""
    tx.conn.execute("UPDATE installation SET epoch = epoch + 1")  # type: ignore[attr-defined]


class Wires:
    """The buses of nodes in one process; messages arrive immediately, unless hints are `lost`."""

    def __init__(self) -> None:
        self.lost = False
        self._buses: list[WiredBus] = []

    def bus(self) -> WiredBus:
        """Return the bus of another node."""
        bus = WiredBus(self)
        self._buses.append(bus)
        return bus

    def carry(self, sender: WiredBus, kind: str, payload: bytes) -> None:
        for bus in self._buses:
            if bus is not sender and not self.lost and not bus.cut:
                for receiver in bus.receivers.get(kind, ()):
                    receiver(payload)


class WiredBus:
    """A node's end of the bus; with `cut` no message comes or goes."""

    def __init__(self, wires: Wires) -> None:
        self.cut = False
        self.receivers: dict[str, list[Callable[[bytes], None]]] = {}
        self._wires = wires

    @property
    def listening(self) -> bool:
        return not self.cut

    def connected(self, receiver: Callable[[], None]) -> None:
        """Do nothing: the bus is connected from the start."""

    def send(self, kind: str, payload: bytes) -> None:
        if not self.cut:
            self._wires.carry(self, kind, payload)

    def receive(self, kind: str, receiver: Callable[[bytes], None]) -> None:
        self.receivers.setdefault(kind, []).append(receiver)


class Way:
    """A node's connection to the store: calls fail if it is `cut`, and wait while `stopped`; `sent` counts writes."""

    def __init__(self, store: InlineStore) -> None:
        self.cut = False
        self.delay_s = 0.0
        self.sent = 0
        self._going = trio.Event()
        self._going.set()
        self._store = store

    def stop(self) -> None:
        self._going = trio.Event()

    def go_on(self) -> None:
        self._going.set()

    async def read(self, query: Callable[[Any], T]) -> T:
        await self._pass()
        answer = await self._store.read(query)
        await self._going.wait()
        return answer

    async def write(self, job: Callable[[Any], T]) -> T:
        self.sent += 1
        await self._pass()
        answer = await self._store.write(job)
        await self._going.wait()
        return answer

    def submit(self, job: Callable[[Any], T], ended: Callable[[T | Exception], None]) -> None:
        self._store.submit(job, ended)

    async def _pass(self) -> None:
        await self._going.wait()
        if self.delay_s:
            await trio.sleep(self.delay_s)  # the delay that the test asked for
        if self.cut:
            raise Unavailable("The database can't be reached.")


class ANode:
    """A node with only a lease. `ahead_ms` is the difference of its clock from the database's."""

    def __init__(self, name: str, store: InlineStore, wires: Wires) -> None:
        self.ahead_ms = 0
        self.way = Way(store)
        self.bus = wires.bus()
        self.forgotten: list[float] = []
        self.losses = 0
        self.membership = ClusterMembership(
            self.way, self.bus, name, "1.0", lambda: database_clock() + self.ahead_ms
        )
        self.membership.on_invalidate(self._forget)
        self.membership.on_lease_lost(self._note_loss)
        self.before_forgetting: Callable[[], Any] = trio.lowlevel.checkpoint

    def stop(self) -> None:
        """Stop the process: its calls to the store wait, and no message reaches it. Its clock goes on."""
        self.way.stop()
        self.bus.cut = True

    def go_on(self) -> None:
        self.bus.cut = False
        self.way.go_on()

    async def _forget(self) -> None:
        await self.before_forgetting()
        self.forgotten.append(trio.current_time())

    def _note_loss(self) -> None:
        self.losses += 1
