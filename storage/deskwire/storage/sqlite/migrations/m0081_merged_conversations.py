"""Merges of two conversations: the pointer, the record of each merge, and the messages that were passed on."""

from typing import Final

SQL: Final = """
-- The id of the conversation that shows this one's messages; and a JSON array with the ids of those whose messages this one shows.
ALTER TABLE conversations ADD COLUMN merged_into TEXT;
ALTER TABLE conversations ADD COLUMN merged TEXT NOT NULL DEFAULT '[]';
ALTER TABLE conversations ADD COLUMN merged_at INTEGER;
CREATE INDEX conversations_merged ON conversations (merged_into) WHERE merged_into IS NOT NULL;
-- `record` is the JSON by which a merge is undone.
CREATE TABLE conversation_merges (
    conversation INTEGER PRIMARY KEY REFERENCES conversations, target INTEGER NOT NULL REFERENCES conversations,
    at INTEGER NOT NULL, record TEXT NOT NULL
) STRICT;
CREATE INDEX conversation_merges_by_target ON conversation_merges (target);
-- The client ids of messages to a merged conversation, and the ids under which the other conversation has them.
CREATE TABLE passed_on_messages (
    conversation INTEGER NOT NULL REFERENCES conversations, client_id TEXT NOT NULL, message TEXT NOT NULL,
    PRIMARY KEY (conversation, client_id)
) STRICT, WITHOUT ROWID;
"""
