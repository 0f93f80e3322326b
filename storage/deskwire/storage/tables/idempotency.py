"""Stored responses to requests with an `Idempotency-Key`; triggers erase them together with the objects they show."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final

from deskwire.engine.idempotency.idempotent_requests import StoredResponse
from deskwire.storage.tables.base import Changes, Queries

_TRIAL: Final = b"a trial"
_TRIAL_BYTES: Final = 16_384


class AnswerReads(Queries):
    """Queries on kept answers; the methods are those of `idempotent_requests.StoredResponseReader`."""

    def stored_response(self, name: bytes, place: str) -> StoredResponse | None:
        """See the port. PostgreSQL has all names in one index."""
        row = self.conn.execute(
            "SELECT name, fingerprint, subject, sealed, at FROM kept_answers WHERE name = ?", (name,)
        ).fetchone()
        return None if row is None else StoredResponse(*row)


class AnswerWrites(AnswerReads, Changes):
    """Changes of kept answers; the methods are those of `idempotent_requests.StoredResponseTransaction`."""

    @abstractmethod
    def store_response(self, answer: StoredResponse) -> None:
        """See the port. The databases differ because only PostgreSQL has concurrent writers."""

    def try_out(self) -> None:
        """See `ports.Transaction`. Writes a few pages to detect a full disk, under a name that no response can have."""
        rowid = self.inserted(
            "INSERT INTO kept_answers (name, fingerprint, sealed, at) VALUES (?, ?, ?, 0)",
            (_TRIAL, b"", bytes(_TRIAL_BYTES)),
        )
        self.conn.execute("DELETE FROM kept_answers WHERE rowid = ?", (rowid,))

    def responses_about(self, subject: str) -> Sequence[StoredResponse]:
        """See the port."""
        rows = self.conn.execute(
            "SELECT name, fingerprint, subject, sealed, at FROM kept_answers WHERE subject = ? AND sealed IS NOT NULL",
            (subject,),
        )
        return [StoredResponse(*row) for row in rows.fetchall()]

    def erase_response(self, answer: StoredResponse) -> None:
        """See the port."""
        self.conn.execute(
            "UPDATE kept_answers SET subject = NULL, sealed = NULL WHERE name = ?", (answer.name,)
        )

    def prune_responses(self, older_than: int, limit: int) -> int:
        """See the port. Rows are stored roughly in order of time, so the oldest need no search."""
        return self.conn.execute(
            "DELETE FROM kept_answers WHERE at < ? AND rowid IN "
            "(SELECT rowid FROM kept_answers ORDER BY rowid LIMIT ?)",
            (older_than, limit),
        ).rowcount
