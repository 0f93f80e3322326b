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
    """The result of the last comparison; `refusal` is None while the database is the expected one.

    All methods may be called from any thread.
    """

    def __init__(self) -> None:
        self.refusal: IdentityRefusal | None = None

    def refuse(self, reason: Reason, detail: str) -> None:
        """Note that the database is another one; logged if that differs from the last comparison."""
        known, self.refusal = self.refusal, IdentityRefusal(reason, detail)
        if known is None or known.reason != reason:
            log.error("database.identity_refused", reason=reason, detail=detail)

    def accept(self) -> None:
        """Note that the database is the expected one; logged if it was not."""
        known, self.refusal = self.refusal, None
        if known is not None:
            log.info("database.identity_accepted", reason=known.reason)

    def by_reason(self) -> Mapping[str, int]:
        """Return 1 for the reason of the present refusal and 0 for all others."""
        refusal = self.refusal
        return {reason: int(refusal is not None and refusal.reason == reason) for reason in REASONS}
