"""Changes of the queue of mails."""

from __future__ import annotations

from collections.abc import Callable

from deskwire.engine.core.folding import fold_name
from deskwire.engine.mail.ports import ENDED_KEPT_MS, Mail
from deskwire.storage.connection import Connection
from deskwire.storage.tables.accounts.links import LinkWrites
from deskwire.storage.tables.mail_reads import MailReads


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
