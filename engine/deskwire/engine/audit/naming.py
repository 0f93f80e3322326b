"""A store whose writes the audit trail records in somebody's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from deskwire.engine.audit.ports import AuditTransaction
from deskwire.engine.audit.trail import By
from deskwire.engine.core.store import Brief, Store

T = TypeVar("T")
R = TypeVar("R")
W = TypeVar("W", bound=AuditTransaction)


class InNameOf(Struct, Generic[R, W], frozen=True):
    """A store whose writes the audit trail records as done by `by`."""

    by: By
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
