"""The memory of contacts, and content in several languages."""

from typing import Final

SQL: Final = """
CREATE TABLE memory (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, contact INTEGER NOT NULL REFERENCES contacts, name TEXT NOT NULL,
    content TEXT NOT NULL, description TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    UNIQUE (contact, name)
) STRICT;
CREATE TABLE entries (
    rowid INTEGER PRIMARY KEY, project INTEGER NOT NULL REFERENCES projects, type TEXT NOT NULL, key TEXT NOT NULL,
    updated_at INTEGER NOT NULL, UNIQUE (project, type, key)
) STRICT;
CREATE INDEX entries_by_project ON entries (project);
CREATE TABLE translations (
    entry INTEGER NOT NULL REFERENCES entries, language TEXT NOT NULL, fields TEXT NOT NULL,
    updated_at INTEGER NOT NULL, PRIMARY KEY (entry, language)
) STRICT, WITHOUT ROWID;
"""
