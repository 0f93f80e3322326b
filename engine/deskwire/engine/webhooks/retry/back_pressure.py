"""Back-pressure: whether a `Retry-After` is for the endpoint or one delivery.

An overloaded receiver refuses every delivery. A receiver that can't process a certain event, or the events of
a certain contact, refuses these and accepts all others. Both answer 429 or 503 with `Retry-After`, so only
the results of other deliveries can distinguish them (ADR 10):

- A refusal pauses the endpoint if no other conversation's delivery succeeds.
- A refusal soon after a success of another conversation starts a *trial*: the endpoint is not paused, and
  only that conversation waits. Consecutive refusals of other conversations end the trial with a pause: the
  receiver has a rate limit and accepts some deliveries in each period. The next trial then starts later, each
  pause ends with a slow start (`CircuitBreaker.room`), and earlier conclusions about single deliveries are
  discarded unless proven. A success also ends the trial: the receiver is *selective*.
- A selective endpoint is paused only after many consecutive refusals, first for one second, then longer until
  a delivery succeeds.
- A repeated refusal counts as the delivery's own failure if other deliveries that had not been refused before
  succeeded promptly while it waited, or if no attempt was made that could have used up the receiver's
  capacity. Successes at or after the end of the wait prove nothing.
- After several such failures, and if hardly any refused delivery has arrived later, it is *certain* that the
  receiver has no rate limit. Refusals of conversations that had such a failure are then ignored for the
  endpoint until one of their deliveries arrives.

Only a delivery's `refusals` and the endpoint's last success are stored. After a restart, or on another node,
these start a trial at once, so the rest is learned again without a pause.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

# After this many consecutive refusals, with successes of other conversations in between, the delivery has
# failed on its own.
REFUSALS_MAX: Final = 3

# From this many refusals on, a delivery can pause the endpoint only by ending a trial.
SUSPECT_REFUSALS: Final = 2

# Consecutive refusals that end a trial with a pause. Shorter streaks are likely even if only four of five
# events are refused.
_TRIAL_STREAK: Final = 16

# Consecutive refusals of many conversations that end a trial. If nine of ten conversations are refused, a
# streak of 16 is likely and one of 40 is not. If a rate limit hits the same few conversations, each refusal
# costs them an attempt, so for them the shorter streak applies.
_MANY_TRIAL_STREAK: Final = 40

# Number of conversations in a streak of refusals that counts as many.
_MANY_CONVERSATIONS: Final = 12

# Consecutive refusals that pause a selective receiver. Shorter streaks are likely if nine of ten
# conversations are refused.
_SELECTIVE_STREAK: Final = 24

# Maximum age of a success that shows that other conversations' deliveries succeed. For a longer requested
# wait, that wait is the maximum.
_RECENT_MS: Final = 60_000

# With this many deliveries refused again while others succeeded, the receiver is certain to be selective.
_CERTAIN_REJECTIONS: Final = 4

# For certainty, this many deliveries must be refused again for each one that arrived after a refusal. Under a
# rate limit, a larger share of the refused deliveries arrives.
_REJECTED_PER_RECOVERED: Final = 10

# With this many deliveries that arrived after a refusal, the receiver has a rate limit, unless many more were
# refused again.
_RATE_LIMIT_RECOVERIES: Final = 5

# Both counts are halved at this number, so that they describe the last days and not the last months.
_COUNT_MAX: Final = 1_000

# A success within this time after a refusal proves that the receiver had capacity, even if other deliveries
# were refused in between.
_IMMEDIATE_MS: Final = 2_000

# The end of a wait proves nothing because receivers round waits up to whole seconds. For short waits, the
# second half proves nothing.
_ROUNDING_MS: Final = 1_000

_FIRST_PAUSE_MS: Final = 1_000

# Maximum number of pauses between two trials; it grows with each failed trial.
_PAUSES_BETWEEN_TRIALS_MAX: Final = 8

# Maximum number of waiting deliveries in memory, and of unwelcome conversations (those whose deliveries
# failed on their own). Later refusals of an evicted delivery do not count as attempts.
_REMEMBERED_MAX: Final = 10_000

Key = int | str
Evidence = Literal["none", "once", "within", "after", "pressed"]


class RefusedDelivery(Struct):
    """A delivery that the receiver asked to wait.

    Args:
        key: its conversation, or its own id if it has none.
        at: start of its wait (ms).
        proves_until: a success of another delivery that started before this time (ms) proves that the
            receiver had capacity.
        evidence: the first result of another conversation's delivery: a success `within` that time or `after`
            it, or a refusal (`pressed`). For a short wait, two successes must come within it before a
            refusal; `once` means one so far.
        proven: whether others succeeded during one of its waits.
    """

    key: Key
    at: int
    proves_until: int
    evidence: Evidence = "none"
    proven: bool = False


class RefusalDecision(Struct, frozen=True):
    """The consequences of a refusal.

    Args:
        refusals: number of refusals attributed to the delivery itself; 1 at first, at most `REFUSALS_MAX`.
        counts: whether the refusal is the delivery's own failure and uses up an attempt.
        pause_ms: how long the endpoint is paused, 0 for no pause.
        proven: whether others succeeded while it waited, so that there is no outage.
        alone: whether later deliveries of its conversation go ahead of it.
    """

    refusals: int
    counts: bool
    pause_ms: int
    proven: bool = False
    alone: bool = False


class BackPressure:
    """The refusals of one endpoint.

    All times are in milliseconds since the epoch. `began` and `ended` are the times of an attempt.

    Args:
        succeeded_at: start of the endpoint's last successful attempt before this process started, None if
            there was none.
    """

    def __init__(self, succeeded_at: int | None = None) -> None:
        self._refused: dict[str, RefusedDelivery] = {}
        self._open: dict[str, RefusedDelivery] = {}
        self._unwelcome: dict[Key, None] = {}
        self._last_key: Key | None = None
        self._last_at = self._other_at = succeeded_at or 0
        self._selective = False
        self._trial = False
        self._trials_failed = 0
        self._trial_failed_at = 0
        self._until_trial = 0
        self._streak: list[Key] = []
        self._rejected = self._recovered = 0
        self._streak_since = 0
        self._pauses = 0
        self._last_pause_whole = False
        self._paused_until = 0
        self._paused_before = 0

    def forget(self, delivery_id: str) -> None:
        """Remove a delivery that has ended."""
        if self._refused:
            self._refused.pop(delivery_id, None)
            self._open.pop(delivery_id, None)

    def succeeded(self, delivery_id: str, key: Key, refusals: int, *, began: int, ended: int) -> bool:
        """Record a 2xx; return whether the current pause is lifted for a trial."""
        if key != self._last_key:
            self._last_key, self._other_at = key, self._last_at
        self._last_at = began
        if not self._streak_since:
            return False  # no delivery was ever refused
        self._count(recovered=delivery_id in self._refused)
        self.forget(delivery_id)
        self._unwelcome.pop(key, None)
        if began >= self._streak_since:
            self._streak.clear()
            self._pauses = 0
        self._note_evidence(key, began, "within" if not refusals else "after")
        if self._paused_before <= began < self._paused_until and ended < self._paused_until:
            return self._lift_pause(began)  # the success started before the pause but ended after the refusal
        return False

    def refused(
        self, delivery_id: str, key: Key, refusals: int, *, began: int, ended: int, wait_ms: int
    ) -> RefusalDecision:
        """Record a response with `Retry-After`; return the consequences.

        Args:
            refusals: the delivery's refusals so far, from the previous `RefusalDecision.refusals`.
            wait_ms: the requested pause.
        """
        known, unwelcome = self._refused.get(delivery_id), self._certain and key in self._unwelcome
        if refusals >= SUSPECT_REFUSALS and known and not known.proven and known.at <= self._trial_failed_at:
            refusals = 1  # a rate limit caused the refusals
        restarted = known is None and refusals > 0
        if restarted and self._others_succeeded_at(key) >= began - wait_ms:
            # Its wait began before this process started.
            known = RefusedDelivery(key, began - wait_ms, began, "after")
        own = known is not None and (
            known.evidence == "within"
            or (known.evidence == "none" and (unwelcome or refusals >= SUSPECT_REFUSALS))
        )
        if not refusals and not unwelcome:
            self._note_evidence(key, began, "pressed")
        proves_ms = max(wait_ms // 2, wait_ms - _ROUNDING_MS)
        proven = known is not None and (known.proven or known.evidence == "within")
        self._remember(delivery_id, RefusedDelivery(key, ended, ended + proves_ms, proven=proven))
        # A delivery that had its own failure before the start confirms that the receiver is selective.
        self._count(rejected=own or (restarted and refusals >= SUSPECT_REFUSALS))
        if own:
            refusals = min(refusals + 1, REFUSALS_MAX)
        if refusals >= SUSPECT_REFUSALS:
            self._note_unwelcome(key)
            ends_trial = self._trial and not proven and not unwelcome
            pause_ms = self._pause_ms(key, began, ended, wait_ms, _TRIAL_STREAK) if ends_trial else 0
            return RefusalDecision(refusals, own and refusals >= REFUSALS_MAX, pause_ms, proven, alone=True)
        if unwelcome:
            return RefusalDecision(1, False, 0, alone=True)
        streak_max, passed = (
            self._pausing_streak(key, ended, wait_ms),
            known is not None and known.evidence == "after",
        )
        # Results from before the start would end the trial with a pause before it has begun.
        pause_ms = (
            0
            if passed and restarted and streak_max > 1
            else self._pause_ms(key, began, ended, wait_ms, streak_max)
        )
        suspect = passed and not pause_ms
        alone = suspect or (not pause_ms and self._selective)
        return RefusalDecision(SUSPECT_REFUSALS if suspect else 1, False, pause_ms, alone=alone)

    def _remember(self, delivery_id: str, refused: RefusedDelivery) -> None:
        self.forget(delivery_id)
        if len(self._refused) >= _REMEMBERED_MAX:
            self.forget(next(iter(self._refused)))
        self._refused[delivery_id] = self._open[delivery_id] = refused

    def _count(self, *, rejected: bool = False, recovered: bool = False) -> None:
        self._rejected, self._recovered = self._rejected + rejected, self._recovered + recovered
        if self._rejected + self._recovered > _COUNT_MAX:
            self._rejected, self._recovered = self._rejected // 2, self._recovered // 2

    def _note_unwelcome(self, key: Key) -> None:
        self._streak_since = self._streak_since or 1
        self._unwelcome.pop(key, None)  # the newest ones are last
        if len(self._unwelcome) >= _REMEMBERED_MAX:
            del self._unwelcome[next(iter(self._unwelcome))]
        self._unwelcome[key] = None

    def _note_evidence(self, key: Key, began: int, evidence: Evidence) -> None:
        """Record a result of another conversation for all waiting deliveries.

        Each attempt counts once for each wait.
        """
        for delivery_id, refused in [*self._open.items()]:
            if refused.key == key or began < refused.at:
                continue
            long = refused.proves_until - refused.at > _ROUNDING_MS
            if evidence == "pressed" and long and self._certain and began < refused.at + _IMMEDIATE_MS:
                continue
            if (
                evidence == "within"
                and began < refused.proves_until
                and refused.evidence == "none"
                and not long
            ):
                refused.evidence = "once"
                continue
            del self._open[delivery_id]
            refused.evidence = "after" if evidence == "within" and began >= refused.proves_until else evidence
            if refused.evidence == "within":
                self._selective = self._selective or long
                self._trial, self._trials_failed = False, 0

    def _pause_ms(self, key: Key, began: int, ended: int, wait_ms: int, streak_max: int) -> int:
        """Return how long a refusal pauses the endpoint (ms).

        0 before the streak of refusals reaches `streak_max`.
        """
        if not self._streak:
            self._streak_since = ended
        if not self._streak or began >= self._streak_since:
            self._streak.append(key)  # an attempt concurrent with the first refusal proves nothing more
        if self._trial and len(set(self._streak)) >= _MANY_CONVERSATIONS:
            streak_max = _MANY_TRIAL_STREAK
        if len(self._streak) < streak_max:
            return 0
        if self._selective and self._pauses and self._last_pause_whole:
            self._selective = False  # no success since, so all deliveries are refused
        if self._trial:
            self._trial, self._trials_failed = False, self._trials_failed + 1
            self._trial_failed_at = ended
            self._until_trial = min(1 << (self._trials_failed - 1), _PAUSES_BETWEEN_TRIALS_MAX)
        self._streak.clear()
        self._pauses += 1
        growing_ms = _FIRST_PAUSE_MS << min(self._pauses - 1, 10)
        return self._paused(ended, min(wait_ms, growing_ms) if self._selective else wait_ms, wait_ms)

    def _paused(self, ended: int, pause_ms: int, wait_ms: int) -> int:
        self._last_pause_whole = pause_ms >= wait_ms
        if ended >= self._paused_until:
            self._paused_before = self._paused_until
        self._paused_until = max(self._paused_until, ended + pause_ms)
        return pause_ms

    def _pausing_streak(self, key: Key, now: int, wait_ms: int) -> int:
        """Return how many consecutive refusals pause the endpoint.

        Starts a trial if one is due.
        """
        if self._selective and not self._limited:
            return _SELECTIVE_STREAK if self._certain and not self._pauses else _TRIAL_STREAK
        if self._trial or (self._others_succeed(key, now, wait_ms) and self._begins_trial()):
            return _TRIAL_STREAK
        return 1

    def _others_succeed(self, key: Key, now: int, wait_ms: int) -> bool:
        """Return whether another conversation succeeded since the last pause.

        Only a recent success counts.
        """
        at = self._others_succeeded_at(key)
        return at > 0 and at >= self._paused_until and now - at <= max(wait_ms, _RECENT_MS)

    def _others_succeeded_at(self, key: Key) -> int:
        """Return the start of the last success of another conversation, 0 for none."""
        return self._other_at if key == self._last_key else self._last_at

    @property
    def is_limit(self) -> bool:
        """True if the last trial failed, so that the receiver seems to have a rate limit."""
        return self._trials_failed > 0 and not self._selective

    @property
    def _certain(self) -> bool:
        """True if the receiver certainly has no rate limit.

        Several deliveries had failures of their own, and hardly any refused one arrived later.
        """
        return (
            self._rejected >= _CERTAIN_REJECTIONS
            and self._recovered * _REJECTED_PER_RECOVERED <= self._rejected
        )

    @property
    def _limited(self) -> bool:
        """True if many refused deliveries arrived later, as under a rate limit."""
        return (
            self._recovered >= _RATE_LIMIT_RECOVERIES
            and self._recovered * _REJECTED_PER_RECOVERED > self._rejected
        )

    def _begins_trial(self) -> bool:
        self._trial = not self._until_trial
        self._until_trial -= not self._trial
        return self._trial

    def _lift_pause(self, began: int) -> bool:
        """Start a trial, if one is due, instead of the pause that has just begun."""
        if self._selective or self._trial or not self._begins_trial():
            self._paused_before = self._paused_until  # ask for at most one trial
            return False
        self._paused_until = began
        return True
