"""The order of what is committed, and what an installation knows of itself."""

from typing import Final

from deskwire.storage.postgres.schema.types import typed

SQL: Final = typed("""
-- The counters of a project. A commit that gives positions locks the row first, last of all its locks, and goes on from there;
-- `endpoints_version` grows with every change of who is delivered to. Up to `pruned_…` the log was cut off.
CREATE TABLE project_heads (
    project bigint PRIMARY KEY, position bigint NOT NULL, last_id TEXT, delivery bigint NOT NULL, delivery_id TEXT,
    endpoints_version bigint NOT NULL DEFAULT 0, pruned_position bigint NOT NULL DEFAULT 0, pruned_id TEXT
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE FUNCTION project_begins() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO project_heads (project, position, delivery) VALUES (NEW.rowid, NEW.rowid << 40, NEW.rowid << 40);
    RETURN NULL; END $$;
CREATE TRIGGER project_begins AFTER INSERT ON projects FOR EACH ROW EXECUTE FUNCTION project_begins();

-- The number of the last batch that each writer has committed: by this it learns whether one was whose answer it did not
-- get. `run` is its process's own, so that another of the same name is found out.
CREATE TABLE lanes (
    node TEXT NOT NULL, lane bigint NOT NULL, run TEXT NOT NULL, batch bigint NOT NULL,
    touched timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (node, lane)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

-- `epoch` grows with every commit that changes what nodes may remember and have to forget. Which secret and which place of
-- uploads all nodes must have says `secret_id` and `files`; both are NULL until the first node has started, or a copy is whole.
CREATE TABLE installation (
    one smallint PRIMARY KEY CHECK (one = 1), epoch bigint NOT NULL, secret_id TEXT, files TEXT,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);
INSERT INTO installation (one, epoch) VALUES (1, 0);
""")
