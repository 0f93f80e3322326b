"""The fields of conversations that only agents see, such as tags, and their activity."""

from typing import Final

SQL: Final = """
-- Since when the contact waits for an answer: from its first message behind the newest one of an agent or a bot.
ALTER TABLE conversations ADD COLUMN waiting_since INTEGER;
UPDATE conversations SET waiting_since = (
    SELECT m.created_at FROM messages m WHERE m.conversation = conversations.rowid AND m.internal = 0
    AND m.author_type = 'contact' AND m.rowid > coalesce((
        SELECT a.rowid FROM messages a WHERE a.conversation = conversations.rowid AND a.internal = 0
        AND a.author_type IN ('agent', 'bot') ORDER BY a.rowid DESC LIMIT 1), 0)
    ORDER BY m.rowid LIMIT 1) WHERE status <> 'CLOSED';
-- The sequence of the newest event that a reply in preparation should know of; of what there is, nobody knows which that was.
ALTER TABLE conversations ADD COLUMN last_turn INTEGER NOT NULL DEFAULT 0;
UPDATE conversations SET last_turn = sequence;
ALTER TABLE conversations ADD COLUMN snoozed_until INTEGER;
CREATE INDEX conversations_snoozed ON conversations (snoozed_until) WHERE snoozed_until IS NOT NULL;
ALTER TABLE conversations ADD COLUMN contact_seen_index INTEGER;
ALTER TABLE conversations ADD COLUMN contact_seen_at INTEGER;
ALTER TABLE conversations ADD COLUMN network_logs_at INTEGER;
UPDATE conversations SET network_logs_at = (SELECT updated_at FROM network_logs WHERE conversation = conversations.rowid)
    WHERE rowid IN (SELECT conversation FROM network_logs);
-- The tags as JSON, and in a table that finds conversations by them.
ALTER TABLE conversations ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
CREATE TABLE conversation_tags (
    project INTEGER NOT NULL, tag TEXT NOT NULL, conversation INTEGER NOT NULL REFERENCES conversations,
    PRIMARY KEY (project, tag, conversation)
) STRICT, WITHOUT ROWID;
CREATE INDEX conversation_tags_by_conversation ON conversation_tags (conversation);
CREATE TABLE conversation_activity (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL, conversation INTEGER NOT NULL REFERENCES conversations, at INTEGER NOT NULL,
    actor_type TEXT NOT NULL, actor_id TEXT, actor_name TEXT, action TEXT NOT NULL, changes TEXT NOT NULL, event_id TEXT
) STRICT;
CREATE INDEX conversation_activity_by_conversation ON conversation_activity (conversation);
"""
