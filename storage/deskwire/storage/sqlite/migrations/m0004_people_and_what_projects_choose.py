"""Project settings, passwords that must be replaced, tokens that end with a password."""

from typing import Final

SQL: Final = """
ALTER TABLE projects ADD COLUMN memory_enabled INTEGER NOT NULL DEFAULT 1;
ALTER TABLE projects ADD COLUMN archived_retention_days INTEGER DEFAULT 365;
ALTER TABLE projects ADD COLUMN primary_language TEXT NOT NULL DEFAULT 'en';
ALTER TABLE projects ADD COLUMN languages TEXT NOT NULL DEFAULT 'en';
ALTER TABLE projects ADD COLUMN upload_quota_bytes INTEGER NOT NULL DEFAULT 10737418240;
-- A row that stays behind a removed project, so that its key is never given to another one.
ALTER TABLE projects ADD COLUMN removed_at INTEGER;

-- A password that somebody else has made up is good for one thing: to be replaced.
ALTER TABLE users ADD COLUMN password_temporary INTEGER NOT NULL DEFAULT 0;
-- Access tokens name the generation they were issued in; a new password begins a new one.
ALTER TABLE users ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;

CREATE INDEX memberships_by_organisation ON memberships (organisation);
CREATE INDEX projects_by_organisation ON projects (organisation);
CREATE INDEX server_keys_by_project ON server_keys (project);
"""
