"""The ends of server keys and machine credentials: their longest life, and the warning before they expire."""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct

from deskwire.engine.core.clock import iso, milliseconds
from deskwire.engine.core.errors import Invalid, Problem

WARNING_MS: Final = 7 * 86_400_000
"""The time before its end from which a credential is in the project's health and in the metrics."""

ENDING_MAX: Final = 100
"""Maximum number of ending credentials in a project's health, those that end first."""

CredentialType = Literal["server_key", "machine_credential"]


class EndingCredential(Struct, frozen=True):
    """A credential that is about to expire, at `expires_at` (ms)."""

    type: CredentialType
    id: str
    name: str
    expires_at: int


class CredentialEnds(Struct, frozen=True):
    """Counts of credentials in force: those that are about to expire, and those without an end."""

    ending: int
    endless: int


class CredentialLife(Struct, frozen=True):
    """The longest life of new credentials in milliseconds, None without a limit."""

    longest: int | None = None

    @classmethod
    def of(cls, longest_s: float | None) -> CredentialLife:
        """Return the life for the setting in seconds."""
        return cls(None if longest_s is None else int(longest_s * 1000))

    def end(self, asked: str | None, now: int) -> int | None:
        """Return the expiry time (ms) of a credential that is made or changed at `now`.

        Without a time in the request, it is the latest one that is allowed.

        Raises Invalid for a time in the past, and for one that is too late.
        """
        latest = None if self.longest is None else now + self.longest
        if asked is None:
            return latest
        ends = milliseconds(asked)
        if ends <= now:
            message = "The expiry of a credential must be in the future."
            raise Invalid(Problem("/expiresAt", "not_ahead", message))
        if latest is not None and ends > latest:
            message = f"The operator limits the life of credentials: the latest expiry is {iso(latest)}."
            raise Invalid(Problem("/expiresAt", "too_late", message))
        return ends


def ending_view(credential: EndingCredential) -> dict[str, Any]:
    """Return the object of a credential that is about to expire."""
    return {
        "type": credential.type,
        "id": credential.id,
        "name": credential.name,
        "expiresAt": iso(credential.expires_at),
    }
