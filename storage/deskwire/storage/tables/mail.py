"""The queue of mails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from deskwire.engine.core.folding import fold_name
from deskwire.engine.mail.ports import ENDED_KEPT_MS, Mail, MailHealth
from deskwire.storage.connection import Connection
from deskwire.storage.tables.accounts.links import LinkWrites
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


class MailWrites(MailReads, LinkWrites):
    """Changes. Implements `MailTransaction`."""

    def insert_mail(self, mail: Mail) -> None:
        self.conn.execute(
            "INSERT INTO mails (id, purpose, recipient, folded, created_at, expires_at, due_at, sealed, invitation, status, "
            "attempts, error, last_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                mail.id,
                mail.purpose,
                mail.recipient,
                fold_name(mail.recipient),
                mail.created_at,
                mail.expires_at,
                mail.due_at,
                mail.sealed,
                mail.invitation,
                mail.status,
                mail.attempts,
                mail.error,
                mail.last_at,
            ),
        )

    def save_mail(self, mail: Mail) -> None:
        self.conn.execute(
            "UPDATE mails SET purpose = ?, recipient = ?, folded = ?, expires_at = ?, due_at = ?, sealed = ?, status = ?, "
            "attempts = ?, error = ?, last_at = ? WHERE rowid = ?",
            (
                mail.purpose,
                mail.recipient,
                fold_name(mail.recipient),
                mail.expires_at,
                mail.due_at,
                mail.sealed,
                mail.status,
                mail.attempts,
                mail.error,
                mail.last_at,
                mail.rowid,
            ),
        )

    def delete_mail(self, mail: int) -> None:
        self.conn.execute("DELETE FROM mails WHERE rowid = ?", (mail,))

    def prune_mails(self, now: int, limit: int) -> int:
        # A mail of an installation whose SMTP settings were removed is still waiting when it expires.
        return self.conn.execute(
            "DELETE FROM mails WHERE rowid IN (SELECT rowid FROM mails WHERE "
            "(status <> 'waiting' AND last_at <= ?) OR expires_at <= ? LIMIT ?)",
            (now - ENDED_KEPT_MS, now - ENDED_KEPT_MS, limit),
        ).rowcount


def renew_mail_seals(connection: Connection, renewed: Callable[[bytes], bytes]) -> int:
    """Re-encrypt the contents of all waiting mails with `renewed`. Return the number of changed mails."""
    changed = 0
    rows = connection.execute("SELECT rowid, sealed FROM mails WHERE sealed IS NOT NULL").fetchall()
    for rowid, before in rows:
        after = renewed(before)
        if after != before:
            changed += 1
            connection.execute("UPDATE mails SET sealed = ? WHERE rowid = ?", (after, rowid))
    return changed
