"""The notification of commits: each follower is told of what concerns it as soon as that is on disk.

A domain asks for `Commits[LogCommit]`, commits of which it knows no more than it needs; the real commit knows all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, Protocol, TypeVar

C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)


class Commits(Protocol[C_co]):
    """The commits from now on, in their order."""

    def subscribe(self, receiver: Callable[[C_co], None], *parts: str) -> None:
        """Have `receiver` called for each commit, on Trio's thread, before any of its jobs is answered.

        Receivers are called in the order in which they have subscribed. One must not wait, and must not raise: that
        is a bug, which ends the writer, and with it the program.

        Args:
            parts: the attributes of a commit that concern the receiver; it is not called for a commit in which all
                of them are empty. Without any it is called for each commit.
        """


class Subscribers(Generic[C]):
    """The receivers of commits; the writer's side of `Commits`."""

    def __init__(self) -> None:
        self._receivers: list[tuple[Callable[[C], None], tuple[str, ...]]] = []

    def subscribe(self, receiver: Callable[[C], None], *parts: str) -> None:
        """See `Commits.subscribe`."""
        self._receivers.append((receiver, parts))

    def tell(self, commit: C) -> None:
        """Tell those whom it concerns of a commit that is on disk."""
        part_of = partial(getattr, commit)
        for receiver, parts in self._receivers:
            if not parts or any(map(part_of, parts)):
                receiver(commit)
