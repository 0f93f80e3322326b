"""Imported conversations and messages, by the ids that they had elsewhere."""

from typing import Final

SQL: Final = """
-- When it was brought in from elsewhere: what is kept for some time after its creation is kept for that time here.
ALTER TABLE conversations ADD COLUMN imported_at INTEGER;
DROP INDEX conversations_bot_only;
CREATE INDEX conversations_bot_only ON conversations (coalesce(imported_at, created_at)) WHERE human = 0;

-- By the ids that they had elsewhere, what was brought in, and fingerprints of what it was brought in with.
CREATE TABLE imported_conversations (
    project INTEGER NOT NULL REFERENCES projects, external_id TEXT NOT NULL,
    conversation INTEGER NOT NULL UNIQUE REFERENCES conversations, fingerprint INTEGER NOT NULL,
    PRIMARY KEY (project, external_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE imported_messages (
    conversation INTEGER NOT NULL REFERENCES conversations, external_id TEXT NOT NULL, fingerprint INTEGER NOT NULL,
    PRIMARY KEY (conversation, external_id)
) STRICT, WITHOUT ROWID;
"""
