"""Messages of which something was redacted, and the places of those that were deleted."""

from typing import Final

SQL: Final = """
-- When something of it was redacted last.
ALTER TABLE messages ADD COLUMN redacted_at INTEGER;
-- When it was deleted: the row is nothing but its place then, by which others keep their index and lists go on behind it.
ALTER TABLE messages ADD COLUMN deleted_at INTEGER;
-- 1 if the words of its messages are to be taken in anew, as some of them are gone.
ALTER TABLE search_changes ADD COLUMN reworded INTEGER NOT NULL DEFAULT 0;
"""
