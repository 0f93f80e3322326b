"""Rules for invitations, one-time links and queued mails, which hold the ways into accounts."""

from __future__ import annotations

from typing import Final

from deskwire.engine.accounts.people import ROLES
from deskwire.storage.check.rule import CheckRule, rule
from deskwire.storage.dialect import literals

SIGN_IN_RULES: Final[tuple[CheckRule, ...]] = (
    rule(
        "link_of_nothing",
        "The one-time link in row {} ({}) is for an invitation or account that is not there.",
        "SELECT l.rowid, l.purpose FROM one_time_links l LEFT JOIN invitations i ON i.rowid = l.invitation "
        "LEFT JOIN users u ON u.rowid = l.\"user\" WHERE (l.purpose = 'invitation' AND i.rowid IS NULL) "
        "OR (l.purpose = 'password' AND (u.rowid IS NULL OR u.deleted_at IS NOT NULL))",
    ),
    rule(
        # A link is for the password of its time. One for a later password would become valid with it.
        "link_ahead",
        "The one-time link in row {} is for password number {} of {}, whose password is number {}.",
        'SELECT l.rowid, l.generation, u.id, u.generation FROM one_time_links l JOIN users u ON u.rowid = l."user" '
        "WHERE l.generation IS NULL OR l.generation > u.generation",
    ),
    rule(
        "link_outlives_invitation",
        "The one-time link in row {} lasts longer than its invitation {}.",
        "SELECT l.rowid, i.id FROM one_time_links l JOIN invitations i ON i.rowid = l.invitation "
        "WHERE l.expires_at > i.expires_at",
    ),
    rule(
        "invitation_of_no_role",
        "Invitation {} gives the role {}, which its organisation does not have, or the organisation was deleted.",
        "SELECT i.id, i.role FROM invitations i JOIN organisations o ON o.rowid = i.organisation "
        f"WHERE o.deleted_at IS NOT NULL OR (i.role NOT IN ({literals(*ROLES)}) AND NOT EXISTS "
        "(SELECT 1 FROM roles r WHERE r.id = i.role AND r.organisation = i.organisation))",
    ),
    rule(
        "mail_of_nothing",
        "Mail {} ({}) waits, and its invitation or its content is not there.",
        "SELECT m.id, m.purpose FROM mails m LEFT JOIN invitations i ON i.rowid = m.invitation WHERE m.status = 'waiting' "
        "AND ((m.purpose = 'invitation' AND i.rowid IS NULL) OR (m.purpose <> 'passwordRequest' AND m.sealed IS NULL))",
    ),
    rule(
        "mail_not_emptied",
        "Mail {} is no longer waiting ({}), and its content with a one-time link is still stored.",
        "SELECT m.id, m.status FROM mails m WHERE m.status <> 'waiting' AND m.sealed IS NOT NULL",
    ),
)
