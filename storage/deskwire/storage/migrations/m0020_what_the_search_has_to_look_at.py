"""The changes that the search index has yet to take in, besides what is new."""

from typing import Final

SQL: Final = """
-- By this an index knows its database.
CREATE TABLE search_source (one INTEGER PRIMARY KEY CHECK (one = 1), identity TEXT NOT NULL) STRICT;
INSERT INTO search_source VALUES (1, lower(hex(randomblob(16))));
-- New rows are found by their keys. With a conversation goes the newest message that is left: the keys behind it are given anew.
CREATE TABLE search_changes (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, row INTEGER NOT NULL, message INTEGER
) STRICT;
CREATE TRIGGER search_conversation_update AFTER UPDATE OF title ON conversations WHEN new.title IS NOT old.title BEGIN
    INSERT INTO search_changes (kind, row) VALUES ('conversation', new.rowid); END;
CREATE TRIGGER search_conversation_delete AFTER DELETE ON conversations BEGIN
    INSERT INTO search_changes (kind, row, message)
    VALUES ('conversation', old.rowid, (SELECT coalesce(max(rowid), 0) FROM messages)); END;
CREATE TRIGGER search_contact_update AFTER UPDATE OF name, email, phone ON contacts
WHEN new.name IS NOT old.name OR new.email IS NOT old.email OR new.phone IS NOT old.phone BEGIN
    INSERT INTO search_changes (kind, row) VALUES ('contact', new.rowid); END;
CREATE TRIGGER search_contact_delete AFTER DELETE ON contacts BEGIN
    INSERT INTO search_changes (kind, row) VALUES ('contact', old.rowid); END;
"""
