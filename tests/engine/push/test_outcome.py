"""The state of a push after an attempt, and the times of the next one."""

from __future__ import annotations

from typing import Final

import pytest

from deskwire.engine.core.values import replace
from deskwire.engine.push.client import PushAnswer
from deskwire.engine.push.ports import LIFETIME_MS, Push
from deskwire.engine.push.sending import RETRY_DELAYS_S, outcome

AT: Final = 1_790_000_000_000
PUSH: Final = Push(
    "psn_1", 1, 1, 1, "Firefox", "cnv_1", "evt_1", "mine", AT, AT, AT, status="sending", attempts=1
)
AWAY: Final = PushAnswer(None, "connection refused", may_have_left=False)


def test_failed_connection_is_repeated_with_growing_pauses_until_the_push_expires() -> None:
    push, now, pauses = PUSH, AT, []
    while (after := outcome(push, AWAY, now)).ended_at is None:
        assert (after.status, after.detail) == ("waiting", "connection refused")
        pauses.append((after.due_at - now) // 1000)
        now, push = after.due_at, replace(after, status="sending", attempts=after.attempts + 1)
    assert pauses[:6] == [*RETRY_DELAYS_S]
    assert set(pauses[6:]) == {RETRY_DELAYS_S[-1]}
    assert (after.reason, after.detail) == ("expired", "connection refused")
    assert AT + LIFETIME_MS - RETRY_DELAYS_S[-1] * 1000 <= now < AT + LIFETIME_MS


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 599])
def test_refusal_for_now_waits_as_long_as_the_push_service_asks(status: int) -> None:
    assert outcome(PUSH, PushAnswer(status), AT).due_at == AT + 5_000
    assert outcome(PUSH, PushAnswer(status, wait_ms=1), AT).due_at == AT + 5_000
    assert outcome(PUSH, PushAnswer(status, wait_ms=3_600_000), AT).due_at == AT + 3_600_000
    assert outcome(PUSH, PushAnswer(status, wait_ms=LIFETIME_MS), AT).reason == "expired"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (PushAnswer(201), "accepted"),
        (PushAnswer(200), "accepted"),
        (PushAnswer(404), "gone"),
        (PushAnswer(410), "gone"),
        (PushAnswer(100), "refused"),
        (PushAnswer(302), "refused"),
        (PushAnswer(401), "refused"),
        (PushAnswer(413), "refused"),
        (PushAnswer(None, "timeout: no answer within 15 s"), "unanswered"),
    ],
)
def test_other_answers_end_the_push_at_once(answer: PushAnswer, reason: str) -> None:
    after = outcome(PUSH, answer, AT)
    assert (after.reason, after.ended_at) == (reason, AT)
    assert (after.status == "sent") is (reason == "accepted")


def test_reason_of_a_failure_is_shortened() -> None:
    detail = outcome(PUSH, PushAnswer(None, "x" * 5_000, may_have_left=False), AT).detail
    assert detail == "x" * 200
