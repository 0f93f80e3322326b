"""Commits: hooks that add work to one, and notification after it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

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


T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
W = TypeVar("W")


class CommitHook(Protocol[T_contra]):
    """Two halves around a job, in its transaction. What either raises undoes that, and refuses what was asked for.

    Both may be called again, as a job may be run again: the last time counts. They are given the store's whole
    transaction, of which each says what it needs; whoever passes it on may need another part.
    """

    def before(self, tx: Any, /) -> None:
        """Do what comes before the job."""

    def after(self, tx: Any, result: T_contra, /) -> None:
        """Do what comes behind the job, and depends on its result."""


def with_hook(job: Callable[[W], T], wrapper: CommitHook[T] | None) -> Callable[[W], T]:
    """Return a job that does what this one does and what its wrapper adds."""
    if wrapper is None:
        return job

    def both(tx: W) -> T:
        wrapper.before(tx)
        result = job(tx)
        wrapper.after(tx, result)
        return result

    return both


class CommitHooks:
    """Several wrappers as one; the second half of the last one comes last.

    Args:
        wrappers: in order; None is left out.
    """

    def __init__(self, *wrappers: CommitHook[Any] | None) -> None:
        self._wrappers = tuple(each for each in wrappers if each is not None)

    def before(self, tx: Any) -> None:
        """Do what comes before the job."""
        for wrapper in self._wrappers:
            wrapper.before(tx)

    def after(self, tx: Any, result: Any) -> None:
        """Do what comes after the job."""
        for wrapper in self._wrappers:
            wrapper.after(tx, result)
