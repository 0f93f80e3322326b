"""The table that finds a project's events for everybody, in place of an index that each event wrote a page of (ADR 4).

The program adds events to it some positions at a time. What deletes an event deletes it here as well.
"""

from typing import Final

SQL: Final = """
CREATE TABLE project_events (
    project INTEGER NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (project, position)
) STRICT, WITHOUT ROWID;
INSERT INTO project_events (project, position)
    SELECT project, position FROM events WHERE internal = 0 AND project > 0 ORDER BY project, position;
DROP INDEX events_by_project;
CREATE TRIGGER project_events_delete AFTER DELETE ON events WHEN OLD.internal = 0 BEGIN
    DELETE FROM project_events WHERE project = OLD.project AND position = OLD.position; END;
"""
