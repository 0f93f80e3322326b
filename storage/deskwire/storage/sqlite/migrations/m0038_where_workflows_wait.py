"""The columns that say where workflows wait and when versions were published, and the table of how runs have ended."""

from typing import Final

SQL: Final = """
-- Since when a run waits, and where: the positions of the flow and of the action in it.
ALTER TABLE workflow_runs ADD COLUMN since INTEGER;
ALTER TABLE workflow_runs ADD COLUMN flow INTEGER;
ALTER TABLE workflow_runs ADD COLUMN action INTEGER;
UPDATE workflow_runs SET flow = json_extract(state, '$.flow'), action = json_extract(state, '$.action');
ALTER TABLE workflow_versions ADD COLUMN created_at INTEGER;
CREATE TABLE workflow_ends (
    rowid INTEGER PRIMARY KEY, workflow_id TEXT NOT NULL, number INTEGER NOT NULL,
    conversation INTEGER NOT NULL REFERENCES conversations, flow INTEGER, action INTEGER, outcome TEXT NOT NULL,
    stopped INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT;
CREATE INDEX workflow_ends_by_conversation ON workflow_ends (conversation);
CREATE INDEX workflow_ends_by_workflow ON workflow_ends (workflow_id);
CREATE INDEX workflow_ends_by_outcome ON workflow_ends (workflow_id, outcome);
CREATE INDEX workflow_ends_stopped ON workflow_ends (workflow_id) WHERE stopped = 1;
"""
