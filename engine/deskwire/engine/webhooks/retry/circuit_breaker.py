"""Circuit breaker of an endpoint (contract 6.4.3, ADR 10).

    closed     --(enough consecutive failures over long enough)-->  open
    open       --(the pause before the next probe is over)-->  half-open
    half-open  --(the probe fails)-->  open       --(any attempt succeeds)-->  closed

While the circuit is open, only probes are sent. Deliveries are held and keep all their attempts. A half-open
circuit sends one delivery as the probe. Any success closes the circuit, even that of an attempt from before
it opened.

A receiver that asks for a pause (`Retry-After`) is healthy. The circuit stores that pause too, but does not
count it as a failure.

`Circuit` is the stored state with pure transitions. `CircuitBreaker` applies them for the workers of one
endpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, assert_never

from msgspec import Struct

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.retry.back_pressure import BackPressure

CircuitStatus = Literal["closed", "open", "half_open"]

# Why a circuit is open if the endpoint's signing secret can't be unsealed.
SECRET_LOST: Final = "the signing secret can't be opened with the installation's secret: rotate it"

# Probes follow every 10 s for three minutes, then at growing intervals.
_PROBE_PAUSES_S: Final = (*(10,) * 18, 30, 60, 120)
_PROBE_PAUSE_MAX_S: Final = 180

# The longest pause that a receiver can ask for.
PAUSE_MAX_MS: Final = 180_000


class CircuitRule(Struct, frozen=True):
    """The thresholds that open a circuit (contract 6.4.3). Both must be reached.

    Args:
        failures: number of consecutive failed attempts since the last success.
        failing_s: seconds since the first of these failures.
    """

    failures: int = 20
    failing_s: float = 60.0


DEFAULT_CIRCUIT_RULE: Final = CircuitRule()


class Circuit(Struct, frozen=True):
    """The stored state of an endpoint's circuit.

    Times are in milliseconds since the epoch.

    Args:
        failed_attempts: number of failed attempts since the last success.
        failing_since: time of the first of them; None if there is none.
        probes: number of failed probes since the circuit opened.
        probe_at: time from which the next probe may be sent; None while the circuit is closed.
        reason: why the circuit opened.
        paused_until: end of the pause that the receiver asked for.
    """

    failed_attempts: int = 0
    failing_since: int | None = None
    probes: int = 0
    probe_at: int | None = None
    reason: str | None = None
    paused_until: int | None = None

    def state(self, now: int) -> CircuitStatus:
        """Return the status at `now` (ms).

        A `probe_at` further ahead than the longest pause means that the clock was set back. The pause then
        counts as over.
        """
        if self.probe_at is None:
            return "closed"
        return "open" if 0 < self.probe_at - now <= probe_pause_ms(self.probes) else "half_open"

    def paused(self, now: int) -> bool:
        """Return whether the receiver asked for a pause that is not over at `now` (ms)."""
        return self.paused_until is not None and 0 < self.paused_until - now <= PAUSE_MAX_MS

    def opened_unsigned(self, now: int) -> Circuit:
        """Return the circuit, opened at `now` (ms) because no delivery can be signed."""
        since = now if self.failing_since is None else self.failing_since
        return replace(
            self, failing_since=since, probes=0, probe_at=now + _PROBE_PAUSES_S[0] * 1000, reason=SECRET_LOST
        )

    def after_success(self, now: int) -> Circuit:
        """Return the closed circuit after a 2xx at `now` (ms).

        A requested pause continues.
        """
        return replace(CLOSED, paused_until=self.paused_until) if self.paused(now) else CLOSED

    def after_failure(self, error: str, *, began: int, ended: int, probe: bool, rule: CircuitRule) -> Circuit:
        """Return the circuit after a failed attempt.

        Args:
            error: the failure, for the reason.
            began, ended: times of the attempt in milliseconds since the epoch.
            probe: whether the attempt was the probe. While the circuit is not closed, failures of other
                attempts (started earlier) do not count.
        """
        if self.probe_at is not None:
            return self._after_probe(error, began) if probe else self
        failed = replace(
            self,
            failed_attempts=self.failed_attempts + 1,
            failing_since=ended if self.failing_since is None else min(self.failing_since, ended),
        )
        assert failed.failing_since is not None
        failing_ms = ended - failed.failing_since
        if failed.failed_attempts < rule.failures or failing_ms < rule.failing_s * 1000:
            return failed
        reason = f"{failed.failed_attempts} attempts in a row failed within {failing_ms / 1000:.0f} s; the last: {error}"
        return replace(failed, probes=0, probe_at=ended + probe_pause_ms(0), reason=reason)

    def with_pause(self, until: int) -> Circuit:
        """Return the circuit with a pause until `until` (ms), as the receiver asked."""
        return replace(self, paused_until=max(until, self.paused_until or 0))

    def with_probe_due(self, now: int) -> Circuit:
        """Return an open circuit as half-open, because a caller wants a probe."""
        return replace(self, probe_at=now) if self.state(now) == "open" else self

    def _after_probe(self, error: str, began: int) -> Circuit:
        probes = self.probes + 1
        return replace(
            self,
            probes=probes,
            probe_at=began + probe_pause_ms(probes),
            reason=f"the probe failed: {error}",
        )


def probe_pause_ms(probes: int) -> int:
    """Return the time (ms) to the next probe after this many failed ones."""
    return 1000 * (_PROBE_PAUSES_S[probes] if probes < len(_PROBE_PAUSES_S) else _PROBE_PAUSE_MAX_S)


CLOSED: Final = Circuit()


# No limit: more concurrent attempts than an endpoint has slots.
_ROOM_MAX: Final = 1_000

Gate = Literal["go", "probe", "hold"]


def _ignore_change(_before: Circuit, _after: Circuit) -> None:
    """Ignore a change of the circuit."""


class CircuitBreaker:
    """Decides whether an attempt may start, and tracks changes not stored yet.

    Args:
        circuit: the stored circuit.
        rule: when the circuit opens.
        succeeded_at: start of the last attempt that got a 2xx, in milliseconds since the epoch.
        held_upto: position of the last held delivery, if not all held deliveries are sent yet.

    Attributes:
        notify: called with the circuit before and after each change.
        release_due: whether the circuit has closed, and the position of the last held delivery is not stored
            yet.
        release_upto: position of the newest delivery when the last probe started, if known. Later deliveries
            are not held after the probe has succeeded.
        room: number of attempts that may use the prompt slots at the same time. After a pause it is 1 and
            grows by one with each success that started after the pause (slow start), so that a receiver with
            a rate limit is not flooded at the end of each pause.
        pressure: the refusals with `Retry-After` since the start.
    """

    def __init__(
        self,
        circuit: Circuit,
        rule: CircuitRule = DEFAULT_CIRCUIT_RULE,
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
        self.notify: Callable[[Circuit, Circuit], None] = _ignore_change
        self._rule = rule
        self._stored = circuit
        self._probing = False

    @property
    def closed(self) -> bool:
        """True if deliveries are sent and not held."""
        return self.circuit.probe_at is None

    def gate(self, now: int) -> Gate:
        """Return whether an attempt may start at `now` (ms): `go`, `probe` or `hold`.

        `probe` allows one attempt, as the probe.
        """
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
        """Return when the gate opens without an event (ms since the epoch).

        None if it is open already, or opens only after a running probe.
        """
        if self.circuit.paused(now):
            return self.circuit.paused_until
        return self.circuit.probe_at if self.circuit.state(now) == "open" else None

    def begin(self, now: int) -> bool:
        """Start an attempt; return whether it is the probe.

        If so, call `probe_over` after the attempt.
        """
        probe = self.gate(now) == "probe"
        self._probing = self._probing or probe
        return probe

    def probe_over(self) -> None:
        """Mark the probe as finished, whatever its result."""
        self._probing = False

    def succeeded(self, *, began: int, ended: int) -> None:
        """Record an attempt that got a 2xx. Times are in milliseconds."""
        self.succeeded_at = max(began, self.succeeded_at or 0)
        if self.room < _ROOM_MAX and not self.circuit.paused(began):
            self.room += 1
        self._become(self.circuit.after_success(ended))

    def failed(self, error: str, *, began: int, ended: int, probe: bool) -> None:
        """Record a failed attempt; see `Circuit.after_failure`."""
        self._become(
            self.circuit.after_failure(error, began=began, ended=ended, probe=probe, rule=self._rule)
        )

    def pause(self, until: int) -> None:
        """Start no attempt before `until` (ms), as the receiver asked."""
        if self.pressure.is_limit:
            self.room = 1
        self._become(self.circuit.with_pause(until))

    def end_pause(self) -> None:
        """Allow attempts again before the end of a pause, because others succeed."""
        self.room = _ROOM_MAX
        self._become(replace(self.circuit, paused_until=None))

    def ask_for_probe(self, now: int) -> None:
        """Allow a probe at once; see `Circuit.with_probe_due`."""
        self._become(self.circuit.with_probe_due(now))

    @property
    def stored(self) -> Circuit:
        """The circuit as last stored."""
        return self._stored

    @property
    def unsaved(self) -> Circuit | None:
        """The circuit if it must be stored, None if nothing has changed."""
        return None if self.circuit == self._stored and not self.release_due else self.circuit

    def saved(self, circuit: Circuit, released: int | None) -> None:
        """Record that this circuit is stored.

        Args:
            released: position of the last delivery that the circuit held, if it was stored that the circuit
                is closed.
        """
        self._stored = circuit
        if released is not None and self.closed:
            self.held_upto, self.release_due = released, False

    def clear_held(self) -> None:
        """Record that all held deliveries are sent, and that this is stored."""
        self.held_upto = None

    def _become(self, circuit: Circuit) -> None:
        before = self.circuit
        if circuit != before:
            self.circuit = circuit
            self.release_due = self.release_due or (before.probe_at is not None and self.closed)
            self.release_due = self.release_due and self.closed
            self.notify(before, circuit)
