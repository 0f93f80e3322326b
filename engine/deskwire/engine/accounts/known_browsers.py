"""The browsers with which users have signed in before, so that a sign-in with another one is recorded as such.

A browser is known by a random secret in a cookie of its own, which outlives the session. The secret proves nothing: it is stored as
its SHA-256, and a sign-in with it needs the same proof as any other.
"""

from __future__ import annotations

from typing import Final, Protocol

from deskwire.engine.accounts.people import User

KNOWN_FOR_S: Final = 365 * 86_400
"""The time after its last sign-in for which a browser is known."""

BROWSERS_MAX: Final = 100
"""Maximum number of known browsers per user. One more replaces the one whose last sign-in is longest ago."""


class KnownBrowserTransaction(Protocol):
    """Changes of known browsers."""

    def browser_known(self, user: int, hashed: bytes, since: int) -> bool:
        """Return whether a user (storage key) has signed in with a browser after `since` (ms)."""

    def note_browser(self, user: int, hashed: bytes, at: int, kept: int) -> None:
        """Store the time (ms) of a user's sign-in with a browser. At most `kept` browsers of the user remain."""

    def prune_browsers(self, before: int, limit: int) -> int:
        """Delete up to `limit` browsers whose last sign-in was at or before a time (ms) and return the number deleted."""


def note_sign_in(tx: KnownBrowserTransaction, user: User, hashed: bytes, at: int) -> bool:
    """Store that a user signed in with a browser at `at` (ms). Return whether the user had not done so within a year."""
    known = tx.browser_known(user.rowid, hashed, at - KNOWN_FOR_S * 1000)
    tx.note_browser(user.rowid, hashed, at, BROWSERS_MAX)
    return not known
