"""A store that writes in somebody's name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from deskwire.engine.audit.trail import By
from deskwire.engine.ports import Brief, Reader, Store, Transaction

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InNameOf:
    """`ports.Store`, of which the audit trail says that `by` has written what is written with it."""

    by: By
    store: Store

    async def write(self, job: Callable[[Transaction], T]) -> T:
        """See `ports.Store.write`."""
        return await self.store.write(self._signed(job))

    def submit(self, job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]) -> None:
        """See `ports.Store.submit`."""
        self.store.submit(self._signed(job), ended)

    async def read(self, query: Callable[[Reader], T]) -> T:
        """See `ports.Store.read`."""
        return await self.store.read(query)

    def peek(self, query: Callable[[Reader], T]) -> T:
        """See `ports.Store.peek`."""
        return self.store.peek(query)

    def _signed(self, job: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
        def signed(tx: Transaction) -> T:
            with tx.signed(self.by):
                return job(tx)

        return Brief(signed) if isinstance(job, Brief) else signed
