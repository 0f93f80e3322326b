"""Workflows with their versions, and their runs."""

from typing import Final

SQL: Final = """
CREATE TABLE workflows (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL REFERENCES projects, name TEXT NOT NULL,
    trigger TEXT NOT NULL, version INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX workflows_by_project ON workflows (project);
CREATE INDEX workflows_by_trigger ON workflows (project, trigger);

-- Outlive their workflow for as long as they run. AUTOINCREMENT: a key is never taken for that of another version.
CREATE TABLE workflow_versions (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, workflow_id TEXT NOT NULL, number INTEGER NOT NULL, flows TEXT NOT NULL,
    retired_at INTEGER, UNIQUE (workflow_id, number)
) STRICT;
CREATE INDEX workflow_versions_retired ON workflow_versions (retired_at) WHERE retired_at IS NOT NULL;
CREATE TABLE workflow_runs (
    conversation INTEGER PRIMARY KEY REFERENCES conversations, version INTEGER NOT NULL REFERENCES workflow_versions,
    state TEXT NOT NULL, due_at INTEGER
) STRICT;
CREATE INDEX workflow_runs_by_version ON workflow_runs (version);
CREATE INDEX workflow_runs_due ON workflow_runs (due_at) WHERE due_at IS NOT NULL;
"""
