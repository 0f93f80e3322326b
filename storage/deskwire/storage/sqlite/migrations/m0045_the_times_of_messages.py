"""The table that reports count messages in, in place of an index that each message wrote a page of (ADR 74).

The program adds messages to it many at a time, and `message_times_end` is the key up to which it has; those behind it reports read from
`messages`. Whatever changes or deletes a message does the same here. A key is given again once the newest messages are deleted, so the
end goes back with them.
"""

from typing import Final

_TIMED: Final = (
    "project, created_at, rowid, conversation, "
    "CASE author_type WHEN 'contact' THEN 0 WHEN 'agent' THEN 1 WHEN 'bot' THEN 2 ELSE 3 END, "
    "CASE WHEN author_type = 'agent' THEN author_id END FROM messages"
)

SQL: Final = f"""
CREATE TABLE message_times (
    project INTEGER NOT NULL, created_at INTEGER NOT NULL, message INTEGER NOT NULL, conversation INTEGER NOT NULL,
    author INTEGER NOT NULL, agent_id TEXT, PRIMARY KEY (project, created_at, message)
) STRICT, WITHOUT ROWID;
-- All messages up to this key are there, but for notes.
CREATE TABLE message_times_end (message INTEGER NOT NULL) STRICT;
INSERT INTO message_times SELECT {_TIMED} WHERE internal = 0 AND project IS NOT NULL
    ORDER BY project, created_at;
INSERT INTO message_times_end SELECT coalesce(max(rowid), 0) FROM messages;
DROP INDEX messages_by_time;
CREATE TRIGGER message_times_update AFTER UPDATE OF project, created_at, conversation, author_type, author_id, internal ON messages
    WHEN NEW.rowid <= (SELECT message FROM message_times_end) BEGIN
    DELETE FROM message_times WHERE project = OLD.project AND created_at = OLD.created_at AND message = OLD.rowid;
    INSERT INTO message_times SELECT {_TIMED} WHERE rowid = NEW.rowid AND internal = 0; END;
CREATE TRIGGER message_times_delete AFTER DELETE ON messages BEGIN
    DELETE FROM message_times WHERE project = OLD.project AND created_at = OLD.created_at AND message = OLD.rowid;
    UPDATE message_times_end SET message = (SELECT coalesce(max(rowid), 0) FROM messages)
        WHERE message > (SELECT coalesce(max(rowid), 0) FROM messages); END;
"""
