"""The port to durable state, which knows no domain: each asks for a store of its own reader and transaction.

`Store[TicketReader, TicketTransaction]` runs queries that are given a `TicketReader` and jobs that are given a
`TicketTransaction`. Both types are covariant: a store that knows more serves whoever needs less of it.

Queries and jobs are plain and synchronous. A job computes from its arguments and the transaction alone, as it may be
run again when a neighbour in its group commit fails.
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
    """A query of one row by its key, or of a few, for `Store.read`: a store may run it where a thread costs more.

    It is awaited as any other. Whether others run meanwhile is the store's affair, and nobody may count on either.
    """

    query: Callable[[R_contra], T]

    def __call__(self, reader: R_contra, /) -> T:
        """Run the query."""
        return self.query(reader)


class InlineJob(Struct, Generic[W_contra, T], frozen=True):
    """A job for `Store.write` that takes well below a millisecond, whatever is stored: it may hold up Trio's thread."""

    job: Callable[[W_contra], T]

    def __call__(self, tx: W_contra, /) -> T:
        """Do the job."""
        return self.job(tx)


class Revisable(Protocol[W_contra, T_co]):
    """A job that was decided on a state which may be another by then, as others change it, too.

    A store that others write to as well decides it again in the very transaction that it is found out in. One that
    nobody else writes to runs it as any other job.
    """

    @property
    def order(self) -> str:
        """The name of what it changes; jobs of one name are committed in the order in which they were submitted."""

    @property
    def log(self) -> int | None:
        """The number of the one log that the job adds to; None if the job may add to others or wait for other writers."""

    def __call__(self, tx: W_contra, /) -> T_co:
        """Do the job. Raises StaleState if it has to be decided again; nothing was done then."""

    def again(self, tx: W_contra, /) -> T_co:
        """Decide on what is stored, and do that."""

    def needs(self, *, again: bool) -> Iterable[Callable[[W_contra], object]]:
        """Return the reads that the job begins with, each by itself, for a store that fetches those of several jobs at once.

        Args:
            again: whether to add the reads that `again` begins with.
        """


class Store(Protocol[R_co, W_co]):
    """Durable state. What `write` has returned survives a crash.

    The first form of `read` and `write` says nothing new; by it a type checker knows a lambda's argument.
    """

    @overload
    async def read(self, query: InlineQuery[R_co, T]) -> T: ...
    @overload
    async def read(self, query: Callable[[R_co], T]) -> T: ...
    async def read(self, query: Callable[[R_co], T]) -> T:
        """Return the query's result; all that it reads is of one moment, and holds all that was acknowledged before.

        Raises:
            Unavailable: the disk failed, or it took too long.
            DomainError: what the query raised.

        Cancellation: the query may be run all the same. An `InlineQuery` one is a point of cancellation as well, but
        not always one at which others are given a turn.
        """

    @overload
    async def write(self, job: InlineJob[W_co, T]) -> T: ...
    @overload
    async def write(self, job: Callable[[W_co], T]) -> T: ...
    async def write(self, job: Callable[[W_co], T]) -> T:
        """Run `job` in the next group commit and return its result once that is on disk.

        Raises:
            Unavailable: the disk refused; nothing of the job is stored.
            DomainError, StaleState: what the job raised; nothing of it is stored.

        Cancellation: the job may still be run; only its result is lost.
        """

    def submit(self, job: Callable[[W_co], T], ended: Callable[[T | Exception], None]) -> None:
        """Give a job to the next group commit without waiting; its end is told on the Trio thread.

        Raises Unavailable if the job is not taken at all; then `ended` is not called.

        Args:
            ended: called once with what `write` would return or raise, for all jobs in the order of their commits;
                must not raise.
        """
