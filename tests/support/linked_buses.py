"""Linked buses of nodes in one process: each message reaches all other nodes immediately, or is lost."""

from __future__ import annotations

from collections.abc import Callable


class LinkedBus:
    """One node's end of the bus."""

    listening = True

    def __init__(self, others: list[LinkedBus]) -> None:
        self.others = others
        self.cut = False
        self.sent: list[tuple[str, bytes]] = []
        self._receivers: dict[str, list[Callable[[bytes], None]]] = {}
        self._told: list[Callable[[], None]] = []
        others.append(self)

    def send(self, kind: str, payload: bytes) -> None:
        assert len(payload) <= 4_000
        self.sent.append((kind, payload))
        for other in self.others:
            if other is not self and not (self.cut or other.cut):
                for receiver in other._receivers.get(kind, ()):
                    receiver(payload)

    def receive(self, kind: str, receiver: Callable[[bytes], None]) -> None:
        self._receivers.setdefault(kind, []).append(receiver)

    def connected(self, receiver: Callable[[], None]) -> None:
        self._told.append(receiver)

    def connect(self) -> None:
        """Begin to listen, like a bus that has opened its session."""
        self.cut = False
        for receiver in self._told:
            receiver()
