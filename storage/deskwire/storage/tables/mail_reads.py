"""Queries of the queue of mails, apart from its changes, because read-only commands must start fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deskwire.engine.mail.ports import Mail, MailHealth
from deskwire.storage.tables.base import Queries

_MAIL: Final = (
    "SELECT m.id, m.purpose, m.recipient, m.created_at, m.expires_at, m.due_at, m.sealed, m.invitation, m.status, "
    "m.attempts, m.error, m.last_at, m.rowid FROM mails m"
)


class MailReads(Queries):
    """Queries. Implements `MailReader`."""

    def mail_with(self, mail: int) -> Mail | None:
        row = self.conn.execute(f"{_MAIL} WHERE m.rowid = ?", (mail,)).fetchone()
        return None if row is None else Mail(*row)

    def due_mails(self, now: int, limit: int) -> Sequence[int]:
        sql = "SELECT m.rowid FROM mails m WHERE m.status = 'waiting' AND m.due_at <= ? ORDER BY m.due_at, m.rowid LIMIT ?"
        return [row[0] for row in self.conn.execute(sql, (now, limit))]

    def mails(self, limit: int) -> Sequence[Mail]:
        rows = self.conn.execute(f"{_MAIL} ORDER BY m.rowid DESC LIMIT ?", (limit,))
        return [Mail(*row) for row in rows]

    def mail_health(self) -> MailHealth:
        waiting, oldest_at = self.conn.execute(
            "SELECT count(*), min(created_at) FROM mails WHERE status = 'waiting'"
        ).fetchone()
        (failed,) = self.conn.execute("SELECT count(*) FROM mails WHERE status = 'failed'").fetchone()
        return MailHealth(int(waiting), int(failed), oldest_at)
