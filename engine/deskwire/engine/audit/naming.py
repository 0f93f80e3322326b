"""Writes that the audit trail records in a name: those of a store, or those of one commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from deskwire.engine.audit.ports import AuditTransaction
from deskwire.engine.audit.trail import ChangeOrigin, Deed
from deskwire.engine.core.store import Brief, Store

T = TypeVar("T")
R = TypeVar("R")
W = TypeVar("W", bound=AuditTransaction)


class InNameOf(Struct, Generic[R, W], frozen=True):
    """A store whose writes the audit trail records as done by `by`."""

    by: ChangeOrigin
    store: Store[R, W]

    async def write(self, job: Callable[[W], T]) -> T:
        """See `Store.write`."""
        return await self.store.write(self._signed(job))

    def submit(self, job: Callable[[W], T], ended: Callable[[T | Exception], None]) -> None:
        """See `Store.submit`."""
        self.store.submit(self._signed(job), ended)

    async def read(self, query: Callable[[R], T]) -> T:
        """See `Store.read`."""
        return await self.store.read(query)

    def _signed(self, job: Callable[[W], T]) -> Callable[[W], T]:
        def signed(tx: W) -> T:
            with tx.signed(self.by):
                return job(tx)

        return Brief(signed) if isinstance(job, Brief) else signed


class Recording(Struct, Generic[T], frozen=True):
    """A `Wrapper` that records what a job has done, in the commit of an actor or a service with a store of its own."""

    by: ChangeOrigin
    deeds: Callable[[T], Sequence[Deed]]

    def before(self, _tx: object) -> None:
        """Do nothing before the job."""

    def after(self, tx: AuditTransaction, result: T) -> None:
        """Record what the job has done."""
        with tx.signed(self.by):
            tx.record(*self.deeds(result))
