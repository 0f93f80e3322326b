"""The limits of sessions by organisation, the ends of server keys, and the browsers that users have signed in with."""

from typing import Final

SQL: Final = """
-- Seconds. NULL: the limit of the installation.
ALTER TABLE organisations ADD COLUMN session_idle_s INTEGER;
ALTER TABLE organisations ADD COLUMN session_max_s INTEGER;
-- In milliseconds. NULL: the key does not expire.
ALTER TABLE server_keys ADD COLUMN expires_at INTEGER;
CREATE INDEX server_keys_by_end ON server_keys (expires_at) WHERE revoked_at IS NULL;
CREATE INDEX machine_credentials_by_end ON machine_credentials (expires_at) WHERE revoked_at IS NULL;
-- `hash`: SHA-256 of the secret in the browser's cookie, by which a sign-in with another browser is recorded as one.
CREATE TABLE known_browsers (
    rowid INTEGER PRIMARY KEY, "user" INTEGER NOT NULL REFERENCES users ON DELETE CASCADE, hash BLOB NOT NULL,
    created_at INTEGER NOT NULL, used_at INTEGER NOT NULL, UNIQUE ("user", hash)
) STRICT;
CREATE INDEX known_browsers_by_use ON known_browsers (used_at);
"""
