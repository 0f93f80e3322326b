"""The bus between nodes as it may be at its worst: messages are lost, late, and come twice."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Final

import trio

_LATE_S: Final = 3.0


class Wires:
    """What all nodes' buses go through.

    Args:
        later: begins something that goes on by itself.
        lost: the share of messages that never come.
    """

    def __init__(self, dice: random.Random, later: Callable[..., None], lost: float) -> None:
        self._dice = dice
        self._later = later
        self._lost = lost
        self._buses: list[NodeBus] = []

    def bus(self, gate: Callable[[], Awaitable[None]]) -> NodeBus:
        """A further node's; `gate` waits while it is stopped."""
        bus = NodeBus(self, gate)
        self._buses.append(bus)
        return bus

    def leave(self, bus: NodeBus) -> None:
        """Take away the bus of a process that has ended."""
        self._buses.remove(bus)

    def carry(self, sender: NodeBus, kind: str, payload: bytes) -> None:
        """Bring a message to the others, if at all."""
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
    """One node's end."""

    listening = True

    def __init__(self, wires: Wires, gate: Callable[[], Awaitable[None]]) -> None:
        self.gate = gate
        self._wires = wires
        self._receivers: dict[str, list[Callable[[bytes], None]]] = {}

    def connected(self, receiver: Callable[[], None]) -> None:
        """See `Bus.connected`: they come from the begin on."""
        receiver()

    def send(self, kind: str, payload: bytes) -> None:
        """See `Bus.send`."""
        if len(payload) <= 4_000:
            self._wires.carry(self, kind, payload)

    def receive(self, kind: str, receiver: Callable[[bytes], None]) -> None:
        """See `Bus.receive`."""
        self._receivers.setdefault(kind, []).append(receiver)

    def take(self, kind: str, payload: bytes) -> None:
        """Give a message to whoever wants it."""
        for receiver in self._receivers.get(kind, ()):
            receiver(payload)
