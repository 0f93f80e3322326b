"""The circuit of one endpoint at work: its workers ask it before each attempt, and tell it the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, assert_never

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.delivery import Attempt
from deskwire.engine.webhooks.retry.circuit import DEFAULT_RULE, Circuit, Rule
from deskwire.engine.webhooks.retry.pressure import BackPressure
from deskwire.engine.webhooks.retry.schedule import Ended, Retry, Schedule, Sent, pause_asked_ms

_ROOM_MAX: Final = 1_000
"""Attempts beside one another that nothing bounds here: more than an endpoint has places for."""

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
        room: number of attempts that may be under way in the prompt slots: 1 after a pause, and one more with each success that
            began after it (slow start), so that a receiver that counts what it refuses is not asked too much at the end of each pause.
        pressure: the refusals with `Retry-After`, which are known since the start alone.
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
        self.room = _ROOM_MAX
        self.pressure = BackPressure(succeeded_at)
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
        if self.room < _ROOM_MAX and not self.circuit.paused(began):
            self.room += 1
        self._become(self.circuit.after_success(ended))

    def failed(self, error: str, *, began: int, ended: int, probe: bool) -> None:
        """Take note of an attempt that failed; see `Circuit.after_failure`."""
        self._become(
            self.circuit.after_failure(error, began=began, ended=ended, probe=probe, rule=self._rule)
        )

    def pause(self, until: int) -> None:
        """Let nothing begin before `until` (ms), as the receiver has asked."""
        if self.pressure.is_limit:
            self.room = 1
        self._become(self.circuit.asked_to_pause(until))

    def end_pause(self) -> None:
        """Let attempts begin again: others succeed."""
        self.room = _ROOM_MAX
        self._become(replace(self.circuit, paused_until=None))

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
    plan: Sent,
    schedule: Schedule,
    breaker: Breaker,
    *,
    fraction: float,
    succeeded_at: int | None,
    probe: bool,
    quiet_pause_ms: int | None = None,
) -> Retry | Ended:
    """Tell the breaker of an attempt that has ended, and return what becomes of its delivery.

    Args:
        plan: the plan that the attempt was made by.
        fraction, succeeded_at: see `Schedule.after_failure`.
        probe: whether it was the breaker's probe.
        quiet_pause_ms: if it was the probe of a quiet endpoint, the time from its begin to the next one's; the circuit does not count
            it, because an event that can't be taken must not stop those that come later.
    """
    ended_at = attempt.at + attempt.latency_ms
    if attempt.error is None:
        breaker.succeeded(began=attempt.at, ended=ended_at)
        if breaker.pressure.succeeded(plan.id, _key(plan), plan.refusals, began=attempt.at, ended=ended_at):
            breaker.end_pause()
        return Ended("delivered")
    if quiet_pause_ms is not None and (attempt.status is not None or attempt.wait_ms is None):
        return schedule.after_quiet_probe(attempt, plan, fraction, succeeded_at, quiet_pause_ms)
    if attempt.wait_ms is not None:
        if (
            probe or attempt.status is None
        ):  # nothing else is sent, or it is this machine that lacked something
            repeated = schedule.after_pause_asked(attempt, plan)
            breaker.pause(repeated.due_at)
            return repeated
        return _refused(attempt, plan, schedule, breaker, fraction, succeeded_at)
    breaker.failed(attempt.error, began=attempt.at, ended=ended_at, probe=probe)
    if probe:
        return schedule.after_probe(attempt, plan)
    follows = schedule.after_failure(attempt, plan, fraction, succeeded_at)
    if isinstance(follows, Ended):
        breaker.pressure.forget(plan.id)
    return follows


def _refused(
    attempt: Attempt,
    plan: Sent,
    schedule: Schedule,
    breaker: Breaker,
    fraction: float,
    succeeded_at: int | None,
) -> Retry | Ended:
    """Return what follows from a response with `Retry-After`: the circuit never counts it, the delivery does if it is its own."""
    ended_at, wait_ms = attempt.at + attempt.latency_ms, pause_asked_ms(attempt)
    answer = breaker.pressure.refused(
        plan.id, _key(plan), plan.refusals, began=attempt.at, ended=ended_at, wait_ms=wait_ms
    )
    if answer.pause_ms:
        breaker.pause(ended_at + answer.pause_ms)
    if not answer.counts:
        repeated = schedule.after_pause_asked(attempt, plan, fraction if answer.alone else 0.0)
        return replace(repeated, refusals=answer.refusals, own_wait=answer.alone)
    follows = schedule.after_refusal(attempt, plan, fraction, succeeded_at)
    if isinstance(follows, Ended):
        breaker.pressure.forget(plan.id)
        return replace(follows, missed=follows.missed and not answer.proven)
    return replace(follows, refusals=answer.refusals)


def _key(plan: Sent) -> int | str:
    return plan.id if plan.ordering_key is None else plan.ordering_key
