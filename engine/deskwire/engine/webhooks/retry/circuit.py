"""The circuit: an endpoint that keeps failing is left alone for a time, then tried again; pure (contract 6.4.3, ADR 10).

    closed     --(enough attempts in a row failed, over long enough)-->  open
    open       --(the pause before the next probe is over)-->  half-open
    half-open  --(the probe fails)-->  open       --(any attempt succeeds)-->  closed

While it is open nothing but a probe is sent: deliveries are held, with all their attempts. Half-open, one delivery is
the probe. A success closes the circuit, whatever attempt it was.

A receiver that asks for a pause (`Retry-After`) is well: that pause is kept here too, but it is no failure.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from deskwire.engine.core.values import replace

State = Literal["closed", "open", "half_open"]

SECRET_LOST: Final = "the signing secret can't be opened with the installation's secret: rotate it"
"""The reason of a circuit that is open because nothing can be signed."""

_PROBE_PAUSES_S: Final = (*(10,) * 18, 30, 60, 120)
_PROBE_PAUSE_MAX_S: Final = 180
"""Probes follow every 10 s for three minutes, then more and more seldom."""

PAUSE_MAX_MS: Final = 180_000
"""The longest pause that a receiver can ask for."""


class Rule(Struct, frozen=True):
    """The rule for an endpoint that fails persistently (contract 6.4.3): both bounds are reached since the last success.

    Args:
        failures: number of attempts that failed in a row.
        failing_s: seconds since the first of them failed.
    """

    failures: int = 20
    failing_s: float = 60.0


DEFAULT_RULE: Final = Rule()


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

    def state(self, now: int) -> State:
        """Return the state at `now` (ms). A `probe_at` further ahead than any pause is from a clock set back: it is over."""
        if self.probe_at is None:
            return "closed"
        return "open" if 0 < self.probe_at - now <= probe_pause_ms(self.probes) else "half_open"

    def paused(self, now: int) -> bool:
        """Return whether the receiver has asked for a pause that is not over at `now` (ms)."""
        return self.paused_until is not None and 0 < self.paused_until - now <= PAUSE_MAX_MS

    def unsigned(self, now: int) -> Circuit:
        """Return the circuit opened at `now` (ms), because nothing can be signed for the endpoint."""
        since = now if self.failing_since is None else self.failing_since
        return replace(
            self, failing_since=since, probes=0, probe_at=now + _PROBE_PAUSES_S[0] * 1000, reason=SECRET_LOST
        )

    def after_success(self, now: int) -> Circuit:
        """Return the circuit after a 2xx at `now` (ms): closed. A pause that was asked for goes on."""
        return replace(CLOSED, paused_until=self.paused_until) if self.paused(now) else CLOSED

    def after_failure(self, error: str, *, began: int, ended: int, probe: bool, rule: Rule) -> Circuit:
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

    def asked_to_pause(self, until: int) -> Circuit:
        """Return the circuit with a pause until `until` (ms), as the receiver has asked."""
        return replace(self, paused_until=max(until, self.paused_until or 0))

    def asked_to_probe(self, now: int) -> Circuit:
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
