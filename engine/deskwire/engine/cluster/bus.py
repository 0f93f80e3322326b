"""The bus between nodes: small messages that may be lost, late or doubled, so that nothing may rest on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Bus(Protocol):
    """Tells the other nodes something at once. What must not be lost is in the store; the bus only says when to look."""

    @property
    def listening(self) -> bool:
        """False if nothing that other nodes send comes here at present: who waits for it must look by itself, and often."""

    def connected(self, receiver: Callable[[], None]) -> None:
        """Have `receiver` called, on Trio's thread, each time that messages begin to come, again or first; it must not raise."""

    def send(self, kind: str, payload: bytes) -> None:
        """Send to all other nodes, without waiting; the oldest of too many is dropped.

        Args:
            payload: at most 4,000 bytes; a longer one is dropped.
        """

    def receive(self, kind: str, receiver: Callable[[bytes], None]) -> None:
        """Have `receiver` called, on Trio's thread, with what other nodes send of this kind; it must not raise."""


class NoBus:
    """The bus of a node that is alone, or has no way to tell others anything."""

    listening = False

    def connected(self, receiver: Callable[[], None]) -> None:
        """See `Bus.connected`."""

    def send(self, kind: str, payload: bytes) -> None:
        """See `Bus.send`."""

    def receive(self, kind: str, receiver: Callable[[bytes], None]) -> None:
        """See `Bus.receive`."""
