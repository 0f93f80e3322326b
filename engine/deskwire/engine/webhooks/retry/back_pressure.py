"""Back-pressure of a receiver: whether a `Retry-After` concerns the whole endpoint or one delivery; no I/O (ADR 10).

A receiver that is asked too much refuses whatever comes next; one that can't take a certain event, or the events of a contact,
refuses these alone and takes all others. Both answer 429 or 503 with `Retry-After`, so only other deliveries can tell them apart:

- A refusal pauses the endpoint, as long as no other conversation's delivery succeeds.
- A refusal soon after a success of another conversation begins a *trial*: the endpoint is not paused, the conversation waits by itself.
  Refusals of others, one after the other, end the trial with a pause: it is a rate limit, which takes some deliveries in each period. The
  next trial then comes later, the end of each pause is a slow start (`Breaker.room`), and what a delivery's refusals seemed to say of it
  alone is taken back, unless it is proven. A success ends it, too: the receiver is *selective*.
- Refusals pause a selective endpoint only if many come in a row, at first for a second, and longer as long as nothing succeeds.
- A delivery that is refused again has failed by itself if others, which had not been refused before, succeeded at once while it waited,
  or if nothing was sent that could have taken its room. What succeeds at the end of its wait, or after it, proves nothing.
- Once deliveries have failed by themselves, and hardly any refused one has arrived later, the receiver is *certain* to have no rate limit. From
  then on the refusals of conversations that had such a delivery say nothing about the endpoint, until one of theirs arrives.

Only a delivery's `refusals` and the endpoint's last success are stored: after a restart, and on another node, these begin a trial at
once, so the rest is learned again without a pause.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

REFUSALS_MAX: Final = 3
"""Refusals in a row, with a success of another conversation in between, after which a delivery has failed by itself."""

SUSPECT_REFUSALS: Final = 2
"""Refusals from which on a delivery never pauses the endpoint, except by ending a trial."""

_TRIAL_STREAK: Final = 16
"""Refusals in a row without a success that pause the endpoint in a trial: fewer are likely if four of five events are refused."""

_MANY_TRIAL_STREAK: Final = 40
"""The same if they are of many conversations: 16 in a row are likely if nine of ten conversations are refused, 40 are not. If a rate limit
refuses the same few, each costs them an attempt, so those still end the trial after 16."""

_MANY_CONVERSATIONS: Final = 12
"""Conversations in a row of refusals that count as many."""

_SELECTIVE_STREAK: Final = 24
"""The same for a selective receiver: fewer are likely if nine of ten conversations are refused."""

_RECENT_MS: Final = 60_000
"""Age up to which a success shows that other conversations' deliveries succeed; of a longer wait, its length."""

_CERTAIN_REJECTIONS: Final = 4
"""Deliveries that were refused again, while others succeeded, which make it certain that the receiver is selective."""

_REJECTED_PER_RECOVERED: Final = 10
"""The same for each delivery that arrived after a refusal: a rate limit takes a larger share of those that it has refused."""

_RATE_LIMIT_RECOVERIES: Final = 5
"""Deliveries that arrived after a refusal which show a rate limit, if those that were refused again are not many more."""

_COUNT_MAX: Final = 1_000
"""Number at which both counts are halved, so that they speak of the last days and not of the last months."""

_IMMEDIATE_MS: Final = 2_000
"""Time after a refusal in which a success proves that there was room, also if others were refused in between."""

_ROUNDING_MS: Final = 1_000
"""The end of a wait that proves nothing: receivers round it up to whole seconds. Of short waits the second half does not."""

_FIRST_PAUSE_MS: Final = 1_000
_PAUSES_BETWEEN_TRIALS_MAX: Final = 8
"""Pauses between two trials at streak_max; there are more of them after each trial that fails."""

_REMEMBERED_MAX: Final = 10_000
"""Deliveries that wait and are remembered, and unwelcome conversations; of one that is forgotten, no later refusal counts as an attempt."""

Key = int | str
Evidence = Literal["none", "once", "within", "after", "pressed"]


class RefusedDelivery(Struct):
    """A delivery that was told to wait.

    Args:
        key: its conversation, or its own id if it has none.
        at: begin of its wait (ms).
        proves_until: time before which the begin of another one's success proves that there was room (ms).
        evidence: what other conversations' deliveries met first: a success `within` that time or `after` it, or a refusal (`pressed`).
            Of a short wait two successes have to come within it, before a refusal; after one it is `once`.
        proven: whether others succeeded within one of its waits.
    """

    key: Key
    at: int
    proves_until: int
    evidence: Evidence = "none"
    proven: bool = False


class RefusalDecision(Struct, frozen=True):
    """The consequences of a refusal.

    Args:
        refusals: how often the delivery was refused by itself, as far as is known; 1 at first, at streak_max `REFUSALS_MAX`.
        counts: whether the delivery has failed by itself, so that an attempt is used up.
        pause_ms: for how long nothing is sent to the endpoint, 0 for no pause.
        proven: whether others succeeded while it waited, so that there is no outage.
        alone: whether the next delivery of its conversation does not wait for it.
    """

    refusals: int
    counts: bool
    pause_ms: int
    proven: bool = False
    alone: bool = False


class BackPressure:
    """The refusals of one endpoint. All times are in milliseconds since the epoch, begins and ends those of attempts.

    Args:
        succeeded_at: begin of the endpoint's last successful attempt before the start, None if there was none.
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
        """Take note that a delivery has ended."""
        if self._refused:
            self._refused.pop(delivery_id, None)
            self._open.pop(delivery_id, None)

    def succeeded(self, delivery_id: str, key: Key, refusals: int, *, began: int, ended: int) -> bool:
        """Take note of a 2xx; return whether a pause is over, as it turns out to be the time for a trial."""
        if key != self._last_key:
            self._last_key, self._other_at = key, self._last_at
        self._last_at = began
        if not self._streak_since:
            return False  # nothing was ever refused
        self._count(recovered=delivery_id in self._refused)
        self.forget(delivery_id)
        self._unwelcome.pop(key, None)
        if began >= self._streak_since:
            self._streak.clear()
            self._pauses = 0
        self._note_evidence(key, began, "within" if not refusals else "after")
        if self._paused_before <= began < self._paused_until and ended < self._paused_until:
            return self._lift_pause(began)  # the refusal was faster than this success
        return False

    def refused(
        self, delivery_id: str, key: Key, refusals: int, *, began: int, ended: int, wait_ms: int
    ) -> RefusalDecision:
        """Take note of a response with `Retry-After`, and return what follows.

        Args:
            refusals: those of the delivery so far, as `RefusalDecision.refusals` of the one before said.
            wait_ms: the pause that was asked for.
        """
        known, unwelcome = self._refused.get(delivery_id), self._certain and key in self._unwelcome
        if refusals >= SUSPECT_REFUSALS and known and not known.proven and known.at <= self._trial_failed_at:
            refusals = 1  # it was the limit that refused it
        restarted = known is None and refusals > 0
        if restarted and self._others_succeeded_at(key) >= began - wait_ms:
            known = RefusedDelivery(
                key, began - wait_ms, began, "after"
            )  # before the start, of which this is the rest
        own = known is not None and (
            known.evidence == "within"
            or (known.evidence == "none" and (unwelcome or refusals >= SUSPECT_REFUSALS))
        )
        if not refusals and not unwelcome:
            self._note_evidence(key, began, "pressed")
        proves_ms = max(wait_ms // 2, wait_ms - _ROUNDING_MS)
        proven = known is not None and (known.proven or known.evidence == "within")
        self._remember(delivery_id, RefusedDelivery(key, ended, ended + proves_ms, proven=proven))
        # A delivery that had failed by itself before the start shows again that the receiver is selective.
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
        # What others have passed since before the start would end the trial, before it has begun, with a pause.
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
        """Note for all that wait for it what another one has met that began then; each takes part once in a wait."""
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
        """Return for how long the endpoint is paused by a refusal that may be of all, and by the `streak_max`-th in a row is."""
        if not self._streak:
            self._streak_since = ended
        if not self._streak or began >= self._streak_since:
            self._streak.append(key)  # one that was under way beside the first one proves nothing more
        if self._trial and len(set(self._streak)) >= _MANY_CONVERSATIONS:
            streak_max = _MANY_TRIAL_STREAK
        if len(self._streak) < streak_max:
            return 0
        if self._selective and self._pauses and self._last_pause_whole:
            self._selective = False  # nothing has succeeded since, so all are refused
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
        """Return how many refusals in a row pause the endpoint; begin a trial if it is time for one."""
        if self._selective and not self._limited:
            return _SELECTIVE_STREAK if self._certain and not self._pauses else _TRIAL_STREAK
        if self._trial or (self._others_succeed(key, now, wait_ms) and self._begins_trial()):
            return _TRIAL_STREAK
        return 1

    def _others_succeed(self, key: Key, now: int, wait_ms: int) -> bool:
        """Return whether another conversation's delivery has succeeded since the last pause, and not long ago."""
        at = self._others_succeeded_at(key)
        return at > 0 and at >= self._paused_until and now - at <= max(wait_ms, _RECENT_MS)

    def _others_succeeded_at(self, key: Key) -> int:
        """Return when the last attempt began that another conversation's delivery succeeded with, 0 for never."""
        return self._other_at if key == self._last_key else self._last_at

    @property
    def is_limit(self) -> bool:
        """True if the last trial has failed: the receiver is taken for one with a rate limit."""
        return self._trials_failed > 0 and not self._selective

    @property
    def _certain(self) -> bool:
        """True if deliveries have failed by themselves, and hardly any refused one has arrived later."""
        return (
            self._rejected >= _CERTAIN_REJECTIONS
            and self._recovered * _REJECTED_PER_RECOVERED <= self._rejected
        )

    @property
    def _limited(self) -> bool:
        """True if many a delivery that was refused has arrived later, as under a rate limit."""
        return (
            self._recovered >= _RATE_LIMIT_RECOVERIES
            and self._recovered * _REJECTED_PER_RECOVERED > self._rejected
        )

    def _begins_trial(self) -> bool:
        self._trial = not self._until_trial
        self._until_trial -= not self._trial
        return self._trial

    def _lift_pause(self, began: int) -> bool:
        """Begin a trial, if it is time for one, in place of the pause that has just begun."""
        if self._selective or self._trial or not self._begins_trial():
            self._paused_before = self._paused_until  # one trial is enough to be asked for
            return False
        self._paused_until = began
        return True
