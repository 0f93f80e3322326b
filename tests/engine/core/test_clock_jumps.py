"""A clock that is set forward is noticed once, and one that runs or is set back is not."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from deskwire.engine.core.clock_jumps import JUMP_TOLERANCE_S, ClockJumpDetector

HOUR_S = 3_600


async def test_jump_is_reported_once(autojump_clock: MockClock) -> None:
    extra_s = 0.0
    forward = ClockJumpDetector(lambda: int((trio.current_time() + extra_s) * 1000))
    await trio.sleep(100 * HOUR_S)  # virtual time: the mock clock jumps, and the wall clock with it
    assert not forward.noticed()
    extra_s = 40 * 24 * HOUR_S
    assert [forward.noticed(), forward.noticed()] == [True, False]
    extra_s = 0
    assert not forward.noticed()


async def test_a_correction_of_less_than_an_hour_is_none(autojump_clock: MockClock) -> None:
    extra_s = 0.0
    forward = ClockJumpDetector(lambda: int((trio.current_time() + extra_s) * 1000))
    extra_s = JUMP_TOLERANCE_S - 1
    assert not forward.noticed()
