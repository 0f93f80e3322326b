"""People, conversations, the event log, webhook endpoints and their deliveries."""

from typing import Final

SQL: Final = """
CREATE TABLE organisations (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE projects (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, organisation INTEGER NOT NULL REFERENCES organisations,
    name TEXT NOT NULL, stream_key TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE users (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, email TEXT NOT NULL UNIQUE COLLATE NOCASE,
    name TEXT NOT NULL, password_hash TEXT, created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE memberships (
    organisation INTEGER NOT NULL REFERENCES organisations, user INTEGER NOT NULL REFERENCES users,
    role TEXT NOT NULL, created_at INTEGER NOT NULL, PRIMARY KEY (user, organisation)
) STRICT, WITHOUT ROWID;
CREATE TABLE teams (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL REFERENCES projects,
    name TEXT NOT NULL, created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE server_keys (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL REFERENCES projects,
    hash BLOB NOT NULL UNIQUE, tail TEXT NOT NULL, label TEXT NOT NULL, created_at INTEGER NOT NULL,
    last_used_at INTEGER, revoked_at INTEGER
) STRICT;

-- AUTOINCREMENT: the key of what was erased is never given to another one, as deliveries under way and the log know it.
CREATE TABLE contacts (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL REFERENCES projects,
    user_id TEXT NOT NULL, name TEXT, email TEXT, phone TEXT, avatar TEXT, erasing INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX contacts_by_user ON contacts (project, user_id) WHERE erasing = 0;
CREATE INDEX contacts_erasing ON contacts (rowid) WHERE erasing = 1;

CREATE TABLE conversations (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL, contact INTEGER NOT NULL
    REFERENCES contacts, revision INTEGER NOT NULL, sequence INTEGER NOT NULL, status TEXT NOT NULL, title TEXT,
    closed_by TEXT, closed_at INTEGER, unread INTEGER NOT NULL, archived INTEGER NOT NULL, assignee_type TEXT,
    assignee_id TEXT, assignee_name TEXT, attributes TEXT NOT NULL, rating INTEGER, rated_at INTEGER, ticket_id TEXT,
    visible INTEGER NOT NULL, human INTEGER NOT NULL, messages INTEGER NOT NULL, last_message_at INTEGER,
    routed TEXT NOT NULL, activity INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX conversations_by_contact ON conversations (contact);
CREATE INDEX conversations_by_activity ON conversations (project, activity);

CREATE TABLE messages (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, conversation INTEGER NOT NULL REFERENCES conversations,
    number INTEGER, author_type TEXT NOT NULL, author_id TEXT, author_name TEXT, text TEXT NOT NULL,
    internal INTEGER NOT NULL, created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_by_conversation ON messages (conversation);
CREATE TABLE network_logs (
    conversation INTEGER PRIMARY KEY REFERENCES conversations, snapshot BLOB NOT NULL, updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE events (
    position INTEGER PRIMARY KEY, id TEXT NOT NULL, project INTEGER NOT NULL, conversation INTEGER, sequence INTEGER,
    type TEXT NOT NULL, created_at INTEGER NOT NULL, body BLOB NOT NULL
) STRICT;
CREATE INDEX events_by_project ON events (project);
CREATE UNIQUE INDEX events_by_sequence ON events (conversation, sequence) WHERE conversation IS NOT NULL;
CREATE TABLE event_window (
    one INTEGER PRIMARY KEY CHECK (one = 1), pruned_id TEXT, spent_position INTEGER NOT NULL, spent_id TEXT,
    scrub_due INTEGER NOT NULL
) STRICT;
INSERT INTO event_window VALUES (1, NULL, 0, NULL, 0);
CREATE TABLE consumers (
    rowid INTEGER PRIMARY KEY, project INTEGER NOT NULL REFERENCES projects, channel TEXT NOT NULL,
    consumer TEXT NOT NULL, generation INTEGER NOT NULL, position INTEGER NOT NULL, superseded TEXT NOT NULL,
    since INTEGER NOT NULL, updated_at INTEGER NOT NULL, UNIQUE (project, channel)
) STRICT;

CREATE TABLE endpoints (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL REFERENCES projects,
    url TEXT NOT NULL, events TEXT NOT NULL, sealed_secret BLOB NOT NULL, secret_tail TEXT NOT NULL,
    status TEXT NOT NULL, description TEXT, last_delivery_at INTEGER, last_delivery_status TEXT,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE deliveries (
    position INTEGER PRIMARY KEY, id TEXT NOT NULL, endpoint INTEGER NOT NULL, event INTEGER NOT NULL, lane INTEGER,
    previous INTEGER, status TEXT NOT NULL, attempts INTEGER NOT NULL, due_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL, ended_at INTEGER, reason TEXT
) STRICT;
CREATE INDEX deliveries_by_status ON deliveries (endpoint, status);
CREATE INDEX deliveries_by_lane ON deliveries (lane) WHERE lane IS NOT NULL;
CREATE TABLE attempts (
    delivery INTEGER NOT NULL, number INTEGER NOT NULL, at INTEGER NOT NULL, latency_ms INTEGER NOT NULL,
    status INTEGER, error TEXT, answer BLOB NOT NULL, PRIMARY KEY (delivery, number)
) STRICT, WITHOUT ROWID;
"""
