"""The tables that SQLite has as well, with the same names and columns.

What differs is how they are found and kept: an index has the row's key behind its columns where lists go by it, no table that
a message adds rows to refers to another one, as each row would lock the one it refers to, and what is changed in place
again and again has room for it on its pages.
"""

from typing import Final

from deskwire.storage.postgres.schema.types import typed

SQL: Final = typed("""
-- Accounts.
CREATE TABLE organisations (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, created_at bigint NOT NULL
);
CREATE TABLE projects (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, organisation bigint NOT NULL REFERENCES organisations, name TEXT NOT NULL,
    stream_key TEXT NOT NULL UNIQUE, created_at bigint NOT NULL, memory_enabled smallint NOT NULL DEFAULT 1,
    archived_retention_days bigint DEFAULT 365, primary_language TEXT NOT NULL DEFAULT 'en',
    languages TEXT NOT NULL DEFAULT 'en', upload_quota_bytes bigint NOT NULL DEFAULT 10737418240, removed_at bigint
);
CREATE INDEX projects_by_organisation ON projects (organisation);
CREATE TABLE users (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, email TEXT NOT NULL, name TEXT NOT NULL, password_hash TEXT,
    created_at bigint NOT NULL, password_temporary smallint NOT NULL DEFAULT 0, generation bigint NOT NULL DEFAULT 0,
    deleted_at bigint, home bigint REFERENCES organisations
);
CREATE UNIQUE INDEX users_by_email ON users (lower(email));
CREATE TABLE memberships (
    organisation bigint NOT NULL REFERENCES organisations, "user" bigint NOT NULL REFERENCES users, role TEXT NOT NULL,
    created_at bigint NOT NULL, PRIMARY KEY ("user", organisation)
);
CREATE INDEX memberships_by_organisation ON memberships (organisation);
CREATE TABLE sessions (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, "user" bigint NOT NULL REFERENCES users, hash bytea NOT NULL UNIQUE,
    client TEXT NOT NULL, created_at bigint NOT NULL, last_seen_at bigint NOT NULL
);
CREATE INDEX sessions_by_user ON sessions ("user", rowid);
CREATE TABLE teams (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, project bigint NOT NULL REFERENCES projects, name TEXT NOT NULL,
    created_at bigint NOT NULL, updated_at bigint NOT NULL DEFAULT 0, deleted_at bigint
);
CREATE INDEX teams_by_project ON teams (project, rowid);
CREATE UNIQUE INDEX teams_by_name ON teams (project, lower(name)) WHERE deleted_at IS NULL;
CREATE INDEX teams_deleted ON teams (rowid) WHERE deleted_at IS NOT NULL;
CREATE TABLE team_members (
    team bigint NOT NULL REFERENCES teams, "user" bigint NOT NULL REFERENCES users, PRIMARY KEY (team, "user")
);
CREATE TABLE server_keys (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, project bigint NOT NULL REFERENCES projects, hash bytea NOT NULL UNIQUE,
    tail TEXT NOT NULL, label TEXT NOT NULL, created_at bigint NOT NULL, last_used_at bigint, revoked_at bigint
);
CREATE INDEX server_keys_by_project ON server_keys (project);

-- Contacts.
CREATE TABLE contacts (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, project bigint NOT NULL REFERENCES projects, user_id TEXT NOT NULL,
    name TEXT, email TEXT, phone TEXT, avatar TEXT, erasing smallint NOT NULL DEFAULT 0, created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE UNIQUE INDEX contacts_by_user ON contacts (project, user_id) WHERE erasing = 0;
CREATE INDEX contacts_erasing ON contacts (rowid) WHERE erasing = 1;
CREATE INDEX contacts_by_project ON contacts (project, rowid) WHERE erasing = 0;
CREATE TABLE contact_words (
    project bigint NOT NULL, word TEXT NOT NULL, contact bigint NOT NULL REFERENCES contacts,
    PRIMARY KEY (project, word, contact)
);
CREATE INDEX contact_words_by_contact ON contact_words (contact);
CREATE TABLE memory (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, contact bigint NOT NULL REFERENCES contacts, name TEXT NOT NULL,
    content TEXT NOT NULL, description TEXT, created_at bigint NOT NULL, updated_at bigint NOT NULL,
    UNIQUE (contact, name)
);

-- Conversations.
CREATE TABLE conversations (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, project bigint NOT NULL, contact bigint NOT NULL REFERENCES contacts,
    revision bigint NOT NULL, sequence bigint NOT NULL, status TEXT NOT NULL, title TEXT, closed_by TEXT,
    closed_at bigint, unread smallint NOT NULL, archived smallint NOT NULL, assignee_type TEXT, assignee_id TEXT,
    assignee_name TEXT, attributes TEXT NOT NULL, rating bigint, rated_at bigint, ticket_id TEXT,
    visible smallint NOT NULL, human smallint NOT NULL, messages bigint NOT NULL, last_message_at bigint,
    routed TEXT NOT NULL, activity bigint NOT NULL, created_at bigint NOT NULL, updated_at bigint NOT NULL,
    archived_at bigint, imported_at bigint, waiting_since bigint, last_turn bigint NOT NULL DEFAULT 0,
    snoozed_until bigint, contact_seen_index bigint, contact_seen_at bigint, network_logs_at bigint,
    tags TEXT NOT NULL DEFAULT '[]', contact_messages bigint NOT NULL DEFAULT 0, hour bigint NOT NULL DEFAULT 0
);
CREATE INDEX conversations_by_contact ON conversations (contact, rowid);
CREATE INDEX conversations_by_activity ON conversations (project, activity, rowid);
CREATE INDEX conversations_archived ON conversations (project, archived_at, rowid) WHERE archived_at IS NOT NULL;
CREATE INDEX conversations_bot_only ON conversations (coalesce(imported_at, created_at)) WHERE human = 0;
CREATE INDEX conversations_snoozed ON conversations (snoozed_until, rowid) WHERE snoozed_until IS NOT NULL;
CREATE INDEX conversations_by_status ON conversations (project, archived, status, hour, snoozed_until);
CREATE INDEX conversations_by_creation ON conversations (project, archived, status, created_at, snoozed_until);
CREATE INDEX conversations_by_assignee ON conversations (project, assignee_id, archived, status, hour, created_at,
    snoozed_until);
CREATE INDEX conversations_hidden ON conversations (project, hour) WHERE visible = 0;
CREATE INDEX conversations_asleep ON conversations (project, archived, hour, snoozed_until) WHERE snoozed_until IS NOT
    NULL;
CREATE INDEX conversations_waiting ON conversations (project, waiting_since, archived, snoozed_until) WHERE
    waiting_since IS NOT NULL;

-- Workflows.
CREATE TABLE workflows (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, project bigint NOT NULL REFERENCES projects, name TEXT NOT NULL,
    trigger TEXT NOT NULL, version bigint NOT NULL, created_at bigint NOT NULL, updated_at bigint NOT NULL
);
CREATE INDEX workflows_by_project ON workflows (project, rowid);
CREATE INDEX workflows_by_trigger ON workflows (project, trigger, rowid);
CREATE TABLE workflow_versions (
    rowid IDENTITY, workflow_id TEXT NOT NULL, number bigint NOT NULL, flows TEXT NOT NULL, retired_at bigint,
    UNIQUE (workflow_id, number)
);
CREATE INDEX workflow_versions_retired ON workflow_versions (retired_at) WHERE retired_at IS NOT NULL;
CREATE TABLE workflow_runs (
    conversation bigint PRIMARY KEY REFERENCES conversations, version bigint NOT NULL REFERENCES workflow_versions,
    state TEXT NOT NULL, due_at bigint
);
CREATE INDEX workflow_runs_by_version ON workflow_runs (version);
CREATE INDEX workflow_runs_due ON workflow_runs (due_at) WHERE due_at IS NOT NULL;

-- Messages, and what else belongs to a conversation.
CREATE TABLE messages (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, conversation bigint NOT NULL, number bigint, author_type TEXT NOT NULL,
    author_id TEXT, author_name TEXT, text TEXT NOT NULL, internal smallint NOT NULL, created_at bigint NOT NULL,
    attachments TEXT, sequence bigint, project bigint NOT NULL
);
CREATE INDEX messages_by_conversation ON messages (conversation, rowid);
CREATE TABLE network_logs (
    conversation bigint PRIMARY KEY REFERENCES conversations, snapshot bytea NOT NULL, updated_at bigint NOT NULL
);
CREATE TABLE conversation_tags (
    project bigint NOT NULL, tag TEXT NOT NULL, conversation bigint NOT NULL REFERENCES conversations,
    PRIMARY KEY (project, tag, conversation)
);
CREATE INDEX conversation_tags_by_conversation ON conversation_tags (conversation);
CREATE TABLE conversation_activity (
    rowid IDENTITY, id TEXT NOT NULL, conversation bigint NOT NULL REFERENCES conversations, at bigint NOT NULL,
    actor_type TEXT NOT NULL, actor_id TEXT, actor_name TEXT, action TEXT NOT NULL, changes TEXT NOT NULL, event_id TEXT
);
CREATE INDEX conversation_activity_by_conversation ON conversation_activity (conversation, rowid);
CREATE TABLE agent_seen (
    "user" bigint NOT NULL REFERENCES users, conversation bigint NOT NULL REFERENCES conversations,
    number bigint NOT NULL, contact_messages bigint NOT NULL, at bigint NOT NULL, PRIMARY KEY ("user", conversation)
);
CREATE INDEX agent_seen_by_conversation ON agent_seen (conversation);
CREATE TABLE imported_conversations (
    project bigint NOT NULL REFERENCES projects, external_id TEXT NOT NULL,
    conversation bigint NOT NULL UNIQUE REFERENCES conversations, fingerprint bigint NOT NULL,
    PRIMARY KEY (project, external_id)
);
CREATE TABLE imported_messages (
    conversation bigint NOT NULL REFERENCES conversations, external_id TEXT NOT NULL, fingerprint bigint NOT NULL,
    PRIMARY KEY (conversation, external_id)
);

-- The event log. A position is `project << 40 | n`; the project in front is that of the counter, also where the column says
-- 0. `about_…` are the public ids that an event of no conversation that there is is found by: deletions, and the last event
-- of a contact.
CREATE TABLE events (
    position bigint PRIMARY KEY, id TEXT NOT NULL, project bigint NOT NULL, conversation bigint, sequence bigint,
    type TEXT NOT NULL, created_at bigint NOT NULL, body bytea NOT NULL, internal smallint NOT NULL DEFAULT 0,
    ticket bigint, about_conversation TEXT, about_user TEXT
);
CREATE UNIQUE INDEX events_by_sequence ON events (conversation, sequence) WHERE conversation IS NOT NULL;
CREATE INDEX deletions_by_conversation ON events (about_conversation, position) WHERE about_conversation IS NOT NULL;
CREATE INDEX deletions_by_contact ON events (about_user, position) WHERE about_user IS NOT NULL;
CREATE INDEX erasures_of_events ON events (position) WHERE type = 'erasure';
CREATE INDEX events_by_ticket ON events (ticket) WHERE ticket IS NOT NULL;
CREATE TABLE event_window (one smallint PRIMARY KEY CHECK (one = 1), scrub_due bigint NOT NULL, erasures bigint NOT NULL);
INSERT INTO event_window VALUES (1, 0, 0);
CREATE TABLE consumers (
    rowid IDENTITY, project bigint NOT NULL REFERENCES projects, channel TEXT NOT NULL, consumer TEXT NOT NULL,
    generation bigint NOT NULL, position bigint NOT NULL, superseded TEXT NOT NULL, since bigint NOT NULL,
    updated_at bigint NOT NULL, node TEXT NOT NULL DEFAULT '', incarnation bigint NOT NULL DEFAULT 0,
    connected smallint NOT NULL DEFAULT 0, dropped_at bigint NOT NULL DEFAULT 0, takeovers TEXT NOT NULL DEFAULT '[]',
    event TEXT, wanted TEXT, UNIQUE (project, channel)
);
CREATE INDEX consumers_wanted ON consumers (incarnation) WHERE wanted IS NOT NULL;

-- Webhooks.
CREATE TABLE endpoints (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, project bigint NOT NULL REFERENCES projects, url TEXT NOT NULL,
    events TEXT NOT NULL, sealed_secret bytea NOT NULL, secret_tail TEXT NOT NULL, status TEXT NOT NULL,
    description TEXT, last_delivery_at bigint, last_delivery_status TEXT, created_at bigint NOT NULL,
    updated_at bigint NOT NULL, status_reason TEXT, old_secret bytea, old_secret_until bigint,
    failed_attempts bigint NOT NULL DEFAULT 0, probes bigint NOT NULL DEFAULT 0, probe_at bigint, open_reason TEXT,
    failing_since bigint, paused_until bigint, last_success_at bigint, held_upto bigint,
    catch_up TEXT NOT NULL DEFAULT 'automatic'
);
CREATE TABLE deliveries (
    position bigint PRIMARY KEY, id TEXT NOT NULL, endpoint bigint NOT NULL, event bigint NOT NULL, lane bigint,
    previous bigint, status TEXT NOT NULL, attempts bigint NOT NULL, due_at bigint NOT NULL, created_at bigint NOT NULL,
    ended_at bigint, reason TEXT, event_id TEXT, type TEXT, sequence bigint, redelivery_of bigint,
    redelivered_as bigint, planned_from bigint, failing_since bigint, missed smallint,
    project bigint GENERATED ALWAYS AS (position >> 40) STORED
);
CREATE INDEX deliveries_by_status ON deliveries (endpoint, status, position);
CREATE INDEX deliveries_planned ON deliveries (endpoint, due_at) WHERE status = 'pending' AND planned_from IS NOT NULL;
CREATE INDEX deliveries_again ON deliveries (endpoint, position) WHERE status = 'pending' AND redelivery_of IS NOT NULL;
CREATE INDEX deliveries_missed ON deliveries (endpoint, event) WHERE missed = 1;
CREATE INDEX deliveries_by_sequence ON deliveries (lane, sequence, position) WHERE lane IS NOT NULL;
CREATE TABLE attempts (
    delivery bigint NOT NULL, number bigint NOT NULL, at bigint NOT NULL, latency_ms bigint NOT NULL, status bigint,
    error TEXT, answer bytea NOT NULL, PRIMARY KEY (delivery, number)
);

-- What projects prepare.
CREATE TABLE entries (
    rowid IDENTITY, project bigint NOT NULL REFERENCES projects, type TEXT NOT NULL, key TEXT NOT NULL,
    updated_at bigint NOT NULL, UNIQUE (project, type, key)
);
CREATE INDEX entries_by_project ON entries (project, rowid);
CREATE TABLE translations (
    entry bigint NOT NULL REFERENCES entries, language TEXT NOT NULL, fields TEXT NOT NULL, updated_at bigint NOT NULL,
    PRIMARY KEY (entry, language)
);
CREATE TABLE snippets (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, project bigint NOT NULL REFERENCES projects, shortcut TEXT NOT NULL,
    title TEXT NOT NULL, text TEXT NOT NULL, language TEXT, team bigint REFERENCES teams,
    author bigint NOT NULL REFERENCES users, created_at bigint NOT NULL, updated_at bigint NOT NULL
);
CREATE UNIQUE INDEX snippets_by_shortcut ON snippets (project, shortcut);
CREATE INDEX snippets_by_project ON snippets (project, rowid);
CREATE INDEX snippets_by_team ON snippets (team) WHERE team IS NOT NULL;
CREATE TABLE surveys (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, project bigint NOT NULL REFERENCES projects, name TEXT NOT NULL,
    status TEXT NOT NULL, version bigint NOT NULL, responses bigint NOT NULL DEFAULT 0,
    erasures bigint NOT NULL DEFAULT 0, removed smallint NOT NULL DEFAULT 0, created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE INDEX surveys_by_project ON surveys (project, rowid) WHERE removed = 0;
CREATE INDEX surveys_removed ON surveys (rowid) WHERE removed = 1;
CREATE TABLE survey_versions (
    rowid IDENTITY, survey bigint NOT NULL REFERENCES surveys, number bigint NOT NULL, definition TEXT NOT NULL,
    created_at bigint NOT NULL, UNIQUE (survey, number)
);
CREATE TABLE survey_responses (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, survey bigint NOT NULL REFERENCES surveys, version bigint NOT NULL,
    contact bigint, language TEXT NOT NULL, answers TEXT NOT NULL, created_at bigint NOT NULL
);
CREATE INDEX survey_responses_by_survey ON survey_responses (survey, rowid);
CREATE INDEX survey_responses_by_version ON survey_responses (survey, version, rowid);
CREATE INDEX survey_responses_by_contact ON survey_responses (contact, rowid) WHERE contact IS NOT NULL;
CREATE TABLE survey_refreshes (
    survey bigint PRIMARY KEY REFERENCES surveys, status TEXT NOT NULL, progress double precision NOT NULL,
    started_at bigint NOT NULL, ended_at bigint, error TEXT, responses bigint, scores TEXT NOT NULL, source TEXT
);
CREATE TABLE survey_insights (
    survey bigint PRIMARY KEY REFERENCES surveys, parts TEXT NOT NULL, source TEXT NOT NULL, updated_at bigint NOT NULL
);

-- Uploads; their bytes are elsewhere.
CREATE TABLE uploads (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, project bigint NOT NULL REFERENCES projects, name TEXT NOT NULL,
    type TEXT NOT NULL, size bigint NOT NULL, sha256 TEXT NOT NULL, attached smallint NOT NULL,
    created_at bigint NOT NULL
);
CREATE INDEX uploads_by_content ON uploads (project, sha256);
CREATE INDEX uploads_unattached ON uploads (created_at) WHERE attached = 0;
CREATE TABLE attachments (
    upload bigint NOT NULL REFERENCES uploads, conversation bigint NOT NULL REFERENCES conversations,
    PRIMARY KEY (upload, conversation)
);
CREATE INDEX attachments_by_conversation ON attachments (conversation);
CREATE TABLE upload_usage (
    project bigint PRIMARY KEY REFERENCES projects, bytes bigint NOT NULL
);
CREATE TABLE doomed_files (
    rowid IDENTITY, project bigint NOT NULL, sha256 TEXT NOT NULL
);

-- Tickets.
CREATE TABLE tickets (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, project bigint NOT NULL REFERENCES projects, title TEXT NOT NULL,
    description TEXT, type TEXT, status TEXT NOT NULL, priority bigint NOT NULL, processing_user TEXT,
    processing_team TEXT, snoozed_until bigint, conversation TEXT, contact bigint REFERENCES contacts,
    tags TEXT NOT NULL, created_at bigint NOT NULL, updated_at bigint NOT NULL, activity bigint NOT NULL
);
CREATE INDEX tickets_by_creation ON tickets (project, status, rowid);
CREATE INDEX tickets_by_update ON tickets (project, status, updated_at, rowid);
CREATE INDEX tickets_by_priority ON tickets (project, status, priority, rowid);
CREATE INDEX tickets_by_activity ON tickets (project, status, activity, rowid);
CREATE INDEX tickets_by_user ON tickets (processing_user, rowid) WHERE processing_user IS NOT NULL;
CREATE INDEX tickets_by_team ON tickets (processing_team, rowid) WHERE processing_team IS NOT NULL;
CREATE INDEX tickets_by_contact ON tickets (contact, rowid) WHERE contact IS NOT NULL;
CREATE INDEX tickets_snoozed ON tickets (snoozed_until) WHERE snoozed_until IS NOT NULL;
CREATE UNIQUE INDEX tickets_by_conversation ON tickets (conversation) WHERE conversation IS NOT NULL;
CREATE TABLE ticket_tags (
    project bigint NOT NULL, tag TEXT NOT NULL, ticket bigint NOT NULL, PRIMARY KEY (project, tag, ticket)
);
CREATE TABLE ticket_activity (
    rowid IDENTITY, id TEXT NOT NULL, ticket bigint NOT NULL REFERENCES tickets, at bigint NOT NULL, user_id TEXT,
    user_name TEXT, action TEXT NOT NULL, changes TEXT NOT NULL
);
CREATE INDEX ticket_activity_by_ticket ON ticket_activity (ticket, rowid);

-- Answers to repeated requests, and the audit trail.
CREATE TABLE kept_answers (
    rowid IDENTITY, name bytea NOT NULL UNIQUE, fingerprint bytea NOT NULL, subject TEXT, sealed bytea,
    at bigint NOT NULL
);
CREATE INDEX kept_answers_by_subject ON kept_answers (subject) WHERE subject IS NOT NULL;
CREATE TABLE audit (
    position IDENTITY, id TEXT NOT NULL, at bigint NOT NULL, last_at bigint NOT NULL, count bigint NOT NULL,
    organisation bigint, project bigint, action TEXT NOT NULL, actor_type TEXT NOT NULL, actor TEXT, object TEXT,
    changes TEXT NOT NULL, details TEXT NOT NULL, address TEXT, request TEXT, slot bigint, tally TEXT
);
CREATE INDEX audit_by_organisation ON audit (organisation, position);
CREATE INDEX audit_by_object ON audit (object, position) WHERE object IS NOT NULL;
CREATE INDEX audit_by_actor ON audit (actor, position) WHERE actor IS NOT NULL;
CREATE UNIQUE INDEX audit_counted ON audit (slot, tally) WHERE slot IS NOT NULL;
CREATE TABLE audit_window (one smallint PRIMARY KEY CHECK (one = 1), since bigint NOT NULL);
INSERT INTO audit_window VALUES (1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);

-- Written again and again: vacuumed when a fiftieth of it is dead, not a fifth.
ALTER TABLE conversations SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE deliveries SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE kept_answers SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE consumers SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE endpoints SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE upload_usage SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE server_keys SET (fillfactor = 80);
ALTER TABLE sessions SET (fillfactor = 80);
""")
