"""The bus between nodes at its worst: messages are lost, late, and duplicated."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Final

import trio

_LATE_S: Final = 3.0


class Wires:
    """The medium that connects the buses of all nodes.

    Args:
        later: starts a background task.
        lost: the share of messages that never arrive.
    """

    def __init__(self, dice: random.Random, later: Callable[..., None], lost: float) -> None:
        self._dice = dice
        self._later = later
        self._lost = lost
        self._buses: list[NodeBus] = []

    def bus(self, gate: Callable[[], Awaitable[None]]) -> NodeBus:
        """Return the bus of another node; `gate` waits while it is stopped."""
        bus = NodeBus(self, gate)
        self._buses.append(bus)
        return bus

    def leave(self, bus: NodeBus) -> None:
        """Remove the bus of a process that has ended."""
        self._buses.remove(bus)

    def carry(self, sender: NodeBus, kind: str, payload: bytes) -> None:
        """Deliver a message to the other nodes, if at all."""
        for bus in self._buses:
            while bus is not sender and self._dice.random() >= self._lost:
                late_s = self._dice.random() ** 4 * _LATE_S
                self._later(self._bring, bus, kind, payload, late_s)
                if self._dice.random() < 0.95:
                    break

    async def _bring(self, bus: NodeBus, kind: str, payload: bytes, late_s: float) -> None:
        await trio.sleep(late_s)  # virtual time: the mock clock jumps
        await bus.gate()
        if bus in self._buses:
            bus.take(kind, payload)


class NodeBus:
    """One node's end of the bus."""

    listening = True

    def __init__(self, wires: Wires, gate: Callable[[], Awaitable[None]]) -> None:
        self.gate = gate
        self._wires = wires
        self._receivers: dict[str, list[Callable[[bytes], None]]] = {}

    def connected(self, receiver: Callable[[], None]) -> None:
        """See `Bus.connected`: it is connected from the start."""
        receiver()

    def send(self, kind: str, payload: bytes) -> None:
        """See `Bus.send`."""
        if len(payload) <= 4_000:
            self._wires.carry(self, kind, payload)

    def receive(self, kind: str, receiver: Callable[[bytes], None]) -> None:
        """See `Bus.receive`."""
        self._receivers.setdefault(kind, []).append(receiver)

    def take(self, kind: str, payload: bytes) -> None:
        """Pass a message to its receivers."""
        for receiver in self._receivers.get(kind, ()):
            receiver(payload)
