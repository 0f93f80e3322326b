"""The circuit: an endpoint that keeps failing is left alone for a time, then tried again; pure (contract 6.4.3, ADR 10).

    closed     --(enough attempts in a row failed, over long enough)-->  open
    open       --(the pause before the next probe is over)-->  half-open
    half-open  --(the probe fails)-->  open       --(any attempt succeeds)-->  closed

While it is open nothing but a probe is sent: deliveries are held, with all their attempts. Half-open, one delivery is
the probe. A success closes the circuit, whatever attempt it was.

A receiver that asks for a pause (`Retry-After`) is well: that pause is kept here too, but it is no failure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, assert_never

from msgspec import Struct

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.retry.back_pressure import BackPressure

CircuitStatus = Literal["closed", "open", "half_open"]

SECRET_LOST: Final = "the signing secret can't be opened with the installation's secret: rotate it"
"""The reason of a circuit that is open because nothing can be signed."""

_PROBE_PAUSES_S: Final = (*(10,) * 18, 30, 60, 120)
_PROBE_PAUSE_MAX_S: Final = 180
"""Probes follow every 10 s for three minutes, then more and more seldom."""

PAUSE_MAX_MS: Final = 180_000
"""The longest pause that a receiver can ask for."""


class CircuitRule(Struct, frozen=True):
    """The rule for an endpoint that fails persistently (contract 6.4.3): both bounds are reached since the last success.

    Args:
        failures: number of attempts that failed in a row.
        failing_s: seconds since the first of them failed.
    """

    failures: int = 20
    failing_s: float = 60.0


DEFAULT_CIRCUIT_RULE: Final = CircuitRule()


class Circuit(Struct, frozen=True):
    """The memory of an endpoint's failures. Times are in milliseconds since the epoch.

    Args:
        failed_attempts: number of attempts that failed since the last success.
        failing_since: time at which the first of them failed; None while there is none.
        probes: number of probes that failed since the circuit was opened.
        probe_at: time from which the next probe may be sent; None while the circuit is closed.
        reason: the reason for which it was opened, in words.
        paused_until: end of the pause that the receiver has asked for.
    """

    failed_attempts: int = 0
    failing_since: int | None = None
    probes: int = 0
    probe_at: int | None = None
    reason: str | None = None
    paused_until: int | None = None

    def state(self, now: int) -> CircuitStatus:
        """Return the state at `now` (ms). A `probe_at` further ahead than any pause is from a clock set back: it is over."""
        if self.probe_at is None:
            return "closed"
        return "open" if 0 < self.probe_at - now <= probe_pause_ms(self.probes) else "half_open"

    def paused(self, now: int) -> bool:
        """Return whether the receiver has asked for a pause that is not over at `now` (ms)."""
        return self.paused_until is not None and 0 < self.paused_until - now <= PAUSE_MAX_MS

    def opened_unsigned(self, now: int) -> Circuit:
        """Return the circuit opened at `now` (ms), because nothing can be signed for the endpoint."""
        since = now if self.failing_since is None else self.failing_since
        return replace(
            self, failing_since=since, probes=0, probe_at=now + _PROBE_PAUSES_S[0] * 1000, reason=SECRET_LOST
        )

    def after_success(self, now: int) -> Circuit:
        """Return the circuit after a 2xx at `now` (ms): closed. A pause that was asked for goes on."""
        return replace(CLOSED, paused_until=self.paused_until) if self.paused(now) else CLOSED

    def after_failure(self, error: str, *, began: int, ended: int, probe: bool, rule: CircuitRule) -> Circuit:
        """Return the circuit after an attempt that failed.

        Args:
            error: the reason, in words.
            began, ended: the attempt's times, in milliseconds since the epoch.
            probe: whether it was the probe; of other attempts that end while the circuit is not closed, which had
                begun before, only a success counts.
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
        """Return the circuit with a pause until `until` (ms), as the receiver has asked."""
        return replace(self, paused_until=max(until, self.paused_until or 0))

    def with_probe_due(self, now: int) -> Circuit:
        """Return the circuit half-open at once, if it is open: somebody has asked for a delivery."""
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
    """Return the time from one probe's begin to the next one's, after this many have failed."""
    return 1000 * (_PROBE_PAUSES_S[probes] if probes < len(_PROBE_PAUSES_S) else _PROBE_PAUSE_MAX_S)


CLOSED: Final = Circuit()


_ROOM_MAX: Final = 1_000
"""Attempts beside one another that nothing bounds here: more than an endpoint has places for."""

Gate = Literal["go", "probe", "hold"]


def _ignore_change(_before: Circuit, _after: Circuit) -> None:
    """Ignore a change of the circuit."""


class CircuitBreaker:
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
        self._become(self.circuit.with_pause(until))

    def end_pause(self) -> None:
        """Let attempts begin again: others succeed."""
        self.room = _ROOM_MAX
        self._become(replace(self.circuit, paused_until=None))

    def ask_for_probe(self, now: int) -> None:
        """Let a probe be sent at once; see `Circuit.with_probe_due`."""
        self._become(self.circuit.with_probe_due(now))

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

    def clear_held(self) -> None:
        """Take note that all held deliveries are sent, and that this is stored."""
        self.held_upto = None

    def _become(self, circuit: Circuit) -> None:
        before = self.circuit
        if circuit != before:
            self.circuit = circuit
            self.release_due = self.release_due or (before.probe_at is not None and self.closed)
            self.release_due = self.release_due and self.closed
            self.notify(before, circuit)
