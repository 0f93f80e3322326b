"""Messages of which something was redacted, and the places of those that were deleted; the columns are those of SQLite."""

from __future__ import annotations

from typing import Final

SQL: Final = """
ALTER TABLE messages ADD COLUMN redacted_at bigint, ADD COLUMN deleted_at bigint;
-- Whoever hears that a message is redacted can rely on it at every node.
CREATE CONSTRAINT TRIGGER begin_epoch AFTER UPDATE OF redacted_at, deleted_at ON messages
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION begin_epoch();
ALTER TABLE search_changes ADD COLUMN reworded smallint NOT NULL DEFAULT 0;
"""
