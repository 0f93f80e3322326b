"""The columns that say where workflows wait and when versions were published, and the table of how runs have ended."""

from typing import Final

from deskwire.storage.postgres.schema.types import typed

SQL: Final = typed(r"""
ALTER TABLE workflow_runs ADD COLUMN since bigint, ADD COLUMN flow bigint, ADD COLUMN action bigint;
UPDATE workflow_runs SET flow = CAST(CAST(replace(state, '\u0000', '\u0020') AS json) ->> 'flow' AS bigint),
    action = CAST(CAST(replace(state, '\u0000', '\u0020') AS json) ->> 'action' AS bigint);
ALTER TABLE workflow_versions ADD COLUMN created_at bigint;
CREATE TABLE workflow_ends (
    rowid IDENTITY, workflow_id TEXT NOT NULL, number bigint NOT NULL, conversation bigint NOT NULL REFERENCES conversations,
    flow bigint, action bigint, outcome TEXT NOT NULL, stopped smallint NOT NULL, at bigint NOT NULL
);
CREATE INDEX workflow_ends_by_conversation ON workflow_ends (conversation);
CREATE INDEX workflow_ends_by_workflow ON workflow_ends (workflow_id, rowid);
CREATE INDEX workflow_ends_by_outcome ON workflow_ends (workflow_id, outcome);
CREATE INDEX workflow_ends_stopped ON workflow_ends (workflow_id, rowid) WHERE stopped = 1;
""")
