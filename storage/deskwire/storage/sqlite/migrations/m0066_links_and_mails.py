"""Invitations, one-time links, and the queue of mails."""

from typing import Final

SQL: Final = """
CREATE TABLE invitations (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, organisation INTEGER NOT NULL REFERENCES organisations,
    email TEXT NOT NULL, folded TEXT NOT NULL, name TEXT, role TEXT NOT NULL, invited_by TEXT NOT NULL,
    created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX invitations_by_organisation ON invitations (organisation, rowid);
CREATE INDEX invitations_by_address ON invitations (folded);
CREATE INDEX invitations_by_end ON invitations (expires_at);

-- `purpose`: `invitation`, `password` or `setUp`. `hash` is the SHA-256 of the token. A link for a password is bound to the
-- account's `generation`; `organisation` and `made_by` (a user id) name the manager who made it.
CREATE TABLE one_time_links (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, purpose TEXT NOT NULL, hash BLOB NOT NULL UNIQUE, created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL, invitation INTEGER REFERENCES invitations, user INTEGER REFERENCES users, generation INTEGER,
    organisation INTEGER REFERENCES organisations, made_by TEXT
) STRICT;
CREATE INDEX one_time_links_by_end ON one_time_links (expires_at);
CREATE INDEX one_time_links_by_user ON one_time_links (user) WHERE user IS NOT NULL;
CREATE INDEX one_time_links_by_invitation ON one_time_links (invitation) WHERE invitation IS NOT NULL;

-- `sealed` is the content, which has the link's token, encrypted under the installation's secret; it is emptied at the end.
CREATE TABLE mails (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, purpose TEXT NOT NULL, recipient TEXT NOT NULL,
    folded TEXT NOT NULL, created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, due_at INTEGER NOT NULL, sealed BLOB,
    invitation INTEGER REFERENCES invitations, status TEXT NOT NULL, attempts INTEGER NOT NULL, error TEXT, last_at INTEGER
) STRICT;
CREATE INDEX mails_due ON mails (due_at, rowid) WHERE status = 'waiting';
CREATE INDEX mails_by_address ON mails (folded);
CREATE INDEX mails_by_invitation ON mails (invitation) WHERE invitation IS NOT NULL;
"""
