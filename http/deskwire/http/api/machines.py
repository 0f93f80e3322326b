"""The machine credentials that were looked up, for as long as nothing about them and projects changes.

As with server keys, the hash of a secret is what is remembered, and any commit that changes a credential makes all of it
forgotten before that commit is answered. What ends by the clock is found out with each call.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from deskwire.engine.accounts.machines import Machine, check_good, hash_secret, machine_shown
from deskwire.engine.accounts.ports import CallerCommit
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.store import Inline
from deskwire.engine.ports import Store

_KEPT_MAX: Final = 1_000
"""Credentials that are remembered; with more of them in use at once each is looked up now and then."""


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
            found = await self.store.read(Inline(lambda reader: machine_shown(reader, hashed)))
            if len(known) >= _KEPT_MAX:
                known.clear()
            known[hashed] = found
        return found, check_good(found, hashed, now)

    def follow(self, commits: Commits[CallerCommit]) -> None:
        """Forget what commits change from now on."""
        commits.subscribe(lambda _: self.forget(), "callers")

    def forget(self) -> None:
        """Look all up again: credentials or projects have changed."""
        self._known = {}  # a look-up under way remembers what it finds in the old one
