"""The identity of the database: whether the store still has the one that the installation has used.

A store compares what it opens with what was there before: a file by its descriptor, size and header, a PostgreSQL by its
system identifier and timeline. It notes a difference here, for readiness, metrics and the log.
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
"""The first two are a PostgreSQL's, the others a SQLite file's."""
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)

WRONG_DATABASE: Final = "wrong_database"
"""The code of a refusal because of the database's identity."""


class IdentityRefusal(Struct, frozen=True):
    """The difference that was found.

    Args:
        detail: for the operator, with what to do about it.
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
        """The other database that was found last, blocking or not; None if there is none."""
        return self._found

    def refuse(self, reason: Reason, detail: str, *, blocking: bool = True) -> None:
        """Note another database; logged if that differs from the last comparison.

        Args:
            blocking: False if the expected one is there as well, so that the node can work.
        """
        known, was_blocking = self._found, self.refusal is not None
        self._found = IdentityRefusal(reason, detail)
        self.refusal = self._found if blocking else None
        if known is None or known.reason != reason or was_blocking != blocking:
            log.error("database.identity_refused", reason=reason, detail=detail, blocking=blocking)

    def accept(self) -> None:
        """Note that there is no other database than the expected one; logged if there was."""
        known, self._found, self.refusal = self._found, None, None
        if known is not None:
            log.info("database.identity_accepted", reason=known.reason)

    def look(self) -> None:
        """Compare again, as far as that takes no time; a store that can't does nothing. In Trio's thread."""

    def by_reason(self) -> Mapping[str, int]:
        """Return 1 for the reason of the present refusal, blocking or not, and 0 for all others."""
        found = self._found
        return {reason: int(found is not None and found.reason == reason) for reason in REASONS}
