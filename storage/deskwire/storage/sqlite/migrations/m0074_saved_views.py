"""Saved views of the inbox."""

from typing import Final

SQL: Final = """
-- `filter` is a JSON object of parameters of lists; `visibility` is me, team or project.
CREATE TABLE saved_views (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL REFERENCES projects, name TEXT NOT NULL,
    filter TEXT NOT NULL, visibility TEXT NOT NULL, team INTEGER REFERENCES teams ON DELETE CASCADE, position INTEGER NOT NULL,
    author INTEGER NOT NULL REFERENCES users, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX saved_views_by_project ON saved_views (project, visibility);
CREATE INDEX saved_views_by_author ON saved_views (author);
CREATE INDEX saved_views_by_team ON saved_views (team) WHERE team IS NOT NULL;
CREATE TRIGGER kept_answers_of_saved_views AFTER DELETE ON saved_views BEGIN
    UPDATE kept_answers SET near = '', subject = NULL, sealed = NULL WHERE near = substr(old.id, 5, 10) AND subject = old.id;
    UPDATE kept_answers SET near = '', subject = NULL, sealed = NULL WHERE length(near) = 0 AND subject = old.id; END;
"""
