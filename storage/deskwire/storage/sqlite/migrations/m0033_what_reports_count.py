"""The milestones of conversations that reports count, filled from what is there, and an index of messages by time."""

from typing import Final

FILL: Final = """
-- Of what was closed before its activity was noted, the last closing alone is known.
INSERT INTO milestones (project, conversation, kind, at, imported)
    SELECT c.project, c.rowid, 'closed', k.at, CASE WHEN c.imported_at IS NULL THEN 0 ELSE 1 END
    FROM (SELECT conversation, at FROM conversation_activity WHERE action = 'closed'
    UNION SELECT rowid, coalesce(closed_at, updated_at) FROM conversations WHERE status = 'CLOSED') k
    JOIN conversations c ON c.rowid = k.conversation ORDER BY k.at, c.rowid;
-- Behind each closing but the last one of what is closed now, somebody has reopened it: by a command, or the contact by a message.
INSERT INTO milestones (project, conversation, kind, at, imported)
    SELECT s.project, s.conversation, 'reopened', CASE WHEN s.asked IS NULL OR s.told < s.asked THEN coalesce(s.told, s.at)
    ELSE s.asked END, s.imported
    FROM (SELECT m.project, m.conversation, m.at, m.imported, m.follower,
    (SELECT min(a.at) FROM conversation_activity a WHERE a.conversation = m.conversation AND a.action = 'reopened'
    AND a.at >= m.at AND a.at <= coalesce(m.follower, a.at)) AS told,
    (SELECT min(w.created_at) FROM messages w WHERE w.conversation = m.conversation AND w.internal = 0
    AND w.author_type = 'contact' AND w.created_at >= m.at AND w.created_at <= coalesce(m.follower, w.created_at)) AS asked
    FROM (SELECT project, conversation, at, imported, lead(at) OVER (PARTITION BY conversation ORDER BY at, rowid) AS follower
    FROM milestones) m) s
    JOIN conversations c ON c.rowid = s.conversation WHERE s.follower IS NOT NULL OR c.status <> 'CLOSED';
UPDATE milestones SET since = coalesce((SELECT max(r.at) FROM milestones r WHERE r.conversation = milestones.conversation
    AND r.kind = 'reopened' AND r.at <= milestones.at),
    (SELECT c.created_at FROM conversations c WHERE c.rowid = milestones.conversation)) WHERE kind = 'closed';
UPDATE conversations SET
    opened_at = (SELECT max(m.at) FROM milestones m WHERE m.conversation = conversations.rowid AND m.kind = 'reopened'),
    asked_at = (SELECT m.created_at FROM messages m WHERE m.conversation = conversations.rowid AND m.internal = 0
    AND m.author_type = 'contact' ORDER BY m.rowid LIMIT 1),
    answered_at = (SELECT m.created_at FROM messages m WHERE m.conversation = conversations.rowid AND m.internal = 0
    AND m.author_type = 'agent' AND m.rowid > (SELECT q.rowid FROM messages q WHERE q.conversation = conversations.rowid
    AND q.internal = 0 AND q.author_type = 'contact' ORDER BY q.rowid LIMIT 1) ORDER BY m.rowid LIMIT 1),
    replier_id = (SELECT m.author_id FROM messages m WHERE m.conversation = conversations.rowid AND m.internal = 0
    AND m.author_type = 'agent' ORDER BY m.rowid DESC LIMIT 1);
-- Who had a conversation when it was closed or rated is not known of the past: whoever has it now stands for that.
UPDATE milestones SET (agent_id, team_id) = (SELECT
    CASE WHEN c.assignee_type = 'user' THEN c.assignee_id ELSE c.replier_id END, c.team_id FROM conversations c WHERE c.rowid = milestones.conversation);
INSERT INTO milestones (project, conversation, kind, at, score, agent_id, team_id, imported)
    SELECT project, rowid, 'rated', coalesce(rated_at, updated_at), rating,
    CASE WHEN assignee_type = 'user' THEN assignee_id ELSE replier_id END, team_id,
    CASE WHEN imported_at IS NULL THEN 0 ELSE 1 END FROM conversations WHERE rating IS NOT NULL ORDER BY rowid;
INSERT INTO milestones (project, conversation, kind, at, since, agent_id, team_id, imported)
    SELECT c.project, c.rowid, 'answered', m.created_at, c.asked_at, m.author_id, c.team_id,
    CASE WHEN c.imported_at IS NULL THEN 0 ELSE 1 END
    FROM conversations c JOIN messages m ON m.rowid = (SELECT a.rowid FROM messages a WHERE a.conversation = c.rowid
    AND a.internal = 0 AND a.author_type = 'agent' AND a.rowid > (SELECT q.rowid FROM messages q WHERE q.conversation = c.rowid
    AND q.internal = 0 AND q.author_type = 'contact' ORDER BY q.rowid LIMIT 1) ORDER BY a.rowid LIMIT 1)
    WHERE c.answered_at IS NOT NULL ORDER BY c.rowid;
"""
"""Statements that both databases take."""

_COLUMNS: Final = "".join(
    f"ALTER TABLE conversations ADD COLUMN {name};\n"
    for name in (
        "asked_at INTEGER",
        "answered_at INTEGER",
        "opened_at INTEGER",
        "replier_id TEXT",
        "team_id TEXT",
    )
)

SQL: Final = f"""
-- When the contact first wrote, when an agent first answered that, since when it is open if it was reopened, the agent who
-- wrote last, and the team that it was last assigned to.
{_COLUMNS}UPDATE conversations SET team_id = CASE WHEN assignee_type = 'team' THEN assignee_id ELSE (
    SELECT json_extract(a.changes, '$[0][2].id') FROM conversation_activity a WHERE a.conversation = conversations.rowid
    AND a.action = 'assigned' AND json_extract(a.changes, '$[0][2].type') = 'team' ORDER BY a.rowid DESC LIMIT 1) END;
CREATE TABLE milestones (
    rowid INTEGER PRIMARY KEY, project INTEGER NOT NULL, conversation INTEGER NOT NULL REFERENCES conversations, kind TEXT NOT NULL,
    at INTEGER NOT NULL, since INTEGER, score INTEGER, agent_id TEXT, team_id TEXT, imported INTEGER NOT NULL
) STRICT;
CREATE INDEX milestones_by_conversation ON milestones (conversation);
{FILL}CREATE INDEX milestones_by_time ON milestones (project, kind, at, since, agent_id, team_id, conversation, imported, score);
ALTER TABLE messages ADD COLUMN project INTEGER;
UPDATE messages SET project = (SELECT c.project FROM conversations c WHERE c.rowid = messages.conversation);
CREATE INDEX messages_by_time ON messages (project, created_at, author_type, conversation, author_id) WHERE internal = 0;
"""
