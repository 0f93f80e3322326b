"""Jobs on their way through the writer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from msgspec import Struct

from deskwire.engine.core.store import InlineJob
from deskwire.engine.ports import Transaction

T = TypeVar("T")


class Job(Struct, Generic[T], eq=False):
    """A job that was handed in.

    Args:
        brief: whether it may share a transaction.
        again: decides anew, on what is stored; None if nothing can.
        needs: returns the reads that it begins with, and with `again=True` those of `again`; None if that is not known.
        order: jobs of the same are committed as they were handed in; None for any order.
        log: the project whose log the job adds to, if it adds to one alone and waits for no other transaction; else None.
        passed: how often a batch went without it, because another transaction had locked a row that it needs.
    """

    run: Callable[[Transaction], T]
    brief: bool
    ended: Callable[[T | Exception], None]
    again: Callable[[Transaction], T] | None = None
    needs: Callable[..., Iterable[Callable[[Transaction], object]]] | None = None
    order: str | None = None
    log: int | None = None
    outcome: T | Exception | None = None
    passed: int = 0


def job_of(job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]) -> Job[T]:
    """Return what was handed in, with what is to be known of it; see `engine.core.store.Revisable`."""
    brief = isinstance(job, InlineJob)
    inner: Any = job.job if isinstance(job, InlineJob) else job
    again = getattr(inner, "again", None)
    if again is None:
        return Job(inner, brief, ended)
    return Job(inner, brief, ended, again, inner.needs, inner.order, inner.log)
