"""Events that agents alone are told of, beside those that everybody may have."""

from typing import Final

SQL: Final = """
-- Whoever reads events for the customer's systems says `internal = 0`, and has an index of those alone.
ALTER TABLE events ADD COLUMN internal INTEGER NOT NULL DEFAULT 0;
DROP INDEX events_by_project;
CREATE INDEX events_by_project ON events (project) WHERE internal = 0;
CREATE INDEX internal_events_by_project ON events (project) WHERE internal = 1;

-- The ticket that an event is about, with which it is erased.
ALTER TABLE events ADD COLUMN ticket INTEGER;
CREATE INDEX events_by_ticket ON events (ticket) WHERE ticket IS NOT NULL;
"""
