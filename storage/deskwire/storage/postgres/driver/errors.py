"""The errors of a PostgreSQL database, and the refusals that callers get for them."""

from __future__ import annotations

from typing import ClassVar, Final

from deskwire.engine.core.errors import Unavailable

UNIQUE_VIOLATION: Final = "23505"
# The error of a commit whose lane another process has taken, or that arrived after it was looked up.
LANE_TAKEN: Final = "22P02"

QUERY_CANCELED: Final = "57014"
LOCK_NOT_AVAILABLE: Final = "55P03"
INSUFFICIENT_PRIVILEGE: Final = "42501"

# Serialization failure, deadlock and lock timeout: another transaction is the cause.
_RETRYABLE: Final = frozenset({"40001", "40P01", LOCK_NOT_AVAILABLE})
# The server stops, starts or became a standby, or the session was ended or was idle in its transaction for
# too long.
SESSION_OVER: Final = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03", "25P04", "25006"})


class DatabaseError(Exception):
    """A statement was refused; `sqlstate` is the five-character code of the reason.

    `final` is True if the process opens no other session, so that a retry is pointless.
    """

    final: ClassVar[bool] = False

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(f"{message} ({sqlstate})")
        self.sqlstate = sqlstate

    @property
    def retryable(self) -> bool:
        """True if the same transaction may succeed when it is run again."""
        return self.sqlstate in _RETRYABLE


class ConnectionLost(DatabaseError):
    """The session and its transaction are over, unless a COMMIT had been sent."""

    def __init__(self, message: str) -> None:
        super().__init__("08006", message)
        self.message = message


class Stopping(ConnectionLost):
    """The process is stopping, and has ended its database sessions."""

    final = True

    def __init__(self) -> None:
        super().__init__("the process is stopping and opens no further session")


def unavailable(error: DatabaseError) -> Unavailable:
    """Return the refusal for a change that was not stored."""
    if error.sqlstate == LANE_TAKEN:
        detail = "Another process writes under this node's name; nothing is stored. Give each a DESKWIRE_NODE of its own."
        return Unavailable(detail, code="storage_failed")
    return Unavailable(
        f"The database refused the change; nothing of it is stored: {error}", code="storage_failed"
    )


def read_failed(error: DatabaseError) -> Unavailable:
    """Return the refusal for a query that failed."""
    return Unavailable(f"The database could not be read: {error}", code="storage_failed")


def outcome_unknown() -> Unavailable:
    """Return the refusal for a change whose result no server can tell."""
    return Unavailable(
        "The database was lost while it stored the change, so it is not known whether it is stored. Send the request again "
        "with the same Idempotency-Key: it is carried out once.",
        code="outcome_unknown",
    )


class DatabaseUnusableError(Exception):
    """The PostgreSQL database can't be used; the message says why and what to do."""
