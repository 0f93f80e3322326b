"""Tickets with their tags, activity and search index; the members of teams."""

from typing import Final

SQL: Final = """
-- AUTOINCREMENT: the order of the keys is that of creation, also after the newest was deleted.
CREATE TABLE tickets (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL REFERENCES projects,
    title TEXT NOT NULL, description TEXT, type TEXT, status TEXT NOT NULL, priority INTEGER NOT NULL,
    processing_user TEXT, processing_team TEXT, snoozed_until INTEGER, conversation TEXT,
    contact INTEGER REFERENCES contacts, tags TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    activity INTEGER NOT NULL
) STRICT;
CREATE INDEX tickets_by_creation ON tickets (project, status);
CREATE INDEX tickets_by_update ON tickets (project, status, updated_at);
CREATE INDEX tickets_by_priority ON tickets (project, status, priority);
CREATE INDEX tickets_by_activity ON tickets (project, status, activity);
CREATE INDEX tickets_by_user ON tickets (processing_user) WHERE processing_user IS NOT NULL;
CREATE INDEX tickets_by_team ON tickets (processing_team) WHERE processing_team IS NOT NULL;
CREATE INDEX tickets_by_contact ON tickets (contact) WHERE contact IS NOT NULL;
CREATE INDEX tickets_snoozed ON tickets (snoozed_until) WHERE snoozed_until IS NOT NULL;
CREATE UNIQUE INDEX tickets_by_conversation ON tickets (conversation) WHERE conversation IS NOT NULL;
CREATE TABLE ticket_tags (
    project INTEGER NOT NULL, tag TEXT NOT NULL, ticket INTEGER NOT NULL,
    PRIMARY KEY (project, tag, ticket)
) STRICT, WITHOUT ROWID;
CREATE TABLE ticket_activity (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL, ticket INTEGER NOT NULL REFERENCES tickets, at INTEGER NOT NULL,
    user_id TEXT, user_name TEXT, action TEXT NOT NULL, changes TEXT NOT NULL
) STRICT;
CREATE INDEX ticket_activity_by_ticket ON ticket_activity (ticket);

-- The text is in `tickets` alone; the index has its words. The project is one of them, so that a search meets its own only.
CREATE VIRTUAL TABLE ticket_search USING fts5 (
    project, title, description, content = 'tickets', content_rowid = 'rowid', prefix = '2 3',
    tokenize = 'unicode61 remove_diacritics 2'
);
INSERT INTO ticket_search (ticket_search, rank) VALUES ('usermerge', 2);
CREATE TRIGGER ticket_search_insert AFTER INSERT ON tickets BEGIN
    INSERT INTO ticket_search (rowid, project, title, description) VALUES (new.rowid, new.project, new.title, new.description); END;
CREATE TRIGGER ticket_search_delete AFTER DELETE ON tickets BEGIN
    INSERT INTO ticket_search (ticket_search, rowid, project, title, description)
    VALUES ('delete', old.rowid, old.project, old.title, old.description); END;
CREATE TRIGGER ticket_search_update AFTER UPDATE OF title, description ON tickets
WHEN new.title IS NOT old.title OR new.description IS NOT old.description BEGIN
    INSERT INTO ticket_search (ticket_search, rowid, project, title, description)
    VALUES ('delete', old.rowid, old.project, old.title, old.description);
    INSERT INTO ticket_search (rowid, project, title, description) VALUES (new.rowid, new.project, new.title, new.description); END;
CREATE TABLE search_upkeep (one INTEGER PRIMARY KEY CHECK (one = 1), merge_due INTEGER NOT NULL) STRICT;
INSERT INTO search_upkeep VALUES (1, 0);

ALTER TABLE teams ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE teams ADD COLUMN deleted_at INTEGER;
UPDATE teams SET updated_at = created_at;
CREATE INDEX teams_by_project ON teams (project);
CREATE UNIQUE INDEX teams_by_name ON teams (project, name COLLATE NOCASE) WHERE deleted_at IS NULL;
CREATE INDEX teams_deleted ON teams (rowid) WHERE deleted_at IS NOT NULL;
CREATE TABLE team_members (
    team INTEGER NOT NULL REFERENCES teams, user INTEGER NOT NULL REFERENCES users, PRIMARY KEY (team, user)
) STRICT, WITHOUT ROWID;
"""
