"""Snippets, the prepared replies of a project."""

from typing import Final

SQL: Final = """
CREATE TABLE snippets (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL REFERENCES projects, shortcut TEXT NOT NULL,
    title TEXT NOT NULL, text TEXT NOT NULL, language TEXT, team INTEGER REFERENCES teams, author INTEGER NOT NULL
    REFERENCES users, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX snippets_by_shortcut ON snippets (project, shortcut);
CREATE INDEX snippets_by_project ON snippets (project);
CREATE INDEX snippets_by_team ON snippets (team) WHERE team IS NOT NULL;
CREATE TRIGGER kept_answers_of_snippets AFTER DELETE ON snippets BEGIN
    UPDATE kept_answers SET subject = NULL, sealed = NULL WHERE subject = old.id; END;
"""
