"""Channels, sessions of customers, and the ids that customers' clients give to messages and conversations."""

from typing import Final

SQL: Final = """
-- `origins`, `public_keys`, `ask`, `look` are JSON. A removed channel keeps its row, because its sessions refer to it.
CREATE TABLE channels (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL REFERENCES projects, type TEXT NOT NULL,
    name TEXT NOT NULL, enabled INTEGER NOT NULL, origins TEXT NOT NULL, identity_mode TEXT NOT NULL,
    public_keys TEXT NOT NULL, visitors_allowed INTEGER NOT NULL, ask TEXT NOT NULL, look TEXT NOT NULL,
    starts_workflow TEXT, survey TEXT, native INTEGER NOT NULL, sealed_secret BLOB NOT NULL, secret_tail TEXT NOT NULL,
    old_secret BLOB, old_secret_until INTEGER, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, removed_at INTEGER
) STRICT;
CREATE INDEX channels_by_project ON channels (project) WHERE removed_at IS NULL;
CREATE TRIGGER kept_answers_of_channels AFTER UPDATE OF removed_at ON channels WHEN new.removed_at IS NOT NULL BEGIN
    UPDATE kept_answers SET near = '', subject = NULL, sealed = NULL WHERE near = substr(old.id, 5, 10) AND subject = old.id;
    UPDATE kept_answers SET near = '', subject = NULL, sealed = NULL WHERE length(near) = 0 AND subject = old.id; END;

-- `signed` is a JSON list of the names of fields, `context` a JSON object. The row of an ended session stays without its contact
-- after an erasure, because a visitor's token is valid without a row.
CREATE TABLE contact_sessions (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
    contact INTEGER REFERENCES contacts ON DELETE SET NULL, channel INTEGER NOT NULL REFERENCES channels,
    hash BLOB NOT NULL UNIQUE, verified INTEGER NOT NULL, signed TEXT NOT NULL DEFAULT '[]', context TEXT,
    client TEXT NOT NULL DEFAULT '', created_at INTEGER NOT NULL, last_used_at INTEGER NOT NULL, expires_at INTEGER NOT NULL,
    ended_at INTEGER
) STRICT;
CREATE INDEX contact_sessions_by_contact ON contact_sessions (contact);
CREATE INDEX contact_sessions_by_channel ON contact_sessions (channel);
CREATE INDEX contact_sessions_by_expiry ON contact_sessions (expires_at);

-- The ids that a contact's clients gave to its conversations. They move with a merge, if the other contact has none such.
CREATE TABLE conversation_client_ids (
    contact INTEGER NOT NULL REFERENCES contacts ON DELETE CASCADE, client_id TEXT NOT NULL,
    conversation INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE, PRIMARY KEY (contact, client_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX conversation_client_ids_by_conversation ON conversation_client_ids (conversation);

ALTER TABLE messages ADD COLUMN client_id TEXT;
CREATE UNIQUE INDEX messages_by_client_id ON messages (conversation, client_id) WHERE client_id IS NOT NULL;

-- `channel` is the id of the channel, which the channel's removal leaves in place.
ALTER TABLE conversations ADD COLUMN channel TEXT;
ALTER TABLE conversations ADD COLUMN client_id TEXT;
ALTER TABLE conversations ADD COLUMN contact_reached_index INTEGER;
ALTER TABLE conversations ADD COLUMN contact_reached_at INTEGER;
"""
