"""Changes of a user's second factors. Each function is a job for one transaction, which first locks the user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from deskwire.engine.accounts.factors.factor import PASSKEYS_MAX, PENDING_MS, FactorTransaction, Passkey
from deskwire.engine.accounts.factors.recovery_codes import hash_recovery_code, new_recovery_codes
from deskwire.engine.accounts.factors.totp import matching_step
from deskwire.engine.accounts.members import member_of
from deskwire.engine.accounts.people import Member, User
from deskwire.engine.accounts.roles import ActingMember, check_reach
from deskwire.engine.core.encryption import DecryptionFailed
from deskwire.engine.core.errors import Conflict, Forbidden, NotFound, Unauthenticated
from deskwire.engine.core.values import replace

OpenSecret = Callable[[bytes], str]
"""Decrypts the secret of an authenticator app. Raises DecryptionFailed."""

NEVER_USED: Final = 0


def confirm_totp(
    tx: FactorTransaction, user: User, code: str, opened: OpenSecret, now: int
) -> Sequence[str] | None:
    """Make a pending authenticator app the user's own. Return recovery codes with the first factor, else None.

    Raises Conflict (`no_pending_totp`), or Unauthenticated (`invalid_code`) if the code is not the app's.
    """
    tx.lock_user(user.rowid)
    pending = tx.pending_totp(user.rowid)
    recent = pending is not None and now - pending.created_at < PENDING_MS
    secret = opened_or_none(opened, pending.sealed) if pending is not None and recent else None
    if secret is None:
        raise Conflict(
            "There is no authenticator app to confirm, or it was begun more than 10 minutes ago; begin again.",
            code="no_pending_totp",
        )
    step = matching_step(secret, code, now, NEVER_USED)
    if step is None:
        raise invalid_code()
    codes = _codes_with_first(tx, user)
    tx.confirm_totp(user.rowid, step, now)
    tx.record_factor("account.factor_added", user.rowid, "totp")
    return codes


def add_passkey(tx: FactorTransaction, user: User, passkey: Passkey) -> Sequence[str] | None:
    """Store a new passkey. Return recovery codes with the first factor, else None.

    Raises Conflict: `passkey_known` if the authenticator has it already, or `too_many_passkeys`.
    """
    tx.lock_user(user.rowid)
    if tx.passkey(passkey.credential) is not None:
        raise Conflict("This passkey is registered already.", code="passkey_known")
    if len(tx.factors(user.rowid).passkeys) >= PASSKEYS_MAX:
        raise Conflict(f"A user has at most {PASSKEYS_MAX} passkeys; remove one.", code="too_many_passkeys")
    codes = _codes_with_first(tx, user)
    tx.insert_passkey(passkey)
    tx.record_factor("account.factor_added", user.rowid, "passkey")
    return codes


def remove_totp(tx: FactorTransaction, user: User, session: str | None) -> None:
    """Remove the user's authenticator app.

    Args:
        session: id of the session that asks for it, which remains if this was the last factor.

    Raises NotFound (`factor_not_found`), or Conflict (`last_factor_required`).
    """
    tx.lock_user(user.rowid)
    _require_spare(tx, user)
    if not tx.delete_totp(user.rowid):
        raise _not_found()
    _removed(tx, user, "totp", session)


def remove_passkey(tx: FactorTransaction, user: User, passkey_id: str, session: str | None) -> None:
    """Remove a passkey of the user. See `remove_totp`."""
    tx.lock_user(user.rowid)
    if all(each.id != passkey_id for each in tx.factors(user.rowid).passkeys):
        raise _not_found()
    _require_spare(tx, user)
    tx.delete_passkey(user.rowid, passkey_id)
    _removed(tx, user, "passkey", session)


def renew_recovery_codes(tx: FactorTransaction, user: User) -> Sequence[str]:
    """Replace the user's recovery codes and return the new ones. Raises Conflict (`no_factor`) without a factor."""
    tx.lock_user(user.rowid)
    if not tx.factors(user.rowid).any:
        raise Conflict("Recovery codes replace a second factor, and there is none.", code="no_factor")
    codes = _replace_codes(tx, user)
    tx.record_factor("account.factor_added", user.rowid, "recoveryCodes")
    return codes


def use_code(
    tx: FactorTransaction, user: User, code: str | None, recovery: str | None, opened: OpenSecret, now: int
) -> str | None:
    """Use a code of the authenticator app, or a recovery code, once. Return the method, None for a wrong or used code.

    Raises DecryptionFailed if the stored secret was encrypted by another installation.
    """
    tx.lock_user(user.rowid)
    if recovery is not None:
        if not tx.factors(user.rowid).any or not tx.use_recovery_code(
            user.rowid, hash_recovery_code(recovery)
        ):
            return None
        tx.record_factor("account.recovery_code_used", user.rowid, None)
        return "recoveryCode"
    totp = tx.factors(user.rowid).totp
    if totp is None or code is None:
        return None
    step = matching_step(opened(totp.sealed), code, now, totp.used_step)
    return "totp" if step is not None and tx.use_totp(user.rowid, step) else None


def reset_factors(tx: FactorTransaction, user: User) -> None:
    """Remove all second factors of a user, and end the user's sessions and access tokens.

    The password remains. An intruder who holds a session would otherwise keep it through the reset.
    """
    tx.lock_user(user.rowid)
    tx.delete_factors(user.rowid)
    tx.record_factor("account.factors_reset", user.rowid, None)
    tx.save_user(replace(user, generation=user.generation + 1))


def reset_members_factors(
    tx: FactorTransaction, actor: ActingMember, organisation: int, user_id: str
) -> Member:
    """Remove the second factors of a member who has lost them.

    The account must belong to this organisation alone, because other organisations rely on its factors as well.

    Raises:
        NotFound: there is no such member.
        Forbidden: the member is out of the actor's reach, or the actor itself (`own_factors`).
        Conflict: the account has another home or is a member of another organisation, too (`member_elsewhere`).
    """
    target = member_of(tx, organisation, user_id)
    check_reach(actor, target, "reset an owner's second factors")
    if target.user.rowid == actor.user:
        raise Forbidden(
            "Another manager of members, or the operator, resets your factors.", code="own_factors"
        )
    elsewhere = len(tx.memberships(target.user.rowid, (-1, -1), 2)) > 1
    if target.user.home not in (None, organisation) or elsewhere:
        raise Conflict(
            "The account belongs to another organisation, too; the operator can reset its factors.",
            code="member_elsewhere",
        )
    reset_factors(tx, target.user)
    return target


def require_factor(
    tx: FactorTransaction, organisation: int, user: int, *, required: bool, vouched: bool
) -> None:
    """Set whether an organisation requires a second factor of its members.

    Args:
        user: storage key of the acting user.
        vouched: whether the user's identity provider vouches for a second factor.

    Raises Conflict (`no_owner_with_factor`) if the acting user, or every owner, would be locked out.
    """
    tx.lock_user(user)
    if required and not (vouched or (tx.factors(user).any and tx.owner_has_factor(organisation))):
        raise Conflict(
            "Add a second factor to your own account and to an owner's first; else the organisation would be locked.",
            code="no_owner_with_factor",
        )
    tx.require_factor(organisation, required)


def invalid_code() -> Unauthenticated:
    """Return the refusal of a wrong, expired or used code."""
    return Unauthenticated("The code is wrong, has expired, or was used before.", code="invalid_code")


def opened_or_none(opened: OpenSecret, sealed: bytes) -> str | None:
    """Return the decrypted secret, None if another installation encrypted it."""
    try:
        return opened(sealed)
    except DecryptionFailed:
        return None


def _codes_with_first(tx: FactorTransaction, user: User) -> Sequence[str] | None:
    return None if tx.factors(user.rowid).any else _replace_codes(tx, user)


def _replace_codes(tx: FactorTransaction, user: User) -> Sequence[str]:
    codes = new_recovery_codes()
    tx.replace_recovery_codes(user.rowid, [hash_recovery_code(each) for each in codes])
    return codes


def _require_spare(tx: FactorTransaction, user: User) -> None:
    """Raise Conflict if the user has one factor left and an organisation requires it."""
    requiring = tx.organisations_requiring_factor(user.rowid)
    if requiring and tx.factors(user.rowid).count == 1:
        names = ", ".join(each.name for each in requiring)
        raise Conflict(
            f"A second factor is required by {names}; add another one before you remove the last.",
            code="last_factor_required",
        )


def _removed(tx: FactorTransaction, user: User, factor: str, session: str | None) -> None:
    tx.record_factor("account.factor_removed", user.rowid, factor)
    if not tx.factors(user.rowid).any:
        tx.delete_factors(user.rowid)
        tx.end_sessions(user.rowid, session)


def _not_found() -> NotFound:
    return NotFound("You have no such second factor.", code="factor_not_found")
