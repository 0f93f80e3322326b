"""Web push: subscriptions of browsers, and pushes."""

from typing import Final

SQL: Final = """
-- The key by which push services recognise the installation, encrypted under its secret. There is one, whose `number` is 1.
CREATE TABLE push_keys (number INTEGER PRIMARY KEY CHECK (number = 1), sealed BLOB NOT NULL, created_at INTEGER NOT NULL) STRICT;

-- `endpoint_hash` is the SHA-256 of the endpoint; `sealed` has the endpoint and the keys of the browser.
CREATE TABLE push_subscriptions (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL UNIQUE REFERENCES sessions ON DELETE CASCADE,
    user INTEGER NOT NULL REFERENCES users, endpoint_hash BLOB NOT NULL UNIQUE, sealed BLOB NOT NULL,
    created_at INTEGER NOT NULL, held_until INTEGER NOT NULL
) STRICT;
CREATE INDEX push_subscriptions_by_user ON push_subscriptions (user);

-- The position in the event log up to which it is decided who is notified, of projects with a subscribed member.
CREATE TABLE push_cursors (project INTEGER PRIMARY KEY REFERENCES projects, position INTEGER NOT NULL) STRICT;

-- `conversation` and `event` are ids. A push outlives its subscription, to say why it was not sent.
CREATE TABLE pushes (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, user INTEGER NOT NULL REFERENCES users,
    project INTEGER NOT NULL REFERENCES projects, subscription INTEGER REFERENCES push_subscriptions ON DELETE SET NULL,
    client TEXT NOT NULL, conversation TEXT NOT NULL, event TEXT NOT NULL, cause TEXT NOT NULL, at INTEGER NOT NULL,
    created_at INTEGER NOT NULL, due_at INTEGER NOT NULL, status TEXT NOT NULL, reason TEXT, detail TEXT,
    attempts INTEGER NOT NULL, ended_at INTEGER, UNIQUE (subscription, event)
) STRICT;
CREATE INDEX pushes_by_user ON pushes (user, rowid);
CREATE INDEX pushes_due ON pushes (due_at, rowid) WHERE ended_at IS NULL;
CREATE INDEX pushes_waiting ON pushes (subscription, conversation) WHERE status = 'waiting';
CREATE INDEX pushes_by_end ON pushes (ended_at) WHERE ended_at IS NOT NULL;
"""
