"""The statements of the later migrations."""

from __future__ import annotations

from typing import Final

NINTH: Final = """
CREATE TABLE workflows (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL REFERENCES projects, name TEXT NOT NULL,
    trigger TEXT NOT NULL, version INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX workflows_by_project ON workflows (project);
CREATE INDEX workflows_by_trigger ON workflows (project, trigger);

-- Outlive their workflow for as long as they run. AUTOINCREMENT: a key is never taken for that of another version.
CREATE TABLE workflow_versions (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, workflow_id TEXT NOT NULL, number INTEGER NOT NULL, flows TEXT NOT NULL,
    retired_at INTEGER, UNIQUE (workflow_id, number)
) STRICT;
CREATE INDEX workflow_versions_retired ON workflow_versions (retired_at) WHERE retired_at IS NOT NULL;
CREATE TABLE workflow_runs (
    conversation INTEGER PRIMARY KEY REFERENCES conversations, version INTEGER NOT NULL REFERENCES workflow_versions,
    state TEXT NOT NULL, due_at INTEGER
) STRICT;
CREATE INDEX workflow_runs_by_version ON workflow_runs (version);
CREATE INDEX workflow_runs_due ON workflow_runs (due_at) WHERE due_at IS NOT NULL;
"""


TENTH: Final = """
-- When it was archived. What was archived before this was noted counts from its last change, which was not earlier.
ALTER TABLE conversations ADD COLUMN archived_at INTEGER;
UPDATE conversations SET archived_at = updated_at WHERE archived = 1;
CREATE INDEX conversations_archived ON conversations (project, archived_at) WHERE archived_at IS NOT NULL;
CREATE INDEX conversations_bot_only ON conversations (created_at) WHERE human = 0;
-- A row that stays behind a deleted user, blank, so that its key is never given to another one.
ALTER TABLE users ADD COLUMN deleted_at INTEGER;
"""


_SHOWN_BY: Final = {
    "conversations": ("DELETE ON conversations", "old.id"),
    "contacts": ("DELETE ON contacts", "old.id"),
    "memory": ("DELETE ON memory", "old.id"),
    "tickets": ("DELETE ON tickets", "old.id"),
    "uploads": ("DELETE ON uploads", "old.id"),
    "workflows": ("DELETE ON workflows", "old.id"),
    "responses": ("DELETE ON survey_responses", "old.id"),
    "users": ("UPDATE OF deleted_at ON users WHEN new.deleted_at IS NOT NULL", "old.id"),
    "members": ("DELETE ON memberships", "(SELECT id FROM users WHERE rowid = old.user)"),
    "surveys": ("UPDATE OF removed ON surveys WHEN new.removed = 1", "old.id"),
    "teams": ("UPDATE OF deleted_at ON teams WHEN new.deleted_at IS NOT NULL", "old.id"),
    "projects": ("UPDATE OF removed_at ON projects WHEN new.removed_at IS NOT NULL", "old.id"),
    "keys": ("UPDATE OF revoked_at ON server_keys WHEN new.revoked_at IS NOT NULL", "old.id"),
    "endpoints": ("UPDATE OF status ON endpoints WHEN new.status = 'removed'", "old.id"),
}
"""What takes the kept answers with it that show it, and its id: triggers, so that no way of removing it forgets them."""


ELEVENTH: Final = """
CREATE TABLE kept_answers (
    rowid INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, fingerprint BLOB NOT NULL, subject TEXT, sealed BLOB,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX kept_answers_by_subject ON kept_answers (subject) WHERE subject IS NOT NULL;
""" + "".join(
    f"CREATE TRIGGER kept_answers_of_{name} AFTER {event} BEGIN\n"
    f"    UPDATE kept_answers SET subject = NULL, sealed = NULL WHERE subject = {subject}; END;\n"
    for name, (event, subject) in _SHOWN_BY.items()
)


TWELFTH: Final = """
-- When it was brought in from elsewhere: what is kept for some time after its creation is kept for that time here.
ALTER TABLE conversations ADD COLUMN imported_at INTEGER;
DROP INDEX conversations_bot_only;
CREATE INDEX conversations_bot_only ON conversations (coalesce(imported_at, created_at)) WHERE human = 0;

-- By the ids that they had elsewhere, what was brought in, and fingerprints of what it was brought in with.
CREATE TABLE imported_conversations (
    project INTEGER NOT NULL REFERENCES projects, external_id TEXT NOT NULL,
    conversation INTEGER NOT NULL UNIQUE REFERENCES conversations, fingerprint INTEGER NOT NULL,
    PRIMARY KEY (project, external_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE imported_messages (
    conversation INTEGER NOT NULL REFERENCES conversations, external_id TEXT NOT NULL, fingerprint INTEGER NOT NULL,
    PRIMARY KEY (conversation, external_id)
) STRICT, WITHOUT ROWID;
"""


THIRTEENTH: Final = """
-- When attempts are planned from, when the first had failed, and what an outage dropped that is to be sent once more.
ALTER TABLE deliveries ADD COLUMN planned_from INTEGER;
ALTER TABLE deliveries ADD COLUMN failing_since INTEGER;
ALTER TABLE deliveries ADD COLUMN missed INTEGER;
UPDATE deliveries SET (planned_from, failing_since) = (due_at, due_at) WHERE status = 'pending' AND attempts > 0;
CREATE INDEX deliveries_planned ON deliveries (endpoint, due_at) WHERE status = 'pending' AND planned_from IS NOT NULL;
CREATE INDEX deliveries_again ON deliveries (endpoint, position) WHERE status = 'pending' AND redelivery_of IS NOT NULL;
CREATE INDEX deliveries_missed ON deliveries (endpoint, event) WHERE missed = 1;

-- An endpoint whose circuit was open is probed at the time at which it would have been half-open.
ALTER TABLE endpoints RENAME COLUMN exhausted TO probes;
ALTER TABLE endpoints RENAME COLUMN open_until TO probe_at;
ALTER TABLE endpoints ADD COLUMN failing_since INTEGER;
ALTER TABLE endpoints ADD COLUMN paused_until INTEGER;
ALTER TABLE endpoints ADD COLUMN last_success_at INTEGER;
ALTER TABLE endpoints ADD COLUMN held_upto INTEGER;
ALTER TABLE endpoints ADD COLUMN catch_up TEXT NOT NULL DEFAULT 'automatic';
UPDATE endpoints SET probes = 0, probe_at = 0 WHERE probe_at IS NOT NULL;
"""


FOURTEENTH: Final = """
-- Who did what. It refers to nothing, as it outlives what it is about. A counted record is found by its slot, a quarter of
-- an hour, and by what repetitions are counted by.
CREATE TABLE audit (
    position INTEGER PRIMARY KEY, id TEXT NOT NULL, at INTEGER NOT NULL, last_at INTEGER NOT NULL, count INTEGER NOT NULL,
    organisation INTEGER, project INTEGER, action TEXT NOT NULL, actor_type TEXT NOT NULL, actor TEXT, object TEXT,
    changes TEXT NOT NULL, details TEXT NOT NULL, address TEXT, request TEXT, slot INTEGER, tally TEXT
) STRICT;
CREATE INDEX audit_by_organisation ON audit (organisation);
CREATE INDEX audit_by_object ON audit (object) WHERE object IS NOT NULL;
CREATE INDEX audit_by_actor ON audit (actor) WHERE actor IS NOT NULL;
CREATE UNIQUE INDEX audit_counted ON audit (slot, tally) WHERE slot IS NOT NULL;
-- From when (ms) on there is a record of everything.
CREATE TABLE audit_window (one INTEGER PRIMARY KEY CHECK (one = 1), since INTEGER NOT NULL) STRICT;
INSERT INTO audit_window VALUES (1, CAST(strftime('%s', 'now') AS INTEGER) * 1000);
"""


FIFTEENTH: Final = """
-- The organisation whose people may know the account's password, which is taken for that of the oldest membership.
ALTER TABLE users ADD COLUMN home INTEGER REFERENCES organisations;
UPDATE users SET home = (
    SELECT organisation FROM memberships WHERE user = users.rowid ORDER BY created_at, organisation LIMIT 1);
-- Where there are several, an account of none may have been one's before: it gets into another only with a new password.
UPDATE users SET password_hash = NULL, generation = generation + 1
    WHERE home IS NULL AND password_hash IS NOT NULL AND (SELECT count(*) FROM organisations) > 1;
"""
