"""The time up to which agents have seen everything: of a conversation by all of them, and of a project by each.

A conversation that was closed when it was imported has been seen by all, also one that is stored already.
"""

from typing import Final

SQL: Final = """
ALTER TABLE conversations ADD COLUMN seen_until INTEGER NOT NULL DEFAULT 0;
UPDATE conversations SET seen_until = imported_at WHERE imported_at IS NOT NULL AND status = 'CLOSED';

CREATE TABLE seen_marks (
    user INTEGER NOT NULL REFERENCES users, project INTEGER NOT NULL REFERENCES projects, until INTEGER NOT NULL,
    PRIMARY KEY (user, project)
) STRICT, WITHOUT ROWID;
CREATE INDEX seen_marks_by_project ON seen_marks (project);
"""
