"""Events beyond the contract, for those who name their type, and endpoints that ask for what agents write for agents."""

from typing import Final

SQL: Final = """
-- Whoever names types beyond the contract finds those that agents do not have either.
CREATE INDEX named_events_by_project ON events (project) WHERE internal = 2;
ALTER TABLE endpoints ADD COLUMN internal INTEGER NOT NULL DEFAULT 0;
"""
