"""Tables and columns that were added after the baseline, one constant for each migration."""

from __future__ import annotations

from typing import Final

from deskwire.storage.postgres.schema.baseline import typed
from deskwire.storage.postgres.schema.triggers import forget_answers_trigger, notify_triggers
from deskwire.storage.sqlite.migrations.m0033_what_reports_count import FILL

# Machine credentials, with the same triggers as server keys.
MACHINE_CREDENTIALS: Final = typed("""
CREATE TABLE machine_credentials (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, project bigint NOT NULL REFERENCES projects, name TEXT NOT NULL,
    permissions TEXT NOT NULL, hash bytea NOT NULL UNIQUE, tail TEXT NOT NULL, made_by TEXT NOT NULL, made_by_id TEXT,
    created_at bigint NOT NULL, expires_at bigint, last_used_at bigint, revoked_at bigint,
    generation bigint NOT NULL, previous_hash bytea UNIQUE, previous_expires_at bigint
);
CREATE INDEX machine_credentials_by_project ON machine_credentials (project);
ALTER TABLE machine_credentials SET (fillfactor = 80);
""") + "".join(
    (
        forget_answers_trigger("machine_credentials", "UPDATE OF revoked_at", "NEW.revoked_at IS NOT NULL"),
        notify_triggers(
            "machine_credentials",
            "INSERT OR DELETE OR UPDATE OF project, name, permissions, hash, expires_at, revoked_at, generation, "
            "previous_hash, previous_expires_at",
            "callers",
        ),
    )
)

# Attributes and tags of contacts, lists of contacts by their last change, and merged contacts.
CONTACTS: Final = typed("""
-- Of `erasing`: 1 is for a contact that is being erased, 2 for one that is being merged into another one, 3 for one that was.
ALTER TABLE contacts ADD COLUMN attributes TEXT NOT NULL DEFAULT '{}', ADD COLUMN tags TEXT NOT NULL DEFAULT '[]',
    ADD COLUMN merged_into bigint REFERENCES contacts;
CREATE TABLE contact_tags (
    project bigint NOT NULL, tag TEXT NOT NULL, contact bigint NOT NULL REFERENCES contacts,
    PRIMARY KEY (project, tag, contact)
);
CREATE INDEX contact_tags_by_contact ON contact_tags (contact);
CREATE TABLE contact_attributes (
    project bigint NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, contact bigint NOT NULL REFERENCES contacts,
    PRIMARY KEY (project, name, value, contact)
);
CREATE INDEX contact_attributes_by_contact ON contact_attributes (contact);
-- The events of a conversation from `since` on, in front of `upto`, are those of a contact whose it was then; both are ids.
CREATE TABLE moved_conversations (
    conversation bigint NOT NULL REFERENCES conversations, contact bigint NOT NULL REFERENCES contacts,
    since TEXT NOT NULL, upto TEXT NOT NULL, PRIMARY KEY (conversation, upto)
);
CREATE INDEX moved_conversations_by_contact ON moved_conversations (contact);
""")

_CREATE: Final = "CREATE INDEX CONCURRENTLY IF NOT EXISTS"
CONTACTS_INDEXES: Final = (
    f"{_CREATE} contacts_merged ON contacts (project, user_id) WHERE erasing >= 2",
    f"{_CREATE} contacts_merging ON contacts (rowid) WHERE erasing = 2",
    f"{_CREATE} contacts_merged_into ON contacts (merged_into) WHERE merged_into IS NOT NULL",
    f"{_CREATE} contacts_by_update ON contacts (project, updated_at, rowid) WHERE erasing = 0",
    f"{_CREATE} contacts_by_creation ON contacts (project, created_at, rowid) WHERE erasing = 0",
)

# Redacted messages, and the time of deleted ones. The columns are the same in SQLite.
REDACTION: Final = """
ALTER TABLE messages ADD COLUMN redacted_at bigint, ADD COLUMN deleted_at bigint;
-- Whoever hears that a message is redacted can rely on it at every node.
CREATE CONSTRAINT TRIGGER begin_epoch AFTER UPDATE OF redacted_at, deleted_at ON messages
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION begin_epoch();
ALTER TABLE search_changes ADD COLUMN reworded smallint NOT NULL DEFAULT 0;
"""

# Endpoints that receive internal notes. Older programs would show such events to every consumer, so none may
# run beside this schema.
INTERNAL_EVENTS: Final = """
ALTER TABLE endpoints ADD COLUMN internal smallint NOT NULL DEFAULT 0;
CREATE CONSTRAINT TRIGGER begin_epoch_of_internal AFTER UPDATE OF internal ON endpoints
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION begin_epoch();
"""

# The milestones of conversations that reports count, and the columns from which they are computed.
MILESTONES: Final = typed(rf"""
-- When the contact first wrote, when an agent first answered that, since when it is open if it was reopened, the agent who
-- wrote last, and the team that it was last assigned to.
ALTER TABLE conversations ADD COLUMN asked_at bigint, ADD COLUMN answered_at bigint, ADD COLUMN opened_at bigint,
    ADD COLUMN replier_id TEXT, ADD COLUMN team_id TEXT;
UPDATE conversations SET team_id = CASE WHEN assignee_type = 'team' THEN assignee_id ELSE (
    SELECT a.changes -> 0 -> 2 ->> 'id' FROM (SELECT rowid, CAST(replace(changes, '\u0000', '\u0020') AS json) AS changes
    FROM conversation_activity WHERE conversation = conversations.rowid AND action = 'assigned') a
    WHERE a.changes -> 0 -> 2 ->> 'type' = 'team' ORDER BY a.rowid DESC LIMIT 1) END;
CREATE TABLE milestones (
    rowid IDENTITY, project bigint NOT NULL, conversation bigint NOT NULL REFERENCES conversations, kind TEXT NOT NULL,
    at bigint NOT NULL, since bigint, score bigint, agent_id TEXT, team_id TEXT, imported smallint NOT NULL
);
CREATE INDEX milestones_by_conversation ON milestones (conversation);
{FILL}CREATE INDEX milestones_by_time ON milestones (project, kind, at)
    INCLUDE (since, agent_id, team_id, conversation, imported, score);
""")

_BY_TIME: Final = (
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS messages_by_time ON messages (project, created_at) "
    "INCLUDE (author_type, conversation, author_id) WHERE internal = 0"
)
MILESTONES_INDEXES: Final = (_BY_TIME,)

# The step at which a workflow run waits, the time when a version was published, and the results of runs.
WORKFLOW_ENDS: Final = typed(r"""
ALTER TABLE workflow_runs ADD COLUMN since bigint, ADD COLUMN flow bigint, ADD COLUMN action bigint;
UPDATE workflow_runs SET flow = CAST(CAST(replace(state, '\u0000', '\u0020') AS json) ->> 'flow' AS bigint),
    action = CAST(CAST(replace(state, '\u0000', '\u0020') AS json) ->> 'action' AS bigint);
ALTER TABLE workflow_versions ADD COLUMN created_at bigint;
CREATE TABLE workflow_ends (
    rowid IDENTITY, workflow_id TEXT NOT NULL, number bigint NOT NULL, conversation bigint NOT NULL REFERENCES conversations,
    flow bigint, action bigint, outcome TEXT NOT NULL, stopped smallint NOT NULL, at bigint NOT NULL
);
CREATE INDEX workflow_ends_by_conversation ON workflow_ends (conversation);
CREATE INDEX workflow_ends_by_workflow ON workflow_ends (workflow_id, rowid);
CREATE INDEX workflow_ends_by_outcome ON workflow_ends (workflow_id, outcome);
CREATE INDEX workflow_ends_stopped ON workflow_ends (workflow_id, rowid) WHERE stopped = 1;
""")

# The attributes of conversations as rows, for filters by a rare attribute. Triggers maintain them.
_NUMBER: Final = "CAST(value #>> '{}' AS double precision)"

CONVERSATION_ATTRIBUTES: Final = typed(rf"""
-- The value is the beginning of a text, or the integer part of a number. A conversation's own row says which rows it has here.
CREATE TABLE conversation_attributes (
    project bigint NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, conversation bigint NOT NULL,
    PRIMARY KEY (project, name, value, conversation)
);
CREATE FUNCTION attribute_keys(attributes text) RETURNS TABLE (name text, value text) LANGUAGE sql IMMUTABLE AS $$
    SELECT key, CASE json_typeof(value) WHEN 'boolean' THEN value #>> '{{}}' WHEN 'string' THEN left(value #>> '{{}}', 64)
    ELSE CASE WHEN {_NUMBER} > -1e15 AND {_NUMBER} < 1e15 THEN CAST(CAST(trunc({_NUMBER}) AS bigint) AS text) ELSE 'large' END END
    FROM json_each(CAST(replace(attributes, '\u0000', '\u0020') AS json)) WHERE json_typeof(value) IN ('boolean', 'string', 'number')
$$;
CREATE FUNCTION index_attributes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM conversation_attributes g USING attribute_keys(OLD.attributes) k
        WHERE g.project = OLD.project AND g.name = k.name AND g.value = k.value AND g.conversation = OLD.rowid;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO conversation_attributes SELECT NEW.project, k.name, k.value, NEW.rowid FROM attribute_keys(NEW.attributes) k
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL; END $$;
CREATE TRIGGER attributes_put AFTER INSERT ON conversations FOR EACH ROW WHEN (NEW.attributes <> '{{}}')
    EXECUTE FUNCTION index_attributes();
CREATE TRIGGER attributes_change AFTER UPDATE OF attributes ON conversations FOR EACH ROW
    WHEN (NEW.attributes <> OLD.attributes) EXECUTE FUNCTION index_attributes();
CREATE TRIGGER attributes_go AFTER DELETE ON conversations FOR EACH ROW WHEN (OLD.attributes <> '{{}}')
    EXECUTE FUNCTION index_attributes();
INSERT INTO conversation_attributes SELECT c.project, k.name, k.value, c.rowid
    FROM conversations c CROSS JOIN LATERAL attribute_keys(c.attributes) k ON CONFLICT DO NOTHING;
""")

# Drafts and held messages of agents (ADR 53). Older programs do not know them, so rows are deleted by
# cascade.
DRAFTS_AND_HELD_MESSAGES: Final = typed("""
CREATE TABLE drafts (
    rowid IDENTITY, author bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    project bigint NOT NULL REFERENCES projects,
    conversation bigint NOT NULL REFERENCES conversations ON DELETE CASCADE, internal smallint NOT NULL,
    size bigint NOT NULL, version bigint NOT NULL, base_sequence bigint, updated_at bigint NOT NULL,
    attachments TEXT, text TEXT NOT NULL
);
CREATE UNIQUE INDEX drafts_by_place ON drafts (conversation, author, internal);
CREATE INDEX drafts_by_author ON drafts (author, project, updated_at, size);
CREATE TABLE held_messages (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, author bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    project bigint NOT NULL REFERENCES projects,
    conversation bigint NOT NULL REFERENCES conversations ON DELETE CASCADE, internal smallint NOT NULL,
    if_sequence bigint, follow TEXT, send_at bigint NOT NULL, created_at bigint NOT NULL, problem TEXT,
    attachments TEXT, text TEXT NOT NULL
);
CREATE INDEX held_messages_by_author ON held_messages (author, project);
CREATE INDEX held_messages_by_conversation ON held_messages (conversation);
CREATE INDEX held_messages_due ON held_messages (send_at) WHERE problem IS NULL;
ALTER TABLE drafts SET (autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE held_messages SET (autovacuum_vacuum_scale_factor = 0.02);
""")

# The requested end of a machine credential, and the credential that created an endpoint (ADR 70).
# An older program does not enforce these rules, so none may run beside this schema.
CREDENTIAL_SCOPES: Final = typed("""
ALTER TABLE machine_credentials ADD COLUMN own_expires_at bigint;
UPDATE machine_credentials SET own_expires_at = expires_at;
ALTER TABLE endpoints ADD COLUMN credential TEXT;
UPDATE endpoints SET credential = (
    SELECT CASE a.actor_type WHEN 'machine' THEN a.actor END FROM audit a
    WHERE a.object = endpoints.id AND a.action IN ('webhook.created', 'webhook.changed', 'webhook.enabled')
    ORDER BY a.position DESC LIMIT 1);
""")

# Expiry of one-time passwords, single access tokens, and pushes of the audit trail.
ACCESS_TOKENS: Final = (
    typed(r"""
ALTER TABLE users ADD COLUMN password_made_at bigint;
UPDATE users SET password_made_at = CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)
    WHERE password_temporary = 1;
UPDATE kept_answers SET subject = NULL, sealed = NULL WHERE subject LIKE 'key\_%' OR subject LIKE 'usr\_%';
CREATE TABLE access_tokens (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, "user" bigint NOT NULL REFERENCES users, source TEXT NOT NULL,
    client TEXT NOT NULL, generation bigint NOT NULL, created_at bigint NOT NULL, expires_at bigint NOT NULL, ended_at bigint
);
CREATE INDEX access_tokens_by_user ON access_tokens ("user", rowid);
CREATE INDEX access_tokens_by_end ON access_tokens (expires_at);
CREATE INDEX access_tokens_ended ON access_tokens (expires_at) WHERE ended_at IS NOT NULL;
CREATE TABLE audit_pushes (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, organisation bigint NOT NULL UNIQUE REFERENCES organisations,
    url TEXT NOT NULL, sealed_secret bytea NOT NULL, secret_tail TEXT NOT NULL, old_secret bytea, old_secret_until bigint,
    created_at bigint NOT NULL, updated_at bigint NOT NULL, attempts bigint NOT NULL DEFAULT 0, due_at bigint,
    failing_since bigint, last_at bigint, last_status bigint, last_error TEXT, missed bigint NOT NULL DEFAULT 0
);
CREATE TABLE audit_unpushed (
    rowid IDENTITY, push bigint NOT NULL REFERENCES audit_pushes, record bigint NOT NULL, UNIQUE (push, record)
);
CREATE INDEX audit_unpushed_by_record ON audit_unpushed (record);
""")
    + notify_triggers("access_tokens", "UPDATE OF ended_at", "session")
    + forget_answers_trigger("audit_pushes", "DELETE", None)
)

# The time up to which all agents have seen a conversation, and up to which each agent has seen a project.
SEEN_MARKS: Final = typed("""
ALTER TABLE conversations ADD COLUMN seen_until bigint NOT NULL DEFAULT 0;
-- A conversation that was closed when it was imported has been seen by all.
UPDATE conversations SET seen_until = imported_at WHERE imported_at IS NOT NULL AND status = 'CLOSED';
CREATE TABLE seen_marks (
    "user" bigint NOT NULL REFERENCES users, project bigint NOT NULL REFERENCES projects, until bigint NOT NULL,
    PRIMARY KEY ("user", project)
);
CREATE INDEX seen_marks_by_project ON seen_marks (project);
""")

# The system identifier and timeline of the newest server of the installation.
SERVER_IDENTITY: Final = typed("""
ALTER TABLE installation ADD COLUMN system_id TEXT, ADD COLUMN timeline bigint NOT NULL DEFAULT 0
""")

# Channels, sessions of customers, and the ids that customers' clients give. Older programs do not know the rows
# of a contact or conversation, so these are deleted by cascade.
CUSTOMERS: Final = (
    typed("""
CREATE TABLE channels (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, project bigint NOT NULL REFERENCES projects, type TEXT NOT NULL,
    name TEXT NOT NULL, enabled smallint NOT NULL, origins TEXT NOT NULL, identity_mode TEXT NOT NULL,
    public_keys TEXT NOT NULL, visitors_allowed smallint NOT NULL, ask TEXT NOT NULL, look TEXT NOT NULL,
    starts_workflow TEXT, survey TEXT, native smallint NOT NULL, sealed_secret bytea NOT NULL, secret_tail TEXT NOT NULL,
    old_secret bytea, old_secret_until bigint, created_at bigint NOT NULL, updated_at bigint NOT NULL, removed_at bigint
);
CREATE INDEX channels_by_project ON channels (project, rowid) WHERE removed_at IS NULL;
CREATE TABLE contact_sessions (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, contact bigint REFERENCES contacts ON DELETE SET NULL,
    channel bigint NOT NULL REFERENCES channels, hash bytea NOT NULL UNIQUE, verified smallint NOT NULL,
    signed TEXT NOT NULL DEFAULT '[]', context TEXT, client TEXT NOT NULL DEFAULT '', created_at bigint NOT NULL,
    last_used_at bigint NOT NULL, expires_at bigint NOT NULL, ended_at bigint
);
CREATE INDEX contact_sessions_by_contact ON contact_sessions (contact, rowid);
CREATE INDEX contact_sessions_by_channel ON contact_sessions (channel, rowid);
CREATE INDEX contact_sessions_by_expiry ON contact_sessions (expires_at);
ALTER TABLE contact_sessions SET (fillfactor = 80);
CREATE TABLE conversation_client_ids (
    contact bigint NOT NULL REFERENCES contacts ON DELETE CASCADE, client_id TEXT NOT NULL,
    conversation bigint NOT NULL REFERENCES conversations ON DELETE CASCADE, PRIMARY KEY (contact, client_id)
);
CREATE INDEX conversation_client_ids_by_conversation ON conversation_client_ids (conversation);
ALTER TABLE messages ADD COLUMN client_id TEXT;
ALTER TABLE conversations ADD COLUMN channel TEXT, ADD COLUMN client_id TEXT, ADD COLUMN contact_reached_index bigint,
    ADD COLUMN contact_reached_at bigint;
""")
    + forget_answers_trigger("channels", "UPDATE OF removed_at", "NEW.removed_at IS NOT NULL")
    + notify_triggers("channels", "INSERT OR DELETE OR UPDATE", "callers")
    + notify_triggers("contact_sessions", "UPDATE OF ended_at", "session")
)
_BY_CLIENT_ID: Final = (
    "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS messages_by_client_id ON messages (conversation, client_id) "
    "WHERE client_id IS NOT NULL"
)
CUSTOMERS_INDEXES: Final = (_BY_CLIENT_ID,)

# The customers who sent uploads and survey responses; see the migration of SQLite.
UPLOADS_OF_CUSTOMERS: Final = typed("""
ALTER TABLE uploads ADD COLUMN contact TEXT;
ALTER TABLE survey_responses ADD COLUMN client_key TEXT;
""")
UPLOADS_OF_CUSTOMERS_INDEXES: Final = (
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS uploads_by_contact ON uploads (contact) WHERE contact IS NOT NULL",
    "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS survey_responses_by_client_key ON survey_responses (survey, client_key) WHERE client_key IS NOT NULL",
)

# How the users of sessions signed in; see the migration of SQLite.
SIGN_IN_OF_SESSIONS: Final = typed("""
ALTER TABLE sessions ADD COLUMN method TEXT NOT NULL DEFAULT 'password', ADD COLUMN proved_at bigint NOT NULL DEFAULT 0,
    ADD COLUMN second_factor bigint NOT NULL DEFAULT 0, ADD COLUMN provider TEXT, ADD COLUMN provider_sid TEXT;
UPDATE sessions SET proved_at = created_at;
""")

# Roles of an organisation's own; see the migration of SQLite. A node of an older program refuses their members.
ROLES: Final = (
    typed("""
CREATE TABLE roles (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, organisation bigint NOT NULL REFERENCES organisations, name TEXT NOT NULL,
    description TEXT NOT NULL, permissions TEXT NOT NULL, created_at bigint NOT NULL
);
CREATE INDEX roles_by_organisation ON roles (organisation, rowid);
""")
    + forget_answers_trigger("roles", "DELETE", None)
    + notify_triggers("roles", "DELETE OR UPDATE OF permissions", "people")
)

# The limits of sessions by organisation, the ends of server keys, and known browsers; see the migration of SQLite. A new member's
# sessions are under the limits of the organisation, so other nodes read them again.
ENDS_OF_SIGN_INS: Final = (
    typed("""
ALTER TABLE organisations ADD COLUMN session_idle_s bigint, ADD COLUMN session_max_s bigint;
ALTER TABLE server_keys ADD COLUMN expires_at bigint;
CREATE INDEX server_keys_by_end ON server_keys (expires_at) WHERE revoked_at IS NULL;
CREATE INDEX machine_credentials_by_end ON machine_credentials (expires_at) WHERE revoked_at IS NULL;
CREATE TABLE known_browsers (
    rowid IDENTITY, "user" bigint NOT NULL REFERENCES users ON DELETE CASCADE, hash bytea NOT NULL,
    created_at bigint NOT NULL, used_at bigint NOT NULL, UNIQUE ("user", hash)
);
CREATE INDEX known_browsers_by_use ON known_browsers (used_at);
DROP TRIGGER IF EXISTS note_change ON organisations;
DROP TRIGGER IF EXISTS begin_epoch ON organisations;
DROP TRIGGER note_change ON memberships;
DROP TRIGGER begin_epoch ON memberships;
""")
    + notify_triggers("organisations", "UPDATE", "people")
    + notify_triggers("memberships", "INSERT OR DELETE OR UPDATE", "people")
)

# Invitations, one-time links, and the queue of mails; see the migration of SQLite.
LINKS_AND_MAILS: Final = typed("""
CREATE TABLE invitations (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, organisation bigint NOT NULL REFERENCES organisations, email TEXT NOT NULL,
    folded TEXT NOT NULL, name TEXT, role TEXT NOT NULL, invited_by TEXT NOT NULL, created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE INDEX invitations_by_organisation ON invitations (organisation, rowid);
CREATE INDEX invitations_by_address ON invitations (folded);
CREATE INDEX invitations_by_end ON invitations (expires_at);
CREATE TABLE one_time_links (
    rowid IDENTITY, purpose TEXT NOT NULL, hash bytea NOT NULL UNIQUE, created_at bigint NOT NULL, expires_at bigint NOT NULL,
    invitation bigint REFERENCES invitations, "user" bigint REFERENCES users, generation bigint,
    organisation bigint REFERENCES organisations, made_by TEXT
);
CREATE INDEX one_time_links_by_end ON one_time_links (expires_at);
CREATE INDEX one_time_links_by_user ON one_time_links ("user") WHERE "user" IS NOT NULL;
CREATE INDEX one_time_links_by_invitation ON one_time_links (invitation) WHERE invitation IS NOT NULL;
CREATE TABLE mails (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, purpose TEXT NOT NULL, recipient TEXT NOT NULL, folded TEXT NOT NULL,
    created_at bigint NOT NULL, expires_at bigint NOT NULL, due_at bigint NOT NULL, sealed bytea,
    invitation bigint REFERENCES invitations, status TEXT NOT NULL, attempts bigint NOT NULL, error TEXT, last_at bigint
);
CREATE INDEX mails_due ON mails (due_at, rowid) WHERE status = 'waiting';
CREATE INDEX mails_by_address ON mails (folded);
CREATE INDEX mails_by_invitation ON mails (invitation) WHERE invitation IS NOT NULL;
""")

# Identities of accounts at OpenID providers; see the migration of SQLite.
IDENTITIES: Final = typed("""
CREATE TABLE identities (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, "user" bigint NOT NULL REFERENCES users, issuer TEXT NOT NULL,
    provider TEXT NOT NULL, subject TEXT NOT NULL, email TEXT NOT NULL, gives_role bigint NOT NULL, created_at bigint NOT NULL,
    UNIQUE (issuer, subject)
);
CREATE INDEX identities_by_user ON identities ("user", rowid);
CREATE TABLE oidc_requests (
    state bytea PRIMARY KEY, browser bytea NOT NULL, provider TEXT NOT NULL, purpose TEXT NOT NULL, return_to TEXT NOT NULL,
    session TEXT, created_at bigint NOT NULL, expires_at bigint NOT NULL
);
CREATE INDEX oidc_requests_by_end ON oidc_requests (expires_at);
CREATE TABLE oidc_logouts (digest bytea PRIMARY KEY, until bigint NOT NULL);
CREATE INDEX oidc_logouts_by_end ON oidc_logouts (until);
""")
IDENTITIES_INDEXES: Final = (
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_by_provider ON sessions (provider, provider_sid) WHERE provider IS NOT NULL",
)

# Second factors of users; see the migration of SQLite.
SECOND_FACTORS: Final = typed("""
ALTER TABLE organisations ADD COLUMN second_factor bigint NOT NULL DEFAULT 0;
CREATE TABLE totps (
    rowid IDENTITY, "user" bigint NOT NULL REFERENCES users, confirmed bigint NOT NULL, sealed_secret bytea NOT NULL,
    created_at bigint NOT NULL, used_step bigint NOT NULL, UNIQUE ("user", confirmed)
);
CREATE TABLE passkeys (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, "user" bigint NOT NULL REFERENCES users, credential bytea NOT NULL UNIQUE,
    public_key bytea NOT NULL, sign_count bigint NOT NULL, name TEXT NOT NULL, created_at bigint NOT NULL, last_used_at bigint
);
CREATE INDEX passkeys_by_user ON passkeys ("user", rowid);
CREATE TABLE recovery_codes (
    rowid IDENTITY, "user" bigint NOT NULL REFERENCES users, hash bytea NOT NULL, UNIQUE ("user", hash)
);
CREATE TABLE challenges (
    rowid IDENTITY, hash bytea NOT NULL UNIQUE, kind TEXT NOT NULL, "user" bigint REFERENCES users,
    generation bigint NOT NULL, expires_at bigint NOT NULL, session TEXT, wrong_codes bigint NOT NULL, webauthn bytea,
    carried bytea NOT NULL
);
CREATE INDEX challenges_by_user ON challenges ("user");
CREATE INDEX challenges_by_session ON challenges (session) WHERE session IS NOT NULL;
CREATE INDEX challenges_by_end ON challenges (expires_at);
""")

# The format of messages; see the migration of SQLite.
FORMATS_OF_MESSAGES: Final = typed("""
ALTER TABLE messages ADD COLUMN format TEXT;
ALTER TABLE held_messages ADD COLUMN format TEXT;
""")

# The notification settings of users; see the migration of SQLite.
NOTIFICATION_SETTINGS: Final = typed("""
CREATE TABLE notification_settings (
    "user" bigint PRIMARY KEY REFERENCES users, mine bigint NOT NULL, teams bigint NOT NULL, unassigned bigint NOT NULL,
    mentions bigint NOT NULL, preview bigint NOT NULL, sound bigint NOT NULL, quiet_hours TEXT
);
""")

# Mentions in notes, and followers of conversations. Older programs do not know them, so rows are deleted by cascade.
MENTIONS_AND_FOLLOWERS: Final = typed("""
ALTER TABLE messages ADD COLUMN mentions TEXT;
ALTER TABLE drafts ADD COLUMN mentions TEXT;
ALTER TABLE held_messages ADD COLUMN mentions TEXT;
CREATE TABLE mentions (
    "user" bigint NOT NULL REFERENCES users ON DELETE CASCADE, project bigint NOT NULL,
    conversation bigint NOT NULL REFERENCES conversations ON DELETE CASCADE, message TEXT NOT NULL,
    at bigint NOT NULL, seen_at bigint, PRIMARY KEY ("user", project, conversation, message)
);
CREATE INDEX mentions_by_conversation ON mentions (conversation, message);
CREATE INDEX mentions_unseen ON mentions ("user", project) WHERE seen_at IS NULL;
CREATE TABLE followers (
    "user" bigint NOT NULL REFERENCES users ON DELETE CASCADE, project bigint NOT NULL,
    conversation bigint NOT NULL REFERENCES conversations ON DELETE CASCADE, at bigint NOT NULL,
    PRIMARY KEY ("user", project, conversation)
);
CREATE INDEX followers_by_conversation ON followers (conversation);
""")

# Saved views of the inbox; see the migration of SQLite. An older node deletes teams and leaves their views, so a cascade deletes these.
SAVED_VIEWS: Final = typed("""
CREATE TABLE saved_views (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, project bigint NOT NULL REFERENCES projects, name TEXT NOT NULL,
    filter TEXT NOT NULL, visibility TEXT NOT NULL, team bigint REFERENCES teams ON DELETE CASCADE, position bigint NOT NULL,
    author bigint NOT NULL REFERENCES users, created_at bigint NOT NULL, updated_at bigint NOT NULL
);
CREATE INDEX saved_views_by_project ON saved_views (project, visibility);
CREATE INDEX saved_views_by_author ON saved_views (author);
CREATE INDEX saved_views_by_team ON saved_views (team) WHERE team IS NOT NULL;
""") + forget_answers_trigger("saved_views", "DELETE", None)

# Held messages whose author chose the time; see the migration of SQLite. An older node refuses such a message if anything changed.
SCHEDULED_MESSAGES: Final = typed("""
ALTER TABLE held_messages ADD COLUMN scheduled bigint NOT NULL DEFAULT 0;
ALTER TABLE held_messages ADD COLUMN unless_replied bigint NOT NULL DEFAULT 0;
""")

# Web push; see the migration of SQLite. Older programs do not know the subscriptions, so they end with their session by cascade.
WEB_PUSH: Final = typed("""
CREATE TABLE push_keys (number bigint PRIMARY KEY CHECK (number = 1), sealed bytea NOT NULL, created_at bigint NOT NULL);
CREATE TABLE push_subscriptions (
    rowid IDENTITY, session bigint NOT NULL UNIQUE REFERENCES sessions ON DELETE CASCADE,
    "user" bigint NOT NULL REFERENCES users, endpoint_hash bytea NOT NULL UNIQUE, sealed bytea NOT NULL,
    created_at bigint NOT NULL, held_until bigint NOT NULL
);
CREATE INDEX push_subscriptions_by_user ON push_subscriptions ("user");
CREATE TABLE push_cursors (project bigint PRIMARY KEY REFERENCES projects, position bigint NOT NULL);
CREATE TABLE pushes (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, "user" bigint NOT NULL REFERENCES users,
    project bigint NOT NULL REFERENCES projects, subscription bigint REFERENCES push_subscriptions ON DELETE SET NULL,
    client TEXT NOT NULL, conversation TEXT NOT NULL, event TEXT NOT NULL, cause TEXT NOT NULL, at bigint NOT NULL,
    created_at bigint NOT NULL, due_at bigint NOT NULL, status TEXT NOT NULL, reason TEXT, detail TEXT,
    attempts bigint NOT NULL, ended_at bigint, UNIQUE (subscription, event)
);
CREATE INDEX pushes_by_user ON pushes ("user", rowid);
CREATE INDEX pushes_due ON pushes (due_at, rowid) WHERE ended_at IS NULL;
CREATE INDEX pushes_waiting ON pushes (subscription, conversation) WHERE status = 'waiting';
CREATE INDEX pushes_by_end ON pushes (ended_at) WHERE ended_at IS NOT NULL;
""")

# Bulk jobs; see the migration of SQLite. An older node deletes conversations without their items, so these lose the reference.
BULK_JOBS: Final = typed("""
CREATE TABLE bulk_jobs (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, project bigint NOT NULL REFERENCES projects,
    author bigint NOT NULL REFERENCES users, action TEXT NOT NULL, status TEXT NOT NULL, reason TEXT,
    total bigint NOT NULL, created_at bigint NOT NULL, ended_at bigint
);
CREATE INDEX bulk_jobs_by_author ON bulk_jobs (author, project);
CREATE INDEX bulk_jobs_active ON bulk_jobs (created_at) WHERE ended_at IS NULL;
CREATE INDEX bulk_jobs_by_end ON bulk_jobs (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE bulk_job_items (
    rowid IDENTITY, job bigint NOT NULL REFERENCES bulk_jobs,
    conversation bigint REFERENCES conversations ON DELETE SET NULL, state TEXT NOT NULL, reason TEXT, trace TEXT
);
CREATE INDEX bulk_job_items_by_state ON bulk_job_items (job, state);
CREATE INDEX bulk_job_items_by_conversation ON bulk_job_items (conversation) WHERE conversation IS NOT NULL;
""") + forget_answers_trigger("bulk_jobs", "DELETE", None)

# Merges of two conversations; see the migration of SQLite.
MERGED_CONVERSATIONS: Final = typed("""
ALTER TABLE conversations ADD COLUMN merged_into TEXT;
ALTER TABLE conversations ADD COLUMN merged TEXT NOT NULL DEFAULT '[]';
ALTER TABLE conversations ADD COLUMN merged_at bigint;
CREATE INDEX conversations_merged ON conversations (merged_into) WHERE merged_into IS NOT NULL;
CREATE TABLE conversation_merges (
    conversation bigint PRIMARY KEY REFERENCES conversations, target bigint NOT NULL REFERENCES conversations,
    at bigint NOT NULL, record TEXT NOT NULL
);
CREATE INDEX conversation_merges_by_target ON conversation_merges (target);
CREATE TABLE passed_on_messages (
    conversation bigint NOT NULL REFERENCES conversations, client_id TEXT NOT NULL, message TEXT NOT NULL,
    PRIMARY KEY (conversation, client_id)
);
""")

# Splits of conversations; see the migration of SQLite.
SPLIT_CONVERSATIONS: Final = typed("""
ALTER TABLE conversations ADD COLUMN split_from TEXT;
ALTER TABLE conversations ADD COLUMN split_into TEXT NOT NULL DEFAULT '[]';
ALTER TABLE messages ADD COLUMN shown_in TEXT;
CREATE INDEX messages_shown ON messages (shown_in) WHERE shown_in IS NOT NULL;
""")
