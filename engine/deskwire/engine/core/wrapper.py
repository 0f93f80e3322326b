"""The wrapper of a job: work of another domain that is done in the same transaction.

A request's answer is kept, and a ticket changed, in the very commit of what they belong to; whoever makes that commit
knows neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
W = TypeVar("W")


class Wrapper(Protocol[T_contra]):
    """Two halves around a job, in its transaction. What either raises undoes that, and refuses what was asked for.

    Both may be called again, as a job may be run again: the last time counts. They are given the store's whole
    transaction, of which each says what it needs; whoever passes it on may need another part.
    """

    def before(self, tx: Any, /) -> None:
        """Do what comes before the job."""

    def after(self, tx: Any, result: T_contra, /) -> None:
        """Do what comes behind the job, and depends on its result."""


def wrapped(job: Callable[[W], T], wrapper: Wrapper[T] | None) -> Callable[[W], T]:
    """Return a job that does what this one does and what its wrapper adds."""
    if wrapper is None:
        return job

    def both(tx: W) -> T:
        wrapper.before(tx)
        result = job(tx)
        wrapper.after(tx, result)
        return result

    return both


class Wrappers:
    """Several wrappers as one; the second half of the last one comes last.

    Args:
        wrappers: in order; None is left out.
    """

    def __init__(self, *wrappers: Wrapper[Any] | None) -> None:
        self._wrappers = tuple(each for each in wrappers if each is not None)

    def before(self, tx: Any) -> None:
        """Do what comes before the job."""
        for wrapper in self._wrappers:
            wrapper.before(tx)

    def after(self, tx: Any, result: Any) -> None:
        """Do what comes after the job."""
        for wrapper in self._wrappers:
            wrapper.after(tx, result)
