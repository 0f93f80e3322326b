"""Roles of an organisation's own; their kept responses are removed with them (ADR 108)."""

from typing import Final

SQL: Final = """
-- `memberships.role` is the name of a built-in role, or the id of a role here. `permissions` are separated by commas.
CREATE TABLE roles (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, organisation INTEGER NOT NULL REFERENCES organisations,
    name TEXT NOT NULL, description TEXT NOT NULL, permissions TEXT NOT NULL, created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX roles_by_organisation ON roles (organisation, rowid);
CREATE TRIGGER kept_answers_of_roles AFTER DELETE ON roles BEGIN
    UPDATE kept_answers SET near = '', subject = NULL, sealed = NULL WHERE near = substr(old.id, 5, 10) AND subject = old.id;
    UPDATE kept_answers SET near = '', subject = NULL, sealed = NULL WHERE length(near) = 0 AND subject = old.id; END;
"""
