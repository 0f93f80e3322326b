"""Times of archiving, indexes that find expired conversations, and users who were deleted."""

from typing import Final

SQL: Final = """
-- When it was archived. What was archived before this was noted counts from its last change, which was not earlier.
ALTER TABLE conversations ADD COLUMN archived_at INTEGER;
UPDATE conversations SET archived_at = updated_at WHERE archived = 1;
CREATE INDEX conversations_archived ON conversations (project, archived_at) WHERE archived_at IS NOT NULL;
CREATE INDEX conversations_bot_only ON conversations (created_at) WHERE human = 0;
-- A row that stays behind a deleted user, blank, so that its key is never given to another one.
ALTER TABLE users ADD COLUMN deleted_at INTEGER;
"""
