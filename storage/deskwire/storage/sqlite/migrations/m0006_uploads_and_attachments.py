"""Uploads, references to them, and files that have to go."""

from typing import Final

SQL: Final = """
-- AUTOINCREMENT: a reference can't be taken for one to a later upload.
CREATE TABLE uploads (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL REFERENCES projects,
    name TEXT NOT NULL, type TEXT NOT NULL, size INTEGER NOT NULL, sha256 TEXT NOT NULL, attached INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX uploads_by_content ON uploads (project, sha256);
CREATE INDEX uploads_unattached ON uploads (created_at) WHERE attached = 0;
CREATE TABLE attachments (
    upload INTEGER NOT NULL REFERENCES uploads, conversation INTEGER NOT NULL REFERENCES conversations,
    PRIMARY KEY (upload, conversation)
) STRICT, WITHOUT ROWID;
CREATE INDEX attachments_by_conversation ON attachments (conversation);
CREATE TABLE upload_usage (project INTEGER PRIMARY KEY REFERENCES projects, bytes INTEGER NOT NULL) STRICT;
CREATE TABLE doomed_files (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, project INTEGER NOT NULL, sha256 TEXT NOT NULL
) STRICT;

-- [[id, name, type, size], …] as they were when the message was written; NULL for none.
ALTER TABLE messages ADD COLUMN attachments TEXT;
"""
