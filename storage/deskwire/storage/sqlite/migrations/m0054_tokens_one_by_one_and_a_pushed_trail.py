"""One-time passwords with an end, access tokens one by one, and the pushes of the audit trail.

A one-time password of an older file counts as made now, so that it ends some time after the upgrade. Kept answers about
server keys and accounts may show what is shown once, and are emptied.
"""

from typing import Final

SQL: Final = """
ALTER TABLE users ADD COLUMN password_made_at INTEGER;
UPDATE users SET password_made_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000 WHERE password_temporary = 1;
UPDATE kept_answers SET subject = NULL, sealed = NULL WHERE subject GLOB 'key_*' OR subject GLOB 'usr_*';

CREATE TABLE access_tokens (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, user INTEGER NOT NULL REFERENCES users, source TEXT NOT NULL,
    client TEXT NOT NULL, generation INTEGER NOT NULL, created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, ended_at INTEGER
) STRICT;
CREATE INDEX access_tokens_by_user ON access_tokens (user, rowid);
CREATE INDEX access_tokens_by_end ON access_tokens (expires_at);
CREATE INDEX access_tokens_ended ON access_tokens (expires_at) WHERE ended_at IS NOT NULL;

CREATE TABLE audit_pushes (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, organisation INTEGER NOT NULL UNIQUE REFERENCES organisations,
    url TEXT NOT NULL, sealed_secret BLOB NOT NULL, secret_tail TEXT NOT NULL, old_secret BLOB, old_secret_until INTEGER,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, due_at INTEGER,
    failing_since INTEGER, last_at INTEGER, last_status INTEGER, last_error TEXT, missed INTEGER NOT NULL DEFAULT 0
) STRICT;
-- The records that are still to be pushed, in the order in which they were stored or last counted on.
CREATE TABLE audit_unpushed (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, push INTEGER NOT NULL REFERENCES audit_pushes, record INTEGER NOT NULL,
    UNIQUE (push, record)
) STRICT;
CREATE INDEX audit_unpushed_by_record ON audit_unpushed (record);
CREATE TRIGGER kept_answers_of_audit_pushes AFTER DELETE ON audit_pushes BEGIN
    UPDATE kept_answers SET near = '', subject = NULL, sealed = NULL WHERE near = substr(old.id, 5, 10) AND subject = old.id;
    UPDATE kept_answers SET near = '', subject = NULL, sealed = NULL WHERE length(near) = 0 AND subject = old.id; END;
"""
