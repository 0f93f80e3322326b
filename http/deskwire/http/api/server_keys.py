"""The server keys that were looked up, for as long as nothing about keys and projects changes.

A key is looked up for every call, and a query costs more than the rest of the call's checks. The hash of a key is
what is remembered, not the key. Any commit that changes keys or projects makes all of it forgotten, before that
commit is answered: who revokes a key and hears so can rely on it.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from deskwire.engine.accounts.people import ServerKey
from deskwire.engine.accounts.ports import CallerCommit
from deskwire.engine.accounts.server_keys import authenticate_key, hash_server_key
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.ports import Store

_KEPT_MAX: Final = 1_000
"""Keys that are remembered; with more of them in use at once each is looked up now and then."""


class ServerKeys(Struct):
    """The keys of the callers."""

    store: Store
    _known: dict[bytes, ServerKey] = field(default_factory=dict)

    async def authenticate(self, key: str) -> ServerKey:
        """See `authenticate_key`; only valid keys are remembered.

        What was looked up before a change, and found after it, is kept by nobody.
        """
        hashed, known = hash_server_key(key), self._known
        found = known.get(hashed)
        if found is None:
            found = await self.store.read(InlineQuery(lambda reader: authenticate_key(reader, hashed)))
            if len(known) >= _KEPT_MAX:
                known.clear()
            known[hashed] = found
        return found

    def known(self, key: str) -> ServerKey | None:
        """Return the server key, if it is remembered."""
        return self._known.get(hash_server_key(key))

    def follow(self, commits: Commits[CallerCommit]) -> None:
        """Forget what commits change from now on."""
        commits.subscribe(lambda _: self.forget(), "callers")

    def forget(self) -> None:
        """Look all up again: keys or projects have changed."""
        self._known = {}  # a look-up under way remembers what it finds in the old one
