"""Lists for agents: sequences of messages, counts of what contacts wrote, the place of each agent, and indexes."""

from typing import Final

SQL: Final = """
-- The sequence of the message's event; NULL for notes, and for what was written before this was noted.
ALTER TABLE messages ADD COLUMN sequence INTEGER;

-- How many of its messages the contact wrote, by which unread ones are counted.
ALTER TABLE conversations ADD COLUMN contact_messages INTEGER NOT NULL DEFAULT 0;
UPDATE conversations SET contact_messages = (SELECT count(*) FROM messages m
    WHERE m.conversation = conversations.rowid AND m.author_type = 'contact' AND m.number IS NOT NULL);

-- The hour of the last activity. Lists go by it and sort within it, so that a message rewrites no index but the first.
ALTER TABLE conversations ADD COLUMN hour INTEGER NOT NULL DEFAULT 0;
UPDATE conversations SET hour = activity / 3600000;
CREATE INDEX conversations_by_status ON conversations (project, archived, status, hour, snoozed_until);
CREATE INDEX conversations_by_creation ON conversations (project, archived, status, created_at, snoozed_until);
CREATE INDEX conversations_by_assignee
    ON conversations (project, assignee_id, archived, status, hour, created_at, snoozed_until);
CREATE INDEX conversations_hidden ON conversations (project, hour) WHERE visible = 0;
CREATE INDEX conversations_asleep ON conversations (project, archived, hour, snoozed_until)
    WHERE snoozed_until IS NOT NULL;
CREATE INDEX conversations_waiting ON conversations (project, waiting_since, archived, snoozed_until)
    WHERE waiting_since IS NOT NULL;

-- What each agent has seen of a conversation: messages up to this index (-1 for none), of which the contact wrote so many.
CREATE TABLE agent_seen (
    user INTEGER NOT NULL REFERENCES users, conversation INTEGER NOT NULL REFERENCES conversations,
    number INTEGER NOT NULL, contact_messages INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (user, conversation)
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_seen_by_conversation ON agent_seen (conversation);
"""
