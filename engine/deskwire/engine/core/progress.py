"""The progress of something that takes long, told to whoever wants to know."""

from __future__ import annotations

from typing import Protocol


class Tell(Protocol):
    """Takes the name of the step that is under way, as words for people."""

    def __call__(self, name: str, done: int = 0, total: int | None = None) -> None:
        """Take how much of the step is done.

        Args:
            done, total: in any unit; a `total` of None is not known.
        """


def nobody(name: str, done: int = 0, total: int | None = None) -> None:
    """Tell nobody."""
