"""The audit trail."""

from typing import Final

SQL: Final = """
-- Who did what. It refers to nothing, as it outlives what it is about. A counted record is found by its slot, a quarter of
-- an hour, and by what repetitions are counted by.
CREATE TABLE audit (
    position INTEGER PRIMARY KEY, id TEXT NOT NULL, at INTEGER NOT NULL, last_at INTEGER NOT NULL, count INTEGER NOT NULL,
    organisation INTEGER, project INTEGER, action TEXT NOT NULL, actor_type TEXT NOT NULL, actor TEXT, object TEXT,
    changes TEXT NOT NULL, details TEXT NOT NULL, address TEXT, request TEXT, slot INTEGER, tally TEXT
) STRICT;
CREATE INDEX audit_by_organisation ON audit (organisation);
CREATE INDEX audit_by_object ON audit (object) WHERE object IS NOT NULL;
CREATE INDEX audit_by_actor ON audit (actor) WHERE actor IS NOT NULL;
CREATE UNIQUE INDEX audit_counted ON audit (slot, tally) WHERE slot IS NOT NULL;
-- From when (ms) on there is a record of everything.
CREATE TABLE audit_window (one INTEGER PRIMARY KEY CHECK (one = 1), since INTEGER NOT NULL) STRICT;
INSERT INTO audit_window VALUES (1, CAST(strftime('%s', 'now') AS INTEGER) * 1000);
"""
