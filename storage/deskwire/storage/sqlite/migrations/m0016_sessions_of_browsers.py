"""Sessions of people who have signed in with a browser."""

from typing import Final

SQL: Final = """
CREATE TABLE sessions (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, user INTEGER NOT NULL REFERENCES users,
    hash BLOB NOT NULL UNIQUE, client TEXT NOT NULL, created_at INTEGER NOT NULL, last_seen_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_user ON sessions (user);
-- Whatever ends a user's access tokens ends the sessions, too: a new password, a revocation, the account's deletion.
CREATE TRIGGER sessions_end AFTER UPDATE OF generation ON users WHEN NEW.generation <> OLD.generation BEGIN
    DELETE FROM sessions WHERE user = NEW.rowid;
    END;
"""
