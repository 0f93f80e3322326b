"""The entries by which nodes that share their files agree on them; a node that is alone has none."""

from typing import Final

SQL: Final = """
-- AUTOINCREMENT: a file is named by this key, so it is never given again.
CREATE TABLE contents (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, project INTEGER NOT NULL, sha256 TEXT NOT NULL,
    made_at INTEGER NOT NULL, going INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX contents_by_digest ON contents (project, sha256) WHERE going = 0;
CREATE INDEX contents_going ON contents (project, sha256) WHERE going = 1;
"""
