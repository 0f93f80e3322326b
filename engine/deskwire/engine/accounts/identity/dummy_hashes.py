"""Dummy hashes for addresses without an account, so that the time of a sign-in does not reveal which accounts exist.

After a change of the hashing cost, accounts keep their old cost until their owners sign in. So addresses without an account
get costs in the same proportions as the accounts. A keyed hash of the address selects the cost. As accounts move to the
current cost, these addresses do, too (ADR 15).
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Final

from deskwire.engine.accounts.ports import OrganisationReader, OrganisationTransaction
from deskwire.engine.core.folding import address_key
from deskwire.engine.core.store import Store

COSTS_MAX_AGE_S: Final = 60.0
"""Maximum age of the cached account counts by cost. Counting scans all accounts."""
_SALT_BYTES: Final = 16
_HASH_BYTES: Final = 32
_SHARES: Final = 1 << 64


class DummyHashes:
    """Makes hashes that match no password, with the costs of existing accounts.

    Args:
        today: prefix of new hashes (`Passwords.cost`).
        secret: key that maps addresses to costs. It must survive restarts.
        clock: Trio's clock.
    """

    def __init__(
        self,
        store: Store[OrganisationReader, OrganisationTransaction],
        today: str,
        secret: bytes,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._today = today
        self._secret = secret
        self._clock = clock
        self._costs: Mapping[str, int] = {}
        self._stale_at = -1.0

    async def of(self, email: str) -> str:
        """Return the dummy hash for an address.

        The work is the same whether or not the address has an account.
        """
        now = self._clock()
        if now >= self._stale_at:
            self._costs = await self._store.read(lambda reader: reader.password_costs())
            self._stale_at = now + COSTS_MAX_AGE_S
        digest = blake2b(
            address_key(email).encode("utf-8", "surrogatepass"), digest_size=8, key=self._secret
        ).digest()
        return dummy_hash(cost_of_share(self._costs, self._today, int.from_bytes(digest)))


def cost_of_share(costs: Mapping[str, int], today: str, share: int) -> str:
    """Return the cost for the position `share` in the range 0 to 2**64.

    The current cost takes the last part of the range, so that an address which has it keeps it as accounts move to it.

    Args:
        costs: number of accounts by cost.
        today: the current cost.
    """
    at = 0
    for cost in sorted(costs.keys() - {today}):
        at += costs[cost]
        if share * sum(costs.values()) < at * _SHARES:
            return cost
    return today


def dummy_hash(cost: str) -> str:
    """Return a hash of this cost with random salt and hash, in the encoding of the reference implementation (RFC 9106)."""
    salt, hashed = [
        base64.b64encode(secrets.token_bytes(size)).rstrip(b"=").decode()
        for size in (_SALT_BYTES, _HASH_BYTES)
    ]
    return f"{cost}{salt}${hashed}"
