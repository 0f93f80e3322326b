"""The detection of a clock that was set forward, so that nothing irreversible is done by a wrong one."""

from __future__ import annotations

from typing import Final

import structlog
import trio

from deskwire.engine.core.clock import Clock

log: Final = structlog.get_logger(__name__)

JUMP_TOLERANCE_S: Final = 3_600.0
"""What a clock may gain on the steady one between two looks; corrections are seconds, mistakes are days."""


class ClockJumpDetector:
    """Looks at the clock now and then.

    A jump is told of once: who waits for the next look before deleting anything leaves the operator that long to set a
    wrong clock right. A machine that has slept looks the same, and loses nothing but that time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_s = self._ahead()

    def noticed(self) -> bool:
        """Tell whether the clock was set forward since the look before, or the beginning."""
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
