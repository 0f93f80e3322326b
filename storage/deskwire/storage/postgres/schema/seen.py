"""The time up to which agents have seen everything: of a conversation by all of them, and of a project by each."""

from __future__ import annotations

from typing import Final

from deskwire.storage.postgres.schema.types import typed

SQL: Final = typed("""
ALTER TABLE conversations ADD COLUMN seen_until bigint NOT NULL DEFAULT 0;
-- A conversation that was closed when it was imported has been seen by all.
UPDATE conversations SET seen_until = imported_at WHERE imported_at IS NOT NULL AND status = 'CLOSED';
CREATE TABLE seen_marks (
    "user" bigint NOT NULL REFERENCES users, project bigint NOT NULL REFERENCES projects, until bigint NOT NULL,
    PRIMARY KEY ("user", project)
);
CREATE INDEX seen_marks_by_project ON seen_marks (project);
""")
