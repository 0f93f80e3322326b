"""Step-up: sensitive calls of a session need a recent proof of who uses the session.

A stolen cookie alone cannot create a server key or add a member: the thief lacks the password or the second factor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from deskwire.engine.accounts.factors.factor import Factors
from deskwire.engine.accounts.people import User
from deskwire.engine.accounts.sessions import BrowserSession
from deskwire.engine.core.errors import Forbidden

PROOF_MAX_AGE_MS: Final = 15 * 60_000
"""Maximum age of the proof for a sensitive call. NIST SP 800-63B calls it reauthentication."""


class FreshProofRequired(Forbidden):
    """The call needs a recent proof of who uses the session, by one of `methods`."""

    code: ClassVar[str] = "fresh_proof_required"

    def __init__(self, methods: Sequence[str]) -> None:
        shown: Mapping[str, Any] = {"methods": list(methods)}
        super().__init__(
            "This call needs a proof of who uses the session that is at most 15 minutes old: POST /v3/auth/session/proof.",
            shown=shown,
        )


def is_fresh(proved_at: int, now: int) -> bool:
    """Return whether a proof at `proved_at` is recent enough for a sensitive call. Both are in milliseconds.

    A proof of the future was made before the clock was set back, and must not last until then.
    """
    return abs(now - proved_at) < PROOF_MAX_AGE_MS


def vouched(session: BrowserSession | None) -> bool:
    """Return whether an identity provider vouches for a second factor of the session's user."""
    return session is not None and session.vouched


def proof_methods(user: User, session: BrowserSession, factors: Factors, *, passwords: bool) -> Sequence[str]:
    """Return the methods by which the user of a session can prove who uses it.

    A user with a second factor proves it by that factor, because a thief may know the password.

    Args:
        passwords: whether users may sign in here with a password.
    """
    by_provider = () if session.provider is None else (f"oidc:{session.provider}",)
    if factors.any:
        own = tuple(each for each in factors.methods if each != "recoveryCode")
        return (*own, *(by_provider if vouched(session) else ()))
    by_password = passwords and user.password_hash is not None
    return (*(("password",) if by_password else ()), *by_provider)
