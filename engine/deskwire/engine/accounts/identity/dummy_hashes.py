"""Stand-in hashes for addresses without an account, so that the time of a check tells nobody who has one.

After the cost of hashing was changed, accounts differ by what they cost until their owners have signed in. So an address
without an account costs what some account does: which one follows from the address and a secret, and each kind of
hash stands for as many addresses as it has accounts. As accounts come to today's cost, so do such addresses (ADR 15).
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
"""The age up to which the number of accounts of each cost is used: counting goes over all accounts."""
_SALT_BYTES: Final = 16
_HASH_BYTES: Final = 32
_SHARES: Final = 1 << 64


class DummyHashes:
    """Hashes that fit no password, each of the cost that some account's hash has.

    Args:
        today: the beginning of the hashes made now (`Passwords.cost`).
        secret: decides which address costs what; the same after a restart.
        clock: Trio's.
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
        """Return the stand-in for an address; the work is the same whether it has an account."""
        now = self._clock()
        if now >= self._stale_at:
            self._costs = await self._store.read(lambda reader: reader.password_costs())
            self._stale_at = now + COSTS_MAX_AGE_S
        digest = blake2b(
            address_key(email).encode("utf-8", "surrogatepass"), digest_size=8, key=self._secret
        ).digest()
        return dummy_hash(cost_of_share(self._costs, self._today, int.from_bytes(digest)))


def cost_of_share(costs: Mapping[str, int], today: str, share: int) -> str:
    """Return the cost of an address with this share of 2**64. Today's comes last: an address that has it keeps it.

    Args:
        costs: the number of accounts that have each.
    """
    at = 0
    for cost in sorted(costs.keys() - {today}):
        at += costs[cost]
        if share * sum(costs.values()) < at * _SHARES:
            return cost
    return today


def dummy_hash(cost: str) -> str:
    """Return a hash of this cost: random bytes for salt and hash (RFC 9106, encoded as by its authors)."""
    salt, hashed = [
        base64.b64encode(secrets.token_bytes(size)).rstrip(b"=").decode()
        for size in (_SALT_BYTES, _HASH_BYTES)
    ]
    return f"{cost}{salt}${hashed}"
