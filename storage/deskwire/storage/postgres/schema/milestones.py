"""The milestones of conversations that reports count, and what each conversation notes for them."""

from typing import Final

from deskwire.storage.postgres.schema.types import typed
from deskwire.storage.sqlite.migrations.m0033_what_reports_count import FILL

SQL: Final = typed(rf"""
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
INDEXES: Final = (_BY_TIME,)
