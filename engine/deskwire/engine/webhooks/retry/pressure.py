"""Back-pressure of a receiver: whether a `Retry-After` concerns the whole endpoint or one delivery; no I/O (ADR 40).

A receiver that is asked too much refuses whatever comes next; one that can't take a certain event, or the events of a contact,
refuses these alone and takes all others. Both answer 429 or 503 with `Retry-After`, so only other deliveries can tell them apart:

- A refusal pauses the endpoint, as long as no other conversation's delivery succeeds.
- A refusal after a pause in which or behind which another conversation's delivery has succeeded begins a *trial*: the endpoint is not
  paused, the delivery keeps its own wait. Refusals of others, one after the other, end the trial with a pause: it is a rate limit, which
  takes some deliveries in each period. The next trial then comes later. A success ends it, too: the receiver is *selective*.
- Refusals pause a selective endpoint only if many come in a row, at first for a second, and longer as long as nothing succeeds.
- A delivery that is refused again has failed by itself if others, which had not been refused before, succeeded at once while it waited,
  or if nothing was sent that could have taken its room. What succeeds at the end of its wait, or after it, proves nothing.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

REFUSALS: Final = 3
"""Refusals in a row, with a success of another conversation in between, after which a delivery has failed by itself."""

SUSPECT: Final = 2
"""Refusals from which on a delivery never pauses the endpoint."""

_STREAK: Final = 8
"""Refusals in a row without a success that pause the endpoint in a trial: fewer are likely if half of all events are refused."""

_ROUNDED_MS: Final = 1_000
"""The end of a wait that proves nothing: receivers round it up to whole seconds. Of short waits the second half does not."""

_FIRST_PAUSE_MS: Final = 1_000
_TRIAL_EVERY_MAX: Final = 8
"""Pauses between two trials at most; there are more of them after each trial that fails."""

_KNOWN_MAX: Final = 10_000
"""Deliveries that wait and are remembered; of one that is forgotten, no later refusal counts as an attempt."""

Key = int | str
Sequel = Literal["none", "once", "within", "after", "pressed"]


class Refused(Struct):
    """A delivery that was told to wait.

    Args:
        key: its conversation, or its own id if it has none.
        at: begin of its wait (ms).
        proves_until: time before which the begin of another one's success proves that there was room (ms).
        sequel: what other conversations' deliveries met first: a success `within` that time or `after` it, or a refusal (`pressed`).
            Of a short wait two successes have to come within it, before a refusal; after one it is `once`.
        proven: whether others succeeded within one of its waits.
    """

    key: Key
    at: int
    proves_until: int
    sequel: Sequel = "none"
    proven: bool = False


class Answer(Struct, frozen=True):
    """The consequences of a refusal.

    Args:
        refusals: how often the delivery was refused by itself, as far as is known; 1 at first, at most `REFUSALS`.
        counts: whether the delivery has failed by itself, so that an attempt is used up.
        pause_ms: for how long nothing is sent to the endpoint, 0 for no pause.
        proven: whether others succeeded while it waited, so that there is no outage.
    """

    refusals: int
    counts: bool
    pause_ms: int
    proven: bool = False


class BackPressure:
    """The refusals of one endpoint. All times are in milliseconds since the epoch, begins and ends those of attempts."""

    def __init__(self) -> None:
        self._refused: dict[str, Refused] = {}
        self._open: dict[str, Refused] = {}
        self._selective = False
        self._trial = False
        self._trials_failed = 0
        self._until_trial = 0
        self._streak = 0
        self._streak_since = 0
        self._pauses = 0
        self._last_pause_whole = False
        self._paused_until: int | None = None
        self._paused_before: int | None = None
        self._succeeded_since_pause = False

    def forget(self, delivery_id: str) -> None:
        """Take note that a delivery has ended."""
        if self._refused:
            self._refused.pop(delivery_id, None)
            self._open.pop(delivery_id, None)

    def succeeded(self, delivery_id: str, key: Key, refusals: int, *, began: int, ended: int) -> bool:
        """Take note of a 2xx; return whether a pause is over, as it turns out to be the time for a trial."""
        self.forget(delivery_id)
        if self._paused_until is None:
            return False
        if began >= self._streak_since:
            self._streak = self._pauses = 0
        self._note_sequel(key, began, "within" if not refusals else "after")
        if began >= self._paused_until:
            self._succeeded_since_pause = True
        elif ended < self._paused_until and self._paused_before is not None and began >= self._paused_before:
            return self._lift_pause(ended)  # the refusal was faster than this success
        return False

    def refused(
        self, delivery_id: str, key: Key, refusals: int, *, began: int, ended: int, wait_ms: int
    ) -> Answer:
        """Take note of a response with `Retry-After`, and return what follows.

        Args:
            refusals: those of the delivery so far, as `Answer.refusals` of the one before said.
            wait_ms: the pause that was asked for.
        """
        known = self._refused.get(delivery_id)
        own = known is not None and (
            known.sequel == "within" or (known.sequel == "none" and refusals >= SUSPECT)
        )
        if not refusals:
            self._note_sequel(key, began, "pressed")
        proves_ms = max(wait_ms // 2, wait_ms - _ROUNDED_MS)
        proven = known is not None and (known.proven or known.sequel == "within")
        self._remember(delivery_id, Refused(key, ended, ended + proves_ms, proven=proven))
        if own:
            refusals = min(refusals + 1, REFUSALS)
        if refusals >= SUSPECT:
            return Answer(refusals, own and refusals >= REFUSALS, 0, proven)
        pause_ms = self._pause_ms(began, ended, wait_ms)
        suspect = not pause_ms and known is not None and known.sequel == "after"
        return Answer(SUSPECT if suspect else 1, False, pause_ms)

    def _remember(self, delivery_id: str, refused: Refused) -> None:
        self.forget(delivery_id)
        if len(self._refused) >= _KNOWN_MAX:
            self.forget(next(iter(self._refused)))
        self._refused[delivery_id] = self._open[delivery_id] = refused

    def _note_sequel(self, key: Key, began: int, sequel: Sequel) -> None:
        """Note for all that wait for it what another one has met that began then; each takes part once in a wait."""
        for delivery_id, refused in [*self._open.items()]:
            if refused.key == key or began < refused.at:
                continue
            long = refused.proves_until - refused.at > _ROUNDED_MS
            if sequel == "within" and began < refused.proves_until and refused.sequel == "none" and not long:
                refused.sequel = "once"
                continue
            del self._open[delivery_id]
            refused.sequel = "after" if sequel == "within" and began >= refused.proves_until else sequel
            if refused.sequel == "within":
                self._selective = self._selective or long
                self._trial, self._trials_failed = False, 0

    def _pause_ms(self, began: int, ended: int, wait_ms: int) -> int:
        """Return for how long the endpoint is paused by a refusal that may be of all."""
        if not self._streak:
            self._streak, self._streak_since = 1, ended
        elif (
            began >= self._streak_since
        ):  # else it was under way beside the first one, and proves nothing more
            self._streak += 1
        if self._streak < self._most(ended):
            return 0
        if self._selective and self._pauses and self._last_pause_whole:
            self._selective = False  # nothing has succeeded since, so all are refused
        if self._trial:
            self._trial, self._trials_failed = False, self._trials_failed + 1
            self._until_trial = min(1 << self._trials_failed, _TRIAL_EVERY_MAX)
        self._streak, self._pauses = 0, self._pauses + 1
        growing_ms = _FIRST_PAUSE_MS << min(self._pauses - 1, 10)
        return self._paused(ended, min(wait_ms, growing_ms) if self._selective else wait_ms, wait_ms)

    def _paused(self, ended: int, pause_ms: int, wait_ms: int) -> int:
        self._last_pause_whole = pause_ms >= wait_ms
        if self._paused_until is None or ended >= self._paused_until:
            self._paused_before = self._paused_until
        self._paused_until = max(self._paused_until or 0, ended + pause_ms)
        self._succeeded_since_pause = False
        return pause_ms

    def _most(self, now: int) -> int:
        """Return how many refusals in a row pause the endpoint; begin a trial if it is time for one."""
        if self._selective or self._trial:
            return _STREAK
        if self._paused_until is not None and now >= self._paused_until and self._succeeded_since_pause:
            return _STREAK if self._begins_trial() else 1
        return 1

    def _begins_trial(self) -> bool:
        self._trial = not self._until_trial
        self._until_trial -= not self._trial
        return self._trial

    def _lift_pause(self, now: int) -> bool:
        """Begin a trial, if it is time for one, in place of the pause that has just begun."""
        if self._selective or self._trial or not self._begins_trial():
            self._paused_before = None  # one trial is enough to be asked for
            return False
        self._paused_until, self._succeeded_since_pause = now, True
        return True
