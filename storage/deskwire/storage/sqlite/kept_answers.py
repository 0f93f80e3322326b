"""Stored idempotent responses on SQLite, where the index clusters those about one object (ADR 24)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deskwire.engine.core.values import replace
from deskwire.engine.idempotency.idempotent_requests import StoredResponse
from deskwire.storage.tables.idempotency import AnswerReads, AnswerWrites

_ID_TIME: Final = slice(4, 14)
"""The part of an id with its time of creation, which the triggers use as well."""

_NAMED: Final = "substr(name, 1, 8) = substr(?2, 1, 8) AND name = ?2"
_COLUMNS: Final = "SELECT name, fingerprint, subject, sealed, at FROM kept_answers WHERE"
_KEPT: Final = f"{_COLUMNS} near = ?1 AND {_NAMED} UNION ALL {_COLUMNS} near = '' AND {_NAMED}"
"""Two index searches. With `IN`, SQLite would first build a table of the values, which takes as long as both searches."""
_KEEP: Final = (
    "INSERT INTO kept_answers (near, name, fingerprint, subject, sealed, at) VALUES (?, ?, ?, ?, ?, ?)"
)
_ABOUT: Final = (
    f"{_COLUMNS} near = substr(?1, 5, 10) AND subject = ?1 "
    f"UNION ALL {_COLUMNS} length(near) = 0 AND subject = ?1"
)
_EMPTY: Final = (
    f"UPDATE kept_answers SET near = '', subject = NULL, sealed = NULL WHERE near IN (?1, '') AND {_NAMED}"
)


class SqliteAnswerReads(AnswerReads):
    """Queries on stored responses."""

    def stored_response(self, name: bytes, place: str) -> StoredResponse | None:
        """See the port. There may be a second one that has expired."""
        rows = self.conn.execute(_KEPT, (place[_ID_TIME], name)).fetchall()
        return max((StoredResponse(*row) for row in rows), key=lambda each: each.at) if rows else None


class SqliteAnswerWrites(SqliteAnswerReads, AnswerWrites):
    """Changes of stored responses."""

    def store_response(self, answer: StoredResponse) -> None:
        """See the port."""
        place, subject = answer.place, answer.subject
        near = place[_ID_TIME] if place == subject else ""
        self.conn.execute(_KEEP, (near, answer.name, answer.fingerprint, subject, answer.sealed, answer.at))

    def responses_about(self, subject: str) -> Sequence[StoredResponse]:
        """See the port."""
        rows = self.conn.execute(_ABOUT, (subject,)).fetchall()
        return [replace(StoredResponse(*row), place=subject) for row in rows]

    def erase_response(self, answer: StoredResponse) -> None:
        """See the port."""
        self.conn.execute(_EMPTY, (answer.place[_ID_TIME], answer.name))
