"""The tables, as a list of migrations that is only ever added to.

Layout rules, from measurements: integer keys that grow with time, no index that no query needs, text ids
as a unique column at most. Event and delivery ids need not even that: they grow with their position, so
they are found by bisection.
"""

from __future__ import annotations

import re
from typing import Final

from sqlite_utils import Database, Migrations

from deskwire.storage.migrations.schema import (
    ELEVENTH,
    FIFTEENTH,
    FOURTEENTH,
    NINTH,
    TENTH,
    THIRTEENTH,
    TWELFTH,
)

migrations: Final = Migrations("deskwire")

_FIRST: Final = """
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


@migrations()
def m0001_the_main_job(db: Database) -> None:
    """People, conversations, the event log, webhook endpoints and their deliveries."""
    _execute(db, _FIRST)


_SECOND: Final = """
ALTER TABLE endpoints ADD COLUMN status_reason TEXT;
ALTER TABLE endpoints ADD COLUMN old_secret BLOB;
ALTER TABLE endpoints ADD COLUMN old_secret_until INTEGER;
ALTER TABLE endpoints ADD COLUMN failed_attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoints ADD COLUMN exhausted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoints ADD COLUMN open_until INTEGER;
ALTER TABLE endpoints ADD COLUMN open_reason TEXT;

-- What the delivery log shows of an event that is no longer stored.
ALTER TABLE deliveries ADD COLUMN event_id TEXT;
ALTER TABLE deliveries ADD COLUMN type TEXT;
ALTER TABLE deliveries ADD COLUMN sequence INTEGER;
UPDATE deliveries SET (event_id, type, sequence) =
    (SELECT id, type, sequence FROM events WHERE position = deliveries.event);
ALTER TABLE deliveries ADD COLUMN redelivery_of INTEGER;
ALTER TABLE deliveries ADD COLUMN redelivered_as INTEGER;
"""


@migrations()
def m0002_webhooks_that_explain_themselves(db: Database) -> None:
    """Circuits, rotated secrets, and a delivery log that outlives the events."""
    _execute(db, _SECOND)


@migrations()
def m0003_what_outlives_its_subject(db: Database) -> None:
    """Deletions by what they are about, as their rows refer to nothing: few, and readers of lanes look for them."""
    for name, path in (("conversation", "id"), ("contact", "contact.userId")):
        db.execute(
            f"CREATE INDEX deletions_by_{name} ON events (json_extract(CAST(body AS TEXT), '$.data.conversation.{path}')) "
            "WHERE conversation IS NULL"
        )


_FOURTH: Final = """
ALTER TABLE projects ADD COLUMN memory_enabled INTEGER NOT NULL DEFAULT 1;
ALTER TABLE projects ADD COLUMN archived_retention_days INTEGER DEFAULT 365;
ALTER TABLE projects ADD COLUMN primary_language TEXT NOT NULL DEFAULT 'en';
ALTER TABLE projects ADD COLUMN languages TEXT NOT NULL DEFAULT 'en';
ALTER TABLE projects ADD COLUMN upload_quota_bytes INTEGER NOT NULL DEFAULT 10737418240;
-- A row that stays behind a removed project, so that its key is never given to another one.
ALTER TABLE projects ADD COLUMN removed_at INTEGER;

-- A password that somebody else has made up is good for one thing: to be replaced.
ALTER TABLE users ADD COLUMN password_temporary INTEGER NOT NULL DEFAULT 0;
-- Access tokens name the generation they were issued in; a new password begins a new one.
ALTER TABLE users ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;

CREATE INDEX memberships_by_organisation ON memberships (organisation);
CREATE INDEX projects_by_organisation ON projects (organisation);
CREATE INDEX server_keys_by_project ON server_keys (project);
"""


@migrations()
def m0004_people_and_what_projects_choose(db: Database) -> None:
    """Project settings, passwords that must be replaced, tokens that end with a password."""
    _execute(db, _FOURTH)


_TICKETS: Final = """
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


@migrations()
def m0005_tickets_and_teams(db: Database) -> None:
    """Tickets with their tags, activity and search index; the members of teams."""
    _execute(db, _TICKETS)


_SIXTH: Final = """
-- AUTOINCREMENT: a reference can't be taken for one to a later upload.
CREATE TABLE uploads (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL REFERENCES projects,
    name TEXT NOT NULL, type TEXT NOT NULL, size INTEGER NOT NULL, sha256 TEXT NOT NULL, attached INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX uploads_by_content ON uploads (project, sha256);
CREATE INDEX uploads_unattached ON uploads (created_at) WHERE attached = 0;
CREATE TABLE attachments (
    upload INTEGER NOT NULL REFERENCES uploads, conversation INTEGER NOT NULL REFERENCES conversations,
    PRIMARY KEY (upload, conversation)
) STRICT, WITHOUT ROWID;
CREATE INDEX attachments_by_conversation ON attachments (conversation);
CREATE TABLE upload_usage (project INTEGER PRIMARY KEY REFERENCES projects, bytes INTEGER NOT NULL) STRICT;
CREATE TABLE doomed_files (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, project INTEGER NOT NULL, sha256 TEXT NOT NULL
) STRICT;

-- [[id, name, type, size], …] as they were when the message was written; NULL for none.
ALTER TABLE messages ADD COLUMN attachments TEXT;
"""


@migrations()
def m0006_uploads_and_attachments(db: Database) -> None:
    """Uploads, what refers to them, and files that have to go."""
    _execute(db, _SIXTH)


_SEVENTH: Final = """
-- AUTOINCREMENT: a refresh under way knows its survey by this key.
CREATE TABLE surveys (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL REFERENCES projects,
    name TEXT NOT NULL, status TEXT NOT NULL, version INTEGER NOT NULL, responses INTEGER NOT NULL DEFAULT 0,
    erasures INTEGER NOT NULL DEFAULT 0, removed INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX surveys_by_project ON surveys (project) WHERE removed = 0;
CREATE INDEX surveys_removed ON surveys (rowid) WHERE removed = 1;
CREATE TABLE survey_versions (
    rowid INTEGER PRIMARY KEY, survey INTEGER NOT NULL REFERENCES surveys, number INTEGER NOT NULL,
    definition TEXT NOT NULL, created_at INTEGER NOT NULL, UNIQUE (survey, number)
) STRICT;
CREATE TABLE survey_responses (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, survey INTEGER NOT NULL REFERENCES surveys,
    version INTEGER NOT NULL, contact INTEGER, language TEXT NOT NULL, answers TEXT NOT NULL, created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX survey_responses_by_survey ON survey_responses (survey);
CREATE INDEX survey_responses_by_version ON survey_responses (survey, version);
CREATE INDEX survey_responses_by_contact ON survey_responses (contact) WHERE contact IS NOT NULL;
CREATE TABLE survey_insights (
    survey INTEGER PRIMARY KEY REFERENCES surveys, parts TEXT NOT NULL, source TEXT NOT NULL, updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE survey_refreshes (
    survey INTEGER PRIMARY KEY REFERENCES surveys, status TEXT NOT NULL, progress REAL NOT NULL,
    started_at INTEGER NOT NULL, ended_at INTEGER, error TEXT, responses INTEGER, scores TEXT NOT NULL, source TEXT
) STRICT;
"""


@migrations()
def m0007_surveys(db: Database) -> None:
    """Surveys with their versions, responses and insights."""
    _execute(db, _SEVENTH)


_EIGHTH: Final = """
CREATE TABLE memory (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, contact INTEGER NOT NULL REFERENCES contacts, name TEXT NOT NULL,
    content TEXT NOT NULL, description TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    UNIQUE (contact, name)
) STRICT;
CREATE TABLE entries (
    rowid INTEGER PRIMARY KEY, project INTEGER NOT NULL REFERENCES projects, type TEXT NOT NULL, key TEXT NOT NULL,
    updated_at INTEGER NOT NULL, UNIQUE (project, type, key)
) STRICT;
CREATE INDEX entries_by_project ON entries (project);
CREATE TABLE translations (
    entry INTEGER NOT NULL REFERENCES entries, language TEXT NOT NULL, fields TEXT NOT NULL,
    updated_at INTEGER NOT NULL, PRIMARY KEY (entry, language)
) STRICT, WITHOUT ROWID;
"""


@migrations()
def m0008_memory_and_translations(db: Database) -> None:
    """What is remembered of contacts, and content in several languages."""
    _execute(db, _EIGHTH)


@migrations()
def m0009_workflows(db: Database) -> None:
    """Workflows with their versions, and where they run."""
    _execute(db, NINTH)


@migrations()
def m0010_what_has_passed_its_retention(db: Database) -> None:
    """When conversations were archived, indexes that find what has to go, and users who were deleted."""
    _execute(db, TENTH)


@migrations()
def m0011_kept_answers(db: Database) -> None:
    """Answers to requests with an `Idempotency-Key`."""
    _execute(db, ELEVENTH)


@migrations()
def m0012_imports(db: Database) -> None:
    """What was brought in from elsewhere, by the ids that it had there."""
    _execute(db, TWELFTH)


@migrations()
def m0013_what_an_outage_keeps_waiting(db: Database) -> None:
    """Circuits that hold, deliveries that are sent once more, and attempts planned from the first one."""
    _execute(db, THIRTEENTH)


@migrations()
def m0014_audit_trail(db: Database) -> None:
    """Who did what."""
    _execute(db, FOURTEENTH)


@migrations()
def m0015_the_homes_of_accounts(db: Database) -> None:
    """Which organisation an account was made for."""
    _execute(db, FIFTEENTH)


def known_migrations() -> set[str]:
    """The names of all migrations that this program knows."""
    return {migration.name for migration in migrations._migrations}  # there is no public list of all


def newer_than_program(db: Database) -> list[str]:
    """Migrations that the database has and this program does not know."""
    return sorted({migration.name for migration in migrations.applied(db)} - known_migrations())


def _execute(db: Database, script: str) -> None:
    """Each statement by itself, as `executescript` would commit before it begins.

    A statement ends with the last semicolon before a line that is not indented: triggers have some inside.
    """
    for statement in re.split(r";\n(?! )", script):
        if statement.strip():
            db.execute(statement)
