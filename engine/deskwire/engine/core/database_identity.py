"""The identity of the database: whether the store still uses the database of the installation.

A store compares the database that it opens with the one it used before. SQLite files are compared by descriptor, size and
header, PostgreSQL by system identifier and timeline. Readiness, metrics and the log read the result here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

import structlog
from msgspec import Struct

log: Final = structlog.get_logger(__name__)

Reason = Literal[
    "other_system", "older_timeline", "file_gone", "file_replaced", "file_truncated", "file_damaged"
]
"""Why a database is refused. The first two reasons apply to PostgreSQL, the others to SQLite files."""
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)

WRONG_DATABASE: Final = "wrong_database"
"""Error code of API responses while the database is refused."""


class IdentityRefusal(Struct, frozen=True):
    """The difference between the expected database and the one that was found.

    Args:
        detail: text for the operator, with the steps to take.
    """

    reason: Reason
    detail: str


class DatabaseIdentity:
    """The result of the last comparison. All methods may be called from any thread.

    Attributes:
        refusal: keeps the node from working; None while it has the expected database. Read for each commit, so it is
            no property.
    """

    def __init__(self) -> None:
        self.refusal: IdentityRefusal | None = None
        self._found: IdentityRefusal | None = None

    @property
    def found(self) -> IdentityRefusal | None:
        """The last refusal, whether it blocks the node or not.

        None if the database is the expected one.
        """
        return self._found

    def refuse(self, reason: Reason, detail: str, *, blocking: bool = True) -> None:
        """Record that another database was found.

        Logs if the result differs from the last comparison.

        Args:
            blocking: False if the expected database is available too, so that the node can work.
        """
        known, was_blocking = self._found, self.refusal is not None
        self._found = IdentityRefusal(reason, detail)
        self.refusal = self._found if blocking else None
        if known is None or known.reason != reason or was_blocking != blocking:
            log.error("database.identity_refused", reason=reason, detail=detail, blocking=blocking)

    def accept(self) -> None:
        """Record that the database is the expected one. Logs if it was refused before."""
        known, self._found, self.refusal = self._found, None, None
        if known is not None:
            log.info("database.identity_accepted", reason=known.reason)

    def check(self) -> None:
        """Repeat the comparison if the store can do so without blocking. Runs on Trio's thread."""

    def by_reason(self) -> Mapping[str, int]:
        """Return 1 for the reason of the current refusal, blocking or not, and 0 for all other reasons."""
        found = self._found
        return {reason: int(found is not None and found.reason == reason) for reason in REASONS}
