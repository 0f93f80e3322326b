"""The circuit of one endpoint at work: all who send to it ask here first, and tell what came of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from deskwire.engine.delivery.circuit import Circuit

Gate = Literal["go", "hold", "skip"]


def _nobody() -> None:
    """Nobody listens yet."""


class Breaker:
    """Says whether an attempt may begin, and remembers what is not stored yet.

    Args:
        circuit: what is stored.

    Attributes:
        notify: called whenever the circuit has changed.
    """

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.notify: Callable[[], None] = _nobody
        self._stored = circuit
        self._probing = False

    def gate(self, now: int) -> Gate:
        """Whether an attempt may begin at `now` (ms), waits for the probe to end, or is not to be made."""
        match self.circuit.state(now):
            case "closed":
                return "go"
            case "open":
                return "skip"
            case "half_open":
                return "hold" if self._probing else "go"

    def begin(self, now: int) -> bool:
        """An attempt begins; whether it is the probe. If it is, `probe_over` must follow."""
        probe = self.circuit.state(now) == "half_open"
        self._probing = self._probing or probe
        return probe

    def probe_over(self) -> None:
        """The probe has ended, well, badly, or not at all."""
        self._probing = False

    def attempt_ended(self, error: str | None, *, exhausted: bool, now: int) -> None:
        """See `Circuit.after_attempt`."""
        self._become(self.circuit.after_attempt(error, exhausted=exhausted, now=now))

    def ask_for_probe(self, now: int) -> None:
        """See `Circuit.asked_to_probe`."""
        self._become(self.circuit.asked_to_probe(now))

    @property
    def unsaved(self) -> Circuit | None:
        """The circuit, if it is another than what is stored."""
        return None if self.circuit == self._stored else self.circuit

    def saved(self, circuit: Circuit) -> None:
        """This is what is stored now."""
        self._stored = circuit

    def _become(self, circuit: Circuit) -> None:
        if circuit != self.circuit:
            self.circuit = circuit
            self.notify()
