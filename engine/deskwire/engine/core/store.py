"""The port to durable state. It knows no domain: each domain asks for a store with its own reader and transaction.

`Store[TicketReader, TicketTransaction]` passes a `TicketReader` to queries and a `TicketTransaction` to jobs. Both types are
covariant, so that the store with all readers and transactions serves every domain.

Queries and jobs are synchronous functions. A job must depend only on its arguments and the transaction because it runs
again if another job in its group commit fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar, overload

from msgspec import Struct

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R_co = TypeVar("R_co", covariant=True)
W_co = TypeVar("W_co", covariant=True)
R_contra = TypeVar("R_contra", contravariant=True)
W_contra = TypeVar("W_contra", contravariant=True)


class InlineQuery(Struct, Generic[R_contra, T], frozen=True):
    """A query for `Store.read` that reads one or a few rows by key.

    The store may run it on Trio's thread.

    Awaiting it may or may not let other tasks run. Callers must not rely on either.
    """

    query: Callable[[R_contra], T]

    def __call__(self, reader: R_contra, /) -> T:
        """Run the query."""
        return self.query(reader)


class InlineJob(Struct, Generic[W_contra, T], frozen=True):
    """A job for `Store.write` that takes well below a millisecond at any database size.

    It may block Trio's thread.
    """

    job: Callable[[W_contra], T]

    def __call__(self, tx: W_contra, /) -> T:
        """Run the job."""
        return self.job(tx)


class Revisable(Protocol[W_contra, T_co]):
    """A job that was decided on an in-memory state which other nodes may have changed since.

    A store that several nodes share calls `again` in the same transaction if the state was stale. A store with a single
    writer runs it like any other job.
    """

    @property
    def order(self) -> str:
        """Key of the changed object.

        Jobs with the same key are committed in the order in which they were submitted.
        """

    @property
    def log(self) -> int | None:
        """Number of the only log that the job appends to.

        None if it may append to several, or wait for other writers.
        """

    def __call__(self, tx: W_contra, /) -> T_co:
        """Run the job. Raises StaleState, with nothing changed, if it must be decided again."""

    def again(self, tx: W_contra, /) -> T_co:
        """Decide again on the stored state, and run that."""

    def needs(self, *, again: bool) -> Iterable[Callable[[W_contra], object]]:
        """Return the reads with which the job starts, one function each, so that a store can batch those of several jobs.

        Args:
            again: whether to include the reads of `again`.
        """


class Store(Protocol[R_co, W_co]):
    """Durable state. The changes of a job survive a crash once `write` has returned.

    The first overloads of `read` and `write` only let a type checker infer the argument of a lambda.
    """

    @overload
    async def read(self, query: InlineQuery[R_co, T]) -> T: ...
    @overload
    async def read(self, query: Callable[[R_co], T]) -> T: ...
    async def read(self, query: Callable[[R_co], T]) -> T:
        """Return the result of the query.

        It reads one snapshot, which includes every acknowledged change.

        Raises:
            Unavailable: the database failed or took too long.
            DomainError: raised by the query.

        Cancellation: the query may still run. An `InlineQuery` is a cancellation point, but it does not always let other
        tasks run.
        """

    @overload
    async def write(self, job: InlineJob[W_co, T]) -> T: ...
    @overload
    async def write(self, job: Callable[[W_co], T]) -> T: ...
    async def write(self, job: Callable[[W_co], T]) -> T:
        """Run `job` in the next group commit and return its result once that is on disk.

        Raises:
            Unavailable: the commit failed, nothing of the job is stored.
            DomainError, StaleState: raised by the job, nothing of it is stored.

        Cancellation: the job may still run. Only its result is lost.
        """

    def submit(self, job: Callable[[W_co], T], ended: Callable[[T | Exception], None]) -> None:
        """Add a job to the next group commit without waiting.

        Its result is passed to `ended` on Trio's thread.

        Raises Unavailable, without calling `ended`, if the job is not accepted.

        Args:
            ended: called once, with the value or exception that `write` would have given. Callbacks run in commit order.
                Must not raise.
        """
