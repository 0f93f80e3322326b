"""One-time links, and the invitations that some of them accept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from deskwire.engine.accounts.invitations import Invitation, InvitationMail
from deskwire.engine.accounts.links import OneTimeLink
from deskwire.engine.accounts.people import User
from deskwire.engine.audit.audited_changes import made
from deskwire.engine.audit.trail import AuditEntry
from deskwire.engine.core.folding import address_key, fold_name
from deskwire.engine.core.values import replace
from deskwire.storage.tables.accounts.people import USER, as_user
from deskwire.storage.tables.audit import AuditWrites
from deskwire.storage.tables.base import Queries

_LINK: Final = (
    'SELECT l.purpose, l.hash, l.created_at, l.expires_at, l.invitation, l."user", l.generation, l.organisation, l.made_by, '
    "l.rowid FROM one_time_links l"
)
_INVITATION: Final = (
    "SELECT i.id, i.organisation, i.email, i.name, i.role, i.invited_by, i.created_at, i.expires_at, i.rowid, "
    "m.status, m.error, m.last_at FROM invitations i LEFT JOIN mails m ON m.rowid = "
    "(SELECT max(n.rowid) FROM mails n WHERE n.invitation = i.rowid)"
)


class LinkReads(Queries):
    """Queries. Implements `InvitationReader`."""

    def link(self, hashed: bytes) -> OneTimeLink | None:
        row = self.conn.execute(f"{_LINK} WHERE l.hash = ?", (hashed,)).fetchone()
        return None if row is None else OneTimeLink(*row)

    def user_with(self, user: int) -> User | None:
        sql = f"SELECT {USER} FROM users u WHERE u.rowid = ? AND u.deleted_at IS NULL"
        row = self.conn.execute(sql, (user,)).fetchone()
        return None if row is None else as_user(row)

    def has_users(self) -> bool:
        sql = "SELECT 1 FROM users WHERE deleted_at IS NULL LIMIT 1"
        return self.conn.execute(sql).fetchone() is not None

    def invitation(self, organisation: int, invitation_id: str) -> Invitation | None:
        return self._invitation("i.organisation = ? AND i.id = ?", organisation, invitation_id)

    def invitation_with(self, invitation: int) -> Invitation | None:
        return self._invitation("i.rowid = ?", invitation)

    def invitations(self, organisation: int, before: int, limit: int) -> Sequence[Invitation]:
        sql = f"{_INVITATION} WHERE i.organisation = ? AND i.rowid < ? ORDER BY i.rowid DESC LIMIT ?"
        return [_as_invitation(row) for row in self.conn.execute(sql, (organisation, before, limit))]

    def count_invitations(self, organisation: int) -> int:
        sql = "SELECT count(*) FROM invitations WHERE organisation = ?"
        return int(self.conn.execute(sql, (organisation,)).fetchone()[0])

    def invitations_for(self, email: str, limit: int) -> Sequence[Invitation]:
        key = address_key(email)
        rows = self.conn.execute(
            f"{_INVITATION} WHERE i.folded = ? ORDER BY i.rowid LIMIT ?", (fold_name(email), limit)
        )
        return [each for each in map(_as_invitation, rows.fetchall()) if address_key(each.email) == key]

    def _invitation(self, which: str, *values: int | str) -> Invitation | None:
        row = self.conn.execute(f"{_INVITATION} WHERE {which}", values).fetchone()
        return None if row is None else _as_invitation(row)


class LinkWrites(LinkReads, AuditWrites):
    """Changes. Implements `InvitationTransaction`."""

    def insert_link(self, link: OneTimeLink) -> None:
        self.conn.execute(
            'INSERT INTO one_time_links (purpose, hash, created_at, expires_at, invitation, "user", generation, organisation, '
            "made_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                link.purpose,
                link.hashed,
                link.created_at,
                link.expires_at,
                link.invitation,
                link.user,
                link.generation,
                link.organisation,
                link.made_by,
            ),
        )
        if link.user is not None:
            (user_id,) = self.conn.execute("SELECT id FROM users WHERE rowid = ?", (link.user,)).fetchone()
            self.record(AuditEntry("account.password_link_created", user_id, account=link.user))

    def delete_link(self, link: int) -> None:
        self.conn.execute("DELETE FROM one_time_links WHERE rowid = ?", (link,))

    def delete_password_links(self, user: int, organisation: int | None) -> None:
        where, values = 'one_time_links."user" = ?', (user,)
        if organisation is None:
            self.conn.execute(f"DELETE FROM one_time_links WHERE {where}", values)
        else:
            sql = f"DELETE FROM one_time_links WHERE {where} AND organisation = ?"
            self.conn.execute(sql, (*values, organisation))

    def keep_first_owner_links(self, kept: int) -> None:
        newest = "SELECT rowid FROM one_time_links WHERE purpose = 'setUp' ORDER BY rowid DESC LIMIT ?"
        self.conn.execute(
            f"DELETE FROM one_time_links WHERE purpose = 'setUp' AND rowid NOT IN ({newest})", (kept,)
        )

    def prune_links(self, now: int, limit: int) -> int:
        return self.conn.execute(
            "DELETE FROM one_time_links WHERE rowid IN "
            "(SELECT rowid FROM one_time_links WHERE expires_at <= ? LIMIT ?)",
            (now, limit),
        ).rowcount

    def insert_invitation(self, invitation: Invitation) -> Invitation:
        rowid = self.inserted(
            "INSERT INTO invitations (id, organisation, email, folded, name, role, invited_by, created_at, expires_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                invitation.id,
                invitation.organisation,
                invitation.email,
                fold_name(invitation.email),
                invitation.name,
                invitation.role,
                invitation.invited_by,
                invitation.created_at,
                invitation.expires_at,
            ),
        )
        # Without the address: the trail outlives the erasure of the account.
        self._record_invitation("invitation.created", invitation, changes=made({"role": invitation.role}))
        return replace(invitation, rowid=rowid)

    def renew_invitation(self, invitation: Invitation) -> None:
        self._end_links_of(invitation.rowid)
        self.conn.execute(
            "UPDATE invitations SET invited_by = ?, expires_at = ? WHERE rowid = ?",
            (invitation.invited_by, invitation.expires_at, invitation.rowid),
        )
        self._record_invitation("invitation.renewed", invitation)

    def end_invitation(self, invitation: Invitation, user: User | None) -> None:
        self._delete_invitations("rowid = ?", invitation.rowid)
        if user is None:
            self._record_invitation("invitation.revoked", invitation)
        else:
            self._record_invitation("invitation.accepted", invitation, details={"user": user.id})

    def prune_invitations(self, expired_before: int, limit: int) -> int:
        which = "rowid IN (SELECT rowid FROM invitations WHERE expires_at <= ? LIMIT ?)"
        return self._delete_invitations(which, expired_before, limit)

    def delete_invitations_of(self, organisation: int) -> None:
        """Delete all invitations of an organisation (storage key)."""
        self._delete_invitations("organisation = ?", organisation)

    def forget_address(self, user: int, email: str) -> None:
        """Delete the links of a user (storage key), and all invitations and mails for the address."""
        self.delete_password_links(user, None)
        key = address_key(email)
        for invitation in self.invitations_for(email, 1 << 62):
            self._delete_invitations("rowid = ?", invitation.rowid)
        mails = self.conn.execute("SELECT rowid, recipient FROM mails WHERE folded = ?", (fold_name(email),))
        for rowid, recipient in mails.fetchall():
            if address_key(recipient) == key:
                self.conn.execute("DELETE FROM mails WHERE rowid = ?", (rowid,))

    def _delete_invitations(self, which: str, *values: int) -> int:
        found = [
            row[0]
            for row in self.conn.execute(f"SELECT rowid FROM invitations WHERE {which}", values).fetchall()
        ]
        for rowid in found:
            self._end_links_of(rowid)
            self.conn.execute("DELETE FROM invitations WHERE rowid = ?", (rowid,))
        return len(found)

    def _end_links_of(self, invitation: int) -> None:
        """Delete the links and mails of an invitation (storage key)."""
        self.conn.execute("DELETE FROM one_time_links WHERE invitation = ?", (invitation,))
        self.conn.execute("DELETE FROM mails WHERE invitation = ?", (invitation,))

    def _record_invitation(self, action: str, invitation: Invitation, **more: Any) -> None:
        self.record(AuditEntry(action, invitation.id, organisation=invitation.organisation, **more))


def _as_invitation(row: Sequence[Any]) -> Invitation:
    *fields, rowid, status, error, last_at = row
    mail = None if status is None else InvitationMail(status, error, last_at)
    return replace(Invitation(*fields), mail=mail, rowid=rowid)
