"""What tells those who follow the commits, as soon as each is on disk.

A domain asks for `Commits[LogCommit]`, commits of which it knows no more than it needs; the real commit knows all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)


class Commits(Protocol[C_co]):
    """The commits from now on, in their order."""

    def subscribe(self, receiver: Callable[[C_co], None]) -> None:
        """Have `receiver` called for each commit, on Trio's thread, before any of its jobs is answered.

        Receivers are called in the order in which they have subscribed. One must not wait, and must not raise: that
        is a bug, which ends the writer, and with it the program.
        """


class Subscribers(Generic[C]):
    """`Commits` as whoever commits sees it."""

    def __init__(self) -> None:
        self._receivers: list[Callable[[C], None]] = []

    def subscribe(self, receiver: Callable[[C], None]) -> None:
        """See `Commits.subscribe`."""
        self._receivers.append(receiver)

    def tell(self, commit: C) -> None:
        """Tell all of them of a commit that is on disk."""
        for receiver in self._receivers:
            receiver(commit)
