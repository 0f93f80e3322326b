"""The answers that PostgreSQL gives instead of rows, and what is made of them.

The error of a database that can't be used.
"""

from __future__ import annotations

from typing import ClassVar, Final

from deskwire.engine.core.errors import Unavailable

UNIQUE_VIOLATION: Final = "23505"
LANE_TAKEN: Final = "22P02"
"""What a commit is refused with whose lane is another process's by now, or that comes when it was found not to be stored."""

QUERY_CANCELED: Final = "57014"
LOCK_NOT_AVAILABLE: Final = "55P03"
INSUFFICIENT_PRIVILEGE: Final = "42501"

_RETRYABLE: Final = frozenset({"40001", "40P01", LOCK_NOT_AVAILABLE})
"""Serialization failure, deadlock, a lock that was waited for too long: a transaction's neighbours are to blame."""
SESSION_OVER: Final = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03", "25P04", "25006"})
"""The server stops, starts or was made a standby; the session was ended, or idle in its transaction for too long."""


class DatabaseError(Exception):
    """A statement was refused; `sqlstate` says why in five characters.

    `final` is True if the process opens no other session, so that a retry is pointless.
    """

    final: ClassVar[bool] = False

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(f"{message} ({sqlstate})")
        self.sqlstate = sqlstate

    @property
    def retryable(self) -> bool:
        """True if the same transaction may succeed when it is run once more."""
        return self.sqlstate in _RETRYABLE


class ConnectionLost(DatabaseError):
    """The session is over, and with it the transaction that it was in, unless a COMMIT was on its way."""

    def __init__(self, message: str) -> None:
        super().__init__("08006", message)
        self.message = message


class Stopping(ConnectionLost):
    """The process is stopping, and has ended its sessions with the database."""

    final = True

    def __init__(self) -> None:
        super().__init__("the process is stopping and opens no further session")


def unavailable(error: DatabaseError) -> Unavailable:
    """Return the refusal for a caller whose work was not done."""
    if error.sqlstate == LANE_TAKEN:
        detail = "Another process writes under this node's name; nothing is stored. Give each a DESKWIRE_NODE of its own."
        return Unavailable(detail, code="storage_failed")
    return Unavailable(
        f"The database refused the change; nothing of it is stored: {error}", code="storage_failed"
    )


def read_failed(error: DatabaseError) -> Unavailable:
    """Return the refusal for a caller who asked for something."""
    return Unavailable(f"The database could not be read: {error}", code="storage_failed")


def outcome_unknown() -> Unavailable:
    """Return the refusal for a caller whose work may be stored or not: nobody answers who knows."""
    return Unavailable(
        "The database was lost while it stored the change, so it is not known whether it is stored. Send the request again "
        "with the same Idempotency-Key: it is carried out once.",
        code="outcome_unknown",
    )


class DatabaseUnusableError(Exception):
    """The PostgreSQL database can't be used; the text says why and what to do."""
