"""Commits: hooks that add work to one, and notification after it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)


class Commits(Protocol[C_co]):
    """A source of commits, in commit order.

    A domain asks for the part of a commit that it needs: `Commits[LogCommit]`.
    """

    def subscribe(self, receiver: Callable[[C_co], None], *parts: str) -> None:
        """Call `receiver` for each commit, on Trio's thread, before any job of the commit gets its result.

        Receivers are called in order of subscription. A receiver must not block and must not raise: an exception is a bug
        that stops the writer, and with it the process.

        Args:
            parts: attributes of a commit. The receiver is skipped for commits in which all of them are empty. Without
                parts it is called for each commit.
        """


class Subscribers(Generic[C]):
    """The list of receivers that the writer notifies. It implements `Commits`."""

    def __init__(self) -> None:
        self._receivers: list[tuple[Callable[[C], None], tuple[str, ...]]] = []

    def subscribe(self, receiver: Callable[[C], None], *parts: str) -> None:
        """See `Commits.subscribe`."""
        self._receivers.append((receiver, parts))

    def tell(self, commit: C) -> None:
        """Notify the receivers of a commit that is on disk."""
        part_of = partial(getattr, commit)
        for receiver, parts in self._receivers:
            if not parts or any(map(part_of, parts)):
                receiver(commit)


T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
W = TypeVar("W")


class CommitHook(Protocol[T_contra]):
    """Work of another domain in the transaction of a job, for example storing a response or changing a ticket.

    An exception from either method rolls the job back and is raised to the caller. Both methods may run again because a
    job may run again, and the last run counts. `tx` is the store's whole transaction: its type is `Any` because the code
    that passes a hook on may need another part of the transaction than the hook.
    """

    def before(self, tx: Any, /) -> None:
        """Run before the job."""

    def after(self, tx: Any, result: T_contra, /) -> None:
        """Run after the job, with its result."""


def with_hook(job: Callable[[W], T], hook: CommitHook[T] | None) -> Callable[[W], T]:
    """Return a job that runs this one with the hook around it."""
    if hook is None:
        return job

    def both(tx: W) -> T:
        hook.before(tx)
        result = job(tx)
        hook.after(tx, result)
        return result

    return both


class CommitHooks:
    """Several hooks as one. Both methods call the hooks in order.

    Args:
        hooks: the hooks in order. None is skipped.
    """

    def __init__(self, *hooks: CommitHook[Any] | None) -> None:
        self._hooks = tuple(each for each in hooks if each is not None)

    def before(self, tx: Any) -> None:
        """Run each hook before the job."""
        for hook in self._hooks:
            hook.before(tx)

    def after(self, tx: Any, result: Any) -> None:
        """Run each hook after the job."""
        for hook in self._hooks:
            hook.after(tx, result)
