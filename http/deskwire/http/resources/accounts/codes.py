"""Codes of authenticator apps and recovery codes: throttled, recorded, and each used once."""

from __future__ import annotations

from typing import Any, Final

import structlog

from deskwire.engine.accounts.factors.changes import invalid_code, use_code
from deskwire.engine.accounts.people import User
from deskwire.engine.core.encryption import DecryptionFailed
from deskwire.engine.core.errors import TooManyRequests, Unauthenticated
from deskwire.engine.core.limits.network import remote_network
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.ports import Transaction
from deskwire.http.api.calls import Call
from deskwire.http.resources.accounts.sign_ins import record_failure

log: Final = structlog.get_logger(__name__)


class GivenCodes:
    """The code that a call gives for a user: of the authenticator app, or a recovery code.

    A code is read without its blanks, as apps show one between the halves.
    """

    def __init__(self, call: Call[Any, Any], user: User, code: str | None, recovery: str | None) -> None:
        self._user = user
        self._code = None if code is None else "".join(code.split())
        self._recovery = recovery
        self._opened = call.services.second_factors.open
        self._now = call.services.clock()

    def used(self, tx: Transaction) -> str | None:
        """Use the code once, and return its method. Return None for a wrong or used code."""
        try:
            return use_code(tx, self._user, self._code, self._recovery, self._opened, self._now)
        except (
            DecryptionFailed
        ):  # after a start with `--new-secret`, only recovery codes and passkeys are left
            log.error("sign_in.factor_unreadable", user=self._user.id)
            return None


async def require_code(
    call: Call[Any, Any], user: User, code: str | None, recovery: str | None
) -> str | None:
    """Check and use the code of a user with a second factor, and return its method. A user without one needs none.

    Raises Unauthenticated (`second_factor_required`, `invalid_code`) or TooManyRequests (`too_many_sign_ins`).
    """
    factors = await call.services.store.read(InlineQuery(lambda reader: reader.factors(user.rowid)))
    if not factors.any:
        return None
    if code is None and recovery is None:
        raise Unauthenticated(
            "The account has a second factor: also send a `code` of the authenticator app, or a `recoveryCode`.",
            code="second_factor_required",
        )
    given = GivenCodes(call, user, code, recovery)
    try:
        with call.services.second_factors.throttle.attempt(user.email, remote_network(call.address)):
            method = await call.signed(user).services.store.write(given.used)
            if method is None:
                raise invalid_code()
            return method
    except (TooManyRequests, Unauthenticated) as refusal:
        await note_wrong_code(call, user, refusal)
        raise


async def note_wrong_code(
    call: Call[Any, Any], user: User, refusal: TooManyRequests | Unauthenticated
) -> None:
    """Log and record a wrong code."""
    log.warning("sign_in.failed", address=call.address, reason=refusal.reason)  # for tools that ban addresses
    await record_failure(call, user, refusal)
