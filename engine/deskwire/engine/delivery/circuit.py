"""When an endpoint that keeps failing is left alone for a while; pure (contract 6.4.3, decisions 6).

    closed     --(20 attempts in a row failed, or 5 deliveries in a row exhausted)-->  open
    open       --(3 minutes)-->  half-open
    half-open  --(the probe fails)-->  open       --(it succeeds)-->  closed

While it is open nothing is sent: deliveries end as skipped. Half-open, one delivery is the probe; the others
wait for what comes of it. Any success closes the circuit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from deskwire.engine.clock import iso

State = Literal["closed", "open", "half_open"]

FAILED_ATTEMPTS_MAX: Final = 20
EXHAUSTED_MAX: Final = 5
OPEN_MS: Final = 180_000
"""All three: decisions 6."""


@dataclass(frozen=True, slots=True)
class Circuit:
    """What is remembered of an endpoint's failures.

    Args:
        failed_attempts: how many failed since the last success.
        exhausted: how many deliveries used up their attempts since the last success.
        open_until: when the circuit is half-open, in milliseconds since the epoch; None while it is closed.
        reason: why it was opened, in words.
    """

    failed_attempts: int = 0
    exhausted: int = 0
    open_until: int | None = None
    reason: str | None = None

    def state(self, now: int) -> State:
        """Its state at `now` (ms). Further ahead than it can have been opened for, `open_until` is of a clock since set back."""
        if self.open_until is None:
            return "closed"
        return "open" if 0 < self.open_until - now <= OPEN_MS else "half_open"

    def after_attempt(self, error: str | None, *, exhausted: bool, now: int) -> Circuit:
        """What it is after an attempt that ended at `now` (ms).

        Args:
            error: what was wrong with the attempt, None for a 2xx answer.
            exhausted: whether it was its delivery's last.
        """
        if error is None:
            return CLOSED
        failed = replace(
            self, failed_attempts=self.failed_attempts + 1, exhausted=self.exhausted + int(exhausted)
        )
        match self.state(now):
            case "open":  # the attempt had begun before
                return self
            case "half_open":
                return failed._opened(f"the probe failed: {error}", now)
            case "closed" if failed.failed_attempts >= FAILED_ATTEMPTS_MAX:
                return failed._opened(
                    f"{failed.failed_attempts} attempts in a row failed; the last: {error}", now
                )
            case "closed" if failed.exhausted >= EXHAUSTED_MAX:
                return failed._opened(
                    f"{failed.exhausted} deliveries in a row failed; the last: {error}", now
                )
        return failed

    def asked_to_probe(self, now: int) -> Circuit:
        """Half-open at once, if it is open: somebody has asked for a delivery."""
        return replace(self, open_until=now) if self.state(now) == "open" else self

    def skip_reason(self) -> str:
        """Why a delivery is not sent while the circuit is open."""
        assert self.open_until is not None, "a closed circuit skips nothing"
        return f"the circuit is open until {iso(self.open_until)}: {self.reason}"

    def _opened(self, reason: str, now: int) -> Circuit:
        return replace(self, open_until=now + OPEN_MS, reason=reason)


CLOSED: Final = Circuit()
