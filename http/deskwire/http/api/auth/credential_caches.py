"""Caches of server keys, machine credentials and ended access tokens.

A credential is looked up for every call, and the query costs more than all other checks of the call. The
caches hold hashes of keys and secrets. A commit that changes credentials or projects invalidates a cache on
every node before it is answered: after the response to a revocation, the credential is refused everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, TypeVar

from msgspec import Struct, field

from deskwire.engine.accounts.access_tokens import AccessTokenReader
from deskwire.engine.accounts.credentials import TokenIdentity
from deskwire.engine.accounts.machines import (
    Machine,
    check_secret,
    check_still_valid,
    hash_secret,
    machine_by_secret,
)
from deskwire.engine.accounts.people import ServerKey
from deskwire.engine.accounts.ports import CallerCommit
from deskwire.engine.accounts.server_keys import authenticate_key, expired, hash_server_key
from deskwire.engine.accounts.sessions import SessionCommit
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.errors import RefusedCredential, Unauthenticated
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.store import Store as ScopedStore
from deskwire.engine.ports import Reader, Store, Transaction

# Entries of a cache; if more credentials are in use, each is looked up now and then.
_CACHE_SIZE_MAX: Final = 1_000


class ServerKeyCache(Struct):
    """The cache of server keys. Their expiry is checked with each call."""

    store: Store
    _known: dict[bytes, ServerKey] = field(default_factory=dict)

    async def authenticate(self, key: str, now: int) -> ServerKey:
        """Return the server key.

        See `authenticate_key`. Only valid keys are cached. Raises Unauthenticated (`key_expired`), too.
        """
        hashed, known = hash_server_key(key), self._known
        found = known.get(hashed)
        if found is None:
            found = await self.store.read(InlineQuery(lambda reader: authenticate_key(reader, hashed)))
            if len(known) >= _CACHE_SIZE_MAX:
                known.clear()
            known[hashed] = found
        if found.expires_at is not None and found.expires_at <= now:
            raise expired(found, found.expires_at)
        return found

    def known(self, key: str) -> ServerKey | None:
        """Return the server key if it is cached."""
        return self._known.get(hash_server_key(key))

    def follow(self, commits: Commits[CallerCommit]) -> None:
        """Invalidate the cache with each commit that changes callers, from now on."""
        commits.subscribe(lambda _: self.invalidate(), "callers")

    def invalidate(self) -> None:
        """Empty the cache: keys or projects have changed."""
        self._known = {}  # a look-up under way stores its result in the old dict


T = TypeVar("T")


class RevocableStore(Struct, frozen=True):
    """A store for one machine credential.

    Reads are refused once the credential has ended, or has lost one of these permissions.
    """

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


class MachineCredentialCache(Struct):
    """The cache of machine credentials. Their expiry is checked with each call."""

    store: Store
    _known: dict[bytes, Machine] = field(default_factory=dict)

    async def authenticate(self, secret: str, now: int) -> tuple[Machine, str]:
        """Return the credential with this secret, and its name.

        The name authorizes work beyond the end of the call.

        Raises Unauthenticated if there is none, or it is no longer valid.
        """
        hashed, known = hash_secret(secret), self._known
        found = known.get(hashed)
        if found is None:
            found = await self.store.read(InlineQuery(lambda reader: machine_by_secret(reader, hashed)))
            if len(known) >= _CACHE_SIZE_MAX:
                known.clear()
            known[hashed] = found
        return found, check_secret(found, hashed, now)

    async def check(self, name: str, permissions: Iterable[str], now: int) -> None:
        """Raise Unauthenticated or Forbidden if a long-running call may not continue.

        Args:
            name: returned by `authenticate`.
            permissions: required by the call.
        """
        await self.store.read(InlineQuery(lambda reader: check_still_valid(reader, name, permissions, now)))

    def follow(self, commits: Commits[CallerCommit]) -> None:
        """Invalidate the cache with each commit that changes callers, from now on."""
        commits.subscribe(lambda _: self.invalidate(), "callers")

    def invalidate(self) -> None:
        """Empty the cache: credentials or projects have changed."""
        self._known = {}  # a look-up under way stores its result in the old dict


class _Known(Struct):
    ids: Collection[str] | None = None


class EndedTokenCache(Struct):
    """The cache of the access tokens that were ended before their expiry.

    `check` is a look-up in a set.
    """

    store: ScopedStore[AccessTokenReader, object]
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
        """Invalidate the cache with each commit that ends a token, from now on."""
        commits.subscribe(lambda _: self.invalidate(), "sessions")

    def invalidate(self) -> None:
        """Read all ended tokens again: a token has ended."""
        self._known = _Known()  # a look-up under way stores its result in the old object
