"""The circuit of one endpoint at work: its workers ask it before each attempt, and tell it the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, assert_never

from deskwire.engine.webhooks.delivery import Attempt
from deskwire.engine.webhooks.retry.circuit import DEFAULT_RULE, Circuit, Rule
from deskwire.engine.webhooks.retry.schedule import AttemptPlan, Ended, Retry, Schedule

Gate = Literal["go", "probe", "hold"]


def _nobody(_before: Circuit, _after: Circuit) -> None:
    """Ignore a change of the circuit."""


class Breaker:
    """Says whether an attempt may begin, and remembers changes that are not stored yet.

    Args:
        circuit: the stored circuit.
        rule: says when it opens.
        succeeded_at: begin of the last attempt that was answered with a 2xx, in milliseconds since the epoch.
        held_upto: position up to which deliveries were held, if they are not all sent yet.

    Attributes:
        notify: called with the circuit before and after, whenever it has changed.
        release_due: whether the circuit was closed, and it is not stored yet which deliveries it had held.
        release_upto: position of the newest delivery as the last probe began, if it is known: later ones are not
            held any more once the probe has succeeded.
    """

    def __init__(
        self,
        circuit: Circuit,
        rule: Rule = DEFAULT_RULE,
        *,
        succeeded_at: int | None = None,
        held_upto: int | None = None,
    ) -> None:
        self.circuit = circuit
        self.succeeded_at = succeeded_at
        self.held_upto = held_upto
        self.release_due = False
        self.release_upto: int | None = None
        self.notify: Callable[[Circuit, Circuit], None] = _nobody
        self._rule = rule
        self._stored = circuit
        self._probing = False

    @property
    def closed(self) -> bool:
        """Return whether deliveries are sent, and not held."""
        return self.circuit.probe_at is None

    def gate(self, now: int) -> Gate:
        """Return whether at `now` (ms) any attempt may begin (`go`), or one as a probe, or none (`hold`)."""
        if self.circuit.paused(now):
            return "hold"
        match self.circuit.state(now):
            case "closed":
                return "go"
            case "open":
                return "hold"
            case "half_open":
                return "hold" if self._probing else "probe"
            case state:
                assert_never(state)

    def opens_at(self, now: int) -> int | None:
        """Return the time at which the gate opens by itself (ms since the epoch); None if it does not, or is open."""
        if self.circuit.paused(now):
            return self.circuit.paused_until
        return self.circuit.probe_at if self.circuit.state(now) == "open" else None

    def begin(self, now: int) -> bool:
        """Let an attempt begin, and return whether it is the probe. If it is, `probe_over` must follow."""
        probe = self.gate(now) == "probe"
        self._probing = self._probing or probe
        return probe

    def probe_over(self) -> None:
        """Take note that the probe has ended, well, badly, or not at all."""
        self._probing = False

    def succeeded(self, *, began: int, ended: int) -> None:
        """Take note of an attempt that was answered with a 2xx (ms)."""
        self.succeeded_at = max(began, self.succeeded_at or 0)
        self._become(self.circuit.after_success(ended))

    def failed(self, error: str, *, began: int, ended: int, probe: bool) -> None:
        """Take note of an attempt that failed; see `Circuit.after_failure`."""
        self._become(
            self.circuit.after_failure(error, began=began, ended=ended, probe=probe, rule=self._rule)
        )

    def pause(self, until: int) -> None:
        """Let nothing begin before `until` (ms), as the receiver has asked."""
        self._become(self.circuit.asked_to_pause(until))

    def ask_for_probe(self, now: int) -> None:
        """Let a probe be sent at once; see `Circuit.asked_to_probe`."""
        self._become(self.circuit.asked_to_probe(now))

    @property
    def stored(self) -> Circuit:
        """The circuit that was stored last."""
        return self._stored

    @property
    def unsaved(self) -> Circuit | None:
        """The circuit if it is to be stored, None if nothing has changed."""
        return None if self.circuit == self._stored and not self.release_due else self.circuit

    def saved(self, circuit: Circuit, released: int | None) -> None:
        """Take note of the circuit that is stored now, and of the position up to which it held deliveries, if closed."""
        self._stored = circuit
        if released is not None and self.closed:
            self.held_upto, self.release_due = released, False

    def caught_up(self) -> None:
        """Take note that all held deliveries are sent, and that this is stored."""
        self.held_upto = None

    def _become(self, circuit: Circuit) -> None:
        before = self.circuit
        if circuit != before:
            self.circuit = circuit
            self.release_due = self.release_due or (before.probe_at is not None and self.closed)
            self.release_due = self.release_due and self.closed
            self.notify(before, circuit)


def verdict(
    attempt: Attempt,
    plan: AttemptPlan,
    schedule: Schedule,
    breaker: Breaker,
    *,
    fraction: float,
    succeeded_at: int | None,
    probe: bool,
) -> Retry | Ended:
    """Tell the breaker of an attempt that has ended, and return what becomes of its delivery.

    Args:
        plan: the plan that the attempt was made by.
        fraction, succeeded_at: see `Schedule.after_failure`.
        probe: whether it was the breaker's probe.
    """
    ended_at = attempt.at + attempt.latency_ms
    if attempt.error is None:
        breaker.succeeded(began=attempt.at, ended=ended_at)
        return Ended("delivered")
    if attempt.wait_ms is not None:  # the receiver is well: neither the delivery nor the circuit counts it
        repeated = schedule.after_pause_asked(attempt, plan)
        breaker.pause(repeated.due_at)
        return repeated
    breaker.failed(attempt.error, began=attempt.at, ended=ended_at, probe=probe)
    if probe:
        return schedule.after_probe(attempt, plan)
    return schedule.after_failure(attempt, plan, fraction, succeeded_at)
