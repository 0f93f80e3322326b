"""The changes that the search index has yet to take in, besides what is new."""

from typing import Final

SQL: Final = """
-- By this an index knows its database.
CREATE TABLE search_source (one INTEGER PRIMARY KEY CHECK (one = 1), identity TEXT NOT NULL) STRICT;
INSERT INTO search_source VALUES (1, lower(hex(randomblob(16))));
-- Conversations of another title, and those that were deleted; new ones and messages are found by their keys. A deletion has
-- the newest message that it left: the keys behind that one are given anew.
CREATE TABLE search_changes (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, conversation INTEGER NOT NULL, message INTEGER
) STRICT;
CREATE TRIGGER search_update AFTER UPDATE OF title ON conversations WHEN new.title IS NOT old.title BEGIN
    INSERT INTO search_changes (conversation) VALUES (new.rowid); END;
CREATE TRIGGER search_delete AFTER DELETE ON conversations BEGIN
    INSERT INTO search_changes (conversation, message)
    VALUES (old.rowid, (SELECT coalesce(max(rowid), 0) FROM messages)); END;
"""
