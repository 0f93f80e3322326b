"""Machine credentials; their kept responses are removed with them (ADR 70)."""

from typing import Final

SQL: Final = """
CREATE TABLE machine_credentials (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL REFERENCES projects, name TEXT NOT NULL,
    permissions TEXT NOT NULL, hash BLOB NOT NULL UNIQUE, tail TEXT NOT NULL, made_by TEXT NOT NULL, made_by_id TEXT,
    created_at INTEGER NOT NULL, expires_at INTEGER, last_used_at INTEGER, revoked_at INTEGER,
    generation INTEGER NOT NULL, previous_hash BLOB UNIQUE, previous_expires_at INTEGER
) STRICT;
CREATE INDEX machine_credentials_by_project ON machine_credentials (project);
CREATE TRIGGER kept_answers_of_machine_credentials AFTER UPDATE OF revoked_at ON machine_credentials
    WHEN new.revoked_at IS NOT NULL BEGIN
    UPDATE kept_answers SET subject = NULL, sealed = NULL WHERE subject = old.id; END;
"""
