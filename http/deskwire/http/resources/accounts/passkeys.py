"""Passkeys in calls: the options for the browser, and the check of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deskwire.engine.accounts.factors.factor import Passkey
from deskwire.engine.accounts.factors.passkeys import (
    RelyingParty,
    credential_id,
    invalid_passkey,
    verify_assertion,
)
from deskwire.engine.core.errors import Conflict
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.ports import Transaction
from deskwire.http.api.calls import Call


class SignedPasskey:
    """A passkey that has signed a challenge, before the transaction that stores its use."""

    def __init__(self, passkey: Passkey, sign_count: int, at: int) -> None:
        self.passkey = passkey
        self._sign_count = sign_count
        self._at = at

    def used(self, tx: Transaction) -> str | None:
        """Store the use, and return its method. Return None if another call has used the passkey since."""
        passkey = self.passkey
        tx.lock_user(passkey.user)
        return (
            "passkey" if tx.use_passkey(passkey.id, passkey.sign_count, self._sign_count, self._at) else None
        )


def party_of(call: Call[Any, Any]) -> RelyingParty:
    """Return the domain and origin for passkeys. Raises Conflict (`passkeys_unavailable`)."""
    party = call.services.sessions.relying_party(call.incoming)
    if party is None:
        raise Conflict(
            "Browsers allow passkeys at an https address with a domain name, or at localhost.",
            code="passkeys_unavailable",
        )
    return party


async def signed_passkey(
    call: Call[Any, Any], assertion: Mapping[str, Any], challenge: bytes | None, user: int | None
) -> SignedPasskey:
    """Return the passkey that has signed the challenge.

    Args:
        user: storage key of the user whose passkey it has to be; None if the passkey names its user.

    Raises Unauthenticated (`invalid_passkey`) or Conflict (`passkeys_unavailable`).
    """
    party, wanted = party_of(call), credential_id(assertion)
    passkey = await call.services.store.read(InlineQuery(lambda reader: reader.passkey(wanted)))
    if passkey is None or challenge is None or (user is not None and passkey.user != user):
        raise invalid_passkey()
    sign_count = verify_assertion(party, assertion, challenge, passkey)
    return SignedPasskey(passkey, sign_count, call.services.clock())
