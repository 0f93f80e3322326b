"""The slots for attempts to one endpoint, which bound how many are under way; no waiting, no I/O (ADR 6).

An attempt begins in one of the few *prompt* slots. One that has had no response for a second moves to a *waiting* slot, of
which there are more, as long as one is free: attempts that hang do not hold up those that would be answered at once.
"""

from __future__ import annotations

from typing import Final

PROMPT_S: Final = 1.0
"""Seconds after which an attempt counts as waiting: many times what a response takes."""


class AttemptSlots:
    """The attempts under way to one endpoint. All times are Trio's seconds.

    Args:
        prompt: number of attempts that may be under way besides those that wait.
        waiting: number of attempts that may wait.
    """

    def __init__(self, prompt: int, waiting: int) -> None:
        self._prompt = self._room = prompt
        self._most_waiting = waiting
        self._since: dict[int, float] = {}
        self._waiting: set[int] = set()

    @property
    def free(self) -> bool:
        """Return whether an attempt may begin."""
        return len(self._since) < self._room

    @property
    def used(self) -> bool:
        """Return whether any attempt is under way."""
        return bool(self._since or self._waiting)

    def narrow(self, room: int) -> None:
        """Have at most `room` of the prompt slots used from now on; see `Breaker.room`."""
        self._room = min(room, self._prompt)

    def begin(self, position: int, at: float) -> None:
        """Give a slot to the delivery's attempt; `end` must follow."""
        self._since[position] = at

    def end(self, position: int) -> None:
        """Take the slot back."""
        if self._since.pop(position, None) is None:
            self._waiting.discard(position)

    def relieve(self, at: float) -> None:
        """Move attempts that have been under way for too long at `at` to waiting slots."""
        while (relief_at := self.relief_at()) is not None and relief_at <= at:
            position = next(iter(self._since))
            del self._since[position]
            self._waiting.add(position)

    def relief_at(self) -> float | None:
        """Return the time at which the next attempt may be moved; None if none can be."""
        if not self._since or len(self._waiting) >= self._most_waiting:
            return None
        return next(iter(self._since.values())) + PROMPT_S  # they are in the order of their begin
