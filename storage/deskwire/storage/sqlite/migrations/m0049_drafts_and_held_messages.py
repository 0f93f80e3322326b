"""Drafts and held messages, each its author's own; they go with their conversation (ADR 53)."""

from typing import Final

SQL: Final = """
-- One reply and one note of each author in a conversation. `size` counts the characters of the text.
CREATE TABLE drafts (
    rowid INTEGER PRIMARY KEY, author INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    project INTEGER NOT NULL REFERENCES projects,
    conversation INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE, internal INTEGER NOT NULL,
    size INTEGER NOT NULL, version INTEGER NOT NULL, base_sequence INTEGER, updated_at INTEGER NOT NULL,
    attachments TEXT, text TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX drafts_by_place ON drafts (conversation, author, internal);
CREATE INDEX drafts_by_author ON drafts (author, project, updated_at, size);

-- `follow` is what is to follow the message, `problem` why it was not sent; both are JSON.
CREATE TABLE held_messages (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, author INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    project INTEGER NOT NULL REFERENCES projects,
    conversation INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE, internal INTEGER NOT NULL,
    if_sequence INTEGER, follow TEXT, send_at INTEGER NOT NULL, created_at INTEGER NOT NULL, problem TEXT,
    attachments TEXT, text TEXT NOT NULL
) STRICT;
CREATE INDEX held_messages_by_author ON held_messages (author, project);
CREATE INDEX held_messages_by_conversation ON held_messages (conversation);
CREATE INDEX held_messages_due ON held_messages (send_at) WHERE problem IS NULL;
"""
