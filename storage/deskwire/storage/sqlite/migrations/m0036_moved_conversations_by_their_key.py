"""The conversations that were another contact's, with the columns of the key in front.

`PRAGMA integrity_check` of SQLite 3.40 says of a table WITHOUT ROWID whose key is not in front that its other columns are
NULL, in each row: `deskwire check` and backups took a database for damaged once conversations had been moved by a merge.
"""

from typing import Final

SQL: Final = """
CREATE TABLE moved (
    conversation INTEGER NOT NULL REFERENCES conversations, upto TEXT NOT NULL,
    contact INTEGER NOT NULL REFERENCES contacts, since TEXT NOT NULL, PRIMARY KEY (conversation, upto)
) STRICT, WITHOUT ROWID;
INSERT INTO moved (conversation, upto, contact, since) SELECT conversation, upto, contact, since FROM moved_conversations;
DROP TABLE moved_conversations;
ALTER TABLE moved RENAME TO moved_conversations;
CREATE INDEX moved_conversations_by_contact ON moved_conversations (contact);
"""
