"""Detection of a clock that was set forward, so that a wrong clock deletes nothing."""

from __future__ import annotations

from typing import Final

import structlog
import trio

from deskwire.engine.core.clock import Clock

log: Final = structlog.get_logger(__name__)

JUMP_TOLERANCE_S: Final = 3_600.0
"""The lead that the wall clock may gain on the monotonic clock between two checks.

Corrections by NTP are seconds, a wrongly set clock is off by days.
"""


class ClockJumpDetector:
    """Compares the wall clock with the monotonic clock at each check.

    Each jump is reported once. A task that skips deletions until the next check gives the operator that long to correct
    the clock. A machine that was suspended looks the same: its deletions are only late.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_s = self._ahead()

    def noticed(self) -> bool:
        """Return whether the clock was set forward since the last check, or since the start."""
        before, self._ahead_s = self._ahead_s, self._ahead()
        jump_s = self._ahead_s - before
        if jump_s > JUMP_TOLERANCE_S:
            log.warning(
                "clock.set_forward", seconds=round(jump_s), effect="nothing expires until the next look"
            )
            return True
        return False

    def _ahead(self) -> float:
        return self._clock() / 1000 - trio.current_time()
