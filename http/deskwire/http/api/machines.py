"""The machine credentials that were looked up, for as long as nothing about them and projects changes.

As with server keys, the hash of a secret is what is remembered, and any commit that changes a credential makes all of it
forgotten before that commit is answered. What ends by the clock is found out with each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from msgspec import Struct, field

from deskwire.engine.accounts.machines import (
    Machine,
    check_secret,
    check_still_valid,
    hash_secret,
    machine_by_secret,
)
from deskwire.engine.accounts.ports import CallerCommit
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.ports import Reader, Store, Transaction

T = TypeVar("T")

_KEPT_MAX: Final = 1_000
"""Credentials that are remembered; with more of them in use at once each is looked up now and then."""


class WhileGood(Struct, frozen=True):
    """A store whose reads are refused once a machine credential has ended, or has lost one of these permissions."""

    store: Store
    name: str
    permissions: frozenset[str]
    clock: Clock

    async def write(self, job: Callable[[Transaction], T]) -> T:
        """See `Store.write`."""
        return await self.store.write(job)

    def submit(self, job: Callable[[Transaction], T], ended: Callable[[T | Exception], None]) -> None:
        """See `Store.submit`."""
        self.store.submit(job, ended)

    async def read(self, query: Callable[[Reader], T]) -> T:
        """See `Store.read`."""
        now = self.clock()

        def checked(reader: Reader) -> T:
            check_still_valid(reader, self.name, self.permissions, now)
            return query(reader)

        return await self.store.read(InlineQuery(checked) if isinstance(query, InlineQuery) else checked)


class Machines(Struct):
    """The machine credentials of the callers."""

    store: Store
    _known: dict[bytes, Machine] = field(default_factory=dict)

    async def authenticate(self, secret: str, now: int) -> tuple[Machine, str]:
        """Return the credential with this secret, and the name under which that authorizes what outlasts the call.

        Raises Unauthenticated if there is none, or it is good no more.
        """
        hashed, known = hash_secret(secret), self._known
        found = known.get(hashed)
        if found is None:
            found = await self.store.read(InlineQuery(lambda reader: machine_by_secret(reader, hashed)))
            if len(known) >= _KEPT_MAX:
                known.clear()
            known[hashed] = found
        return found, check_secret(found, hashed, now)

    async def check(self, name: str, permissions: Iterable[str], now: int) -> None:
        """Raise Unauthenticated or Forbidden if a call that has gone on for a while may not go on.

        Args:
            name: the one that `authenticate` has returned.
            permissions: those that the call needs.
        """
        await self.store.read(InlineQuery(lambda reader: check_still_valid(reader, name, permissions, now)))

    def follow(self, commits: Commits[CallerCommit]) -> None:
        """Forget what commits change from now on."""
        commits.subscribe(lambda _: self.forget(), "callers")

    def forget(self) -> None:
        """Look all up again: credentials or projects have changed."""
        self._known = {}  # a look-up under way remembers what it finds in the old one
