"""The second factors of a user, the organisations that require one, and their store port."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from deskwire.engine.accounts.factors.challenge import Challenge
from deskwire.engine.accounts.people import Organisation
from deskwire.engine.accounts.ports import OrganisationTransaction
from deskwire.engine.accounts.sessions import SessionTransaction
from deskwire.engine.core.clock import iso

PASSKEYS_MAX: Final = 20
"""Maximum number of passkeys per user."""
PENDING_MS: Final = 10 * 60_000
"""Time to confirm the secret of an authenticator app with its first code."""


class Passkey(Struct, frozen=True):
    """A passkey of a user: a key pair in an authenticator, of which the public key is stored.

    Args:
        credential: the id that the authenticator has given it.
        public_key: in the COSE form.
        sign_count: the authenticator's count of its signatures at the last use, 0 if it keeps none.
        user: storage key of its user.
    """

    id: str
    credential: bytes
    public_key: bytes
    sign_count: int
    name: str
    created_at: int
    last_used_at: int | None = None
    user: int = 0
    user_id: str = ""


class Totp(Struct, frozen=True):
    """The authenticator app of a user.

    Args:
        sealed: the encrypted secret.
        used_step: the newest time step whose code was used.
    """

    sealed: bytes
    created_at: int
    used_step: int = 0


class Factors(Struct, frozen=True):
    """The second factors of a user.

    Args:
        totp: the confirmed authenticator app.
        recovery_codes: number of unused recovery codes. They replace a factor, and do not count as one.
    """

    totp: Totp | None = None
    passkeys: Sequence[Passkey] = ()
    recovery_codes: int = 0

    @property
    def any(self) -> bool:
        """True if the user has a second factor."""
        return self.totp is not None or bool(self.passkeys)

    @property
    def count(self) -> int:
        """The number of second factors."""
        return len(self.passkeys) + (self.totp is not None)

    @property
    def methods(self) -> Sequence[str]:
        """The methods that finish a sign-in after the password."""
        if not self.any:
            return ()
        return (
            *(("totp",) if self.totp is not None else ()),
            *(("recoveryCode",) if self.recovery_codes else ()),
            *(("passkey",) if self.passkeys else ()),
        )


NO_FACTORS: Final = Factors()


def factors_view(factors: Factors) -> dict[str, Any]:
    """Return the object of a user's second factors."""
    totp = factors.totp
    return {
        "totp": None if totp is None else {"createdAt": iso(totp.created_at)},
        "passkeys": [passkey_view(each) for each in factors.passkeys],
        "recoveryCodesLeft": factors.recovery_codes,
    }


def passkey_view(passkey: Passkey) -> dict[str, Any]:
    """Return the object of a passkey."""
    used = passkey.last_used_at
    return {
        "id": passkey.id,
        "name": passkey.name,
        "createdAt": iso(passkey.created_at),
        "lastUsedAt": None if used is None else iso(used),
    }


class FactorReader(Protocol):
    """Queries on second factors and challenges. Users and organisations are given by their storage keys."""

    def factors(self, user: int) -> Factors:
        """Return the second factors of a user."""

    def passkey(self, credential: bytes) -> Passkey | None:
        """Return the passkey with this id of its authenticator."""

    def pending_totp(self, user: int) -> Totp | None:
        """Return the authenticator app that the user has not confirmed yet."""

    def has_passkeys(self) -> bool:
        """Return whether any user has a passkey."""

    def challenge(self, hashed: bytes) -> Challenge | None:
        """Return the challenge with this SHA-256 of its secret."""

    def lacks_factor(self, organisation: int, user: int) -> bool:
        """Return whether the organisation requires a second factor that the user does not have."""

    def requires_factor(self, organisation: int) -> bool:
        """Return whether the organisation requires a second factor of its members."""

    def organisations_requiring_factor(self, user: int) -> Sequence[Organisation]:
        """Return the user's organisations that require a second factor, in the order of their creation."""

    def owner_has_factor(self, organisation: int) -> bool:
        """Return whether an owner of the organisation has a second factor."""


class FactorTransaction(SessionTransaction, OrganisationTransaction, FactorReader, Protocol):
    """Changes of second factors and challenges."""

    def lock_user(self, user: int) -> None:
        """Block other transactions that lock the user until this one ends, also on other nodes."""

    def put_pending_totp(self, user: int, sealed: bytes, at: int) -> None:
        """Store the secret of an authenticator app to be confirmed, in place of an earlier one."""

    def confirm_totp(self, user: int, step: int, at: int) -> None:
        """Make the pending authenticator app the user's own, in place of an earlier one.

        Args:
            step: time step of the code that confirmed it.
        """

    def use_totp(self, user: int, step: int) -> bool:
        """Store that the code of a time step was used. Return False if it, or a later one, was used before."""

    def delete_totp(self, user: int) -> bool:
        """Delete the authenticator app of a user. Return whether there was one."""

    def insert_passkey(self, passkey: Passkey) -> None:
        """Store a new passkey."""

    def use_passkey(self, passkey_id: str, before: int, sign_count: int, at: int) -> bool:
        """Store the use of a passkey. Return False if its sign count is no longer `before`."""

    def delete_passkey(self, user: int, passkey_id: str) -> bool:
        """Delete a passkey of a user. Return whether there was one."""

    def replace_recovery_codes(self, user: int, hashes: Sequence[bytes]) -> None:
        """Store the hashes of new recovery codes in place of all earlier ones."""

    def use_recovery_code(self, user: int, hashed: bytes) -> bool:
        """Delete a recovery code. Return whether there was one with this hash."""

    def record_factor(self, action: str, user: int, factor: str | None) -> None:
        """Record a change of a user's second factors, or the use of a recovery code, in the audit trail."""

    def delete_factors(self, user: int) -> None:
        """Delete all second factors, recovery codes and challenges of a user."""

    def require_factor(self, organisation: int, required: bool) -> None:
        """Store whether the organisation requires a second factor of its members, with an audit record of the change."""

    def insert_challenge(self, challenge: Challenge, hashed: bytes) -> None:
        """Store a challenge. It replaces an earlier one of the same kind and session."""

    def proof_challenge(self, session_id: str) -> Challenge | None:
        """Return the challenge of the proof that a session has begun, locked until the transaction ends."""

    def claim_challenge(self, hashed: bytes) -> Challenge | None:
        """Return the challenge with this SHA-256 of its secret, locked until the transaction ends."""

    def ask_passkey(self, challenge: int, webauthn: bytes) -> None:
        """Store the bytes that a passkey has to sign for the challenge with this storage key."""

    def count_wrong_code(self, challenge: int) -> None:
        """Count a wrong code for the challenge with this storage key."""

    def end_challenge(self, challenge: int) -> bool:
        """Delete the challenge with this storage key. Return whether it existed."""

    def prune_challenges(self, now: int, limit: int) -> int:
        """Delete up to `limit` challenges that ended before `now` (ms). Return the number deleted."""
