"""Mentions in notes, and followers of conversations."""

from typing import Final

SQL: Final = """
-- The users and teams that a note mentions, or is to mention, as JSON: [type, id, name at that time].
ALTER TABLE messages ADD COLUMN mentions TEXT;
ALTER TABLE drafts ADD COLUMN mentions TEXT;
ALTER TABLE held_messages ADD COLUMN mentions TEXT;

-- A person whom a note mentions, alone or in a team; `message` is the id of the note.
CREATE TABLE mentions (
    user INTEGER NOT NULL REFERENCES users ON DELETE CASCADE, project INTEGER NOT NULL,
    conversation INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE, message TEXT NOT NULL,
    at INTEGER NOT NULL, seen_at INTEGER, PRIMARY KEY (user, project, conversation, message)
) STRICT, WITHOUT ROWID;
CREATE INDEX mentions_by_conversation ON mentions (conversation, message);
CREATE INDEX mentions_unseen ON mentions (user, project) WHERE seen_at IS NULL;

CREATE TABLE followers (
    user INTEGER NOT NULL REFERENCES users ON DELETE CASCADE, project INTEGER NOT NULL,
    conversation INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE, at INTEGER NOT NULL,
    PRIMARY KEY (user, project, conversation)
) STRICT, WITHOUT ROWID;
CREATE INDEX followers_by_conversation ON followers (conversation);
"""
