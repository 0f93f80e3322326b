"""The access tokens that have ended before their time, remembered for as long as none is added.

As with sessions, the commit that ends a token makes all of it forgotten before that commit is answered, on every node.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct, field

from deskwire.engine.accounts.access_tokens import AccessTokenReader
from deskwire.engine.accounts.credentials import TokenIdentity
from deskwire.engine.accounts.sessions import SessionCommit
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.errors import RefusedCredential, Unauthenticated
from deskwire.engine.core.store import InlineQuery, Store


class _Known(Struct):
    ids: Collection[str] | None = None


class EndedTokens(Struct):
    """The ended tokens of the callers; `check` costs a look into a set."""

    store: Store[AccessTokenReader, object]
    _known: _Known = field(default_factory=_Known)

    async def check(self, identity: TokenIdentity, now: int) -> None:
        """Raise Unauthenticated (`token_ended`) if the identity's token has ended.

        Args:
            now: in milliseconds.
        """
        known = self._known
        if known.ids is None:
            known.ids = frozenset(await self.store.read(InlineQuery(lambda reader: reader.ended_tokens(now))))
        if identity.token in known.ids:
            ended = Unauthenticated("This access token was ended; sign in again.", code="token_ended")
            raise ended.of(RefusedCredential("user", identity.value)) if identity.claim == "id" else ended

    def follow(self, commits: Commits[SessionCommit]) -> None:
        """Forget what commits change from now on."""
        commits.subscribe(lambda _: self.forget(), "sessions")

    def forget(self) -> None:
        """Read all again: a token has ended."""
        self._known = _Known()  # a look-up under way remembers what it finds in the old one
