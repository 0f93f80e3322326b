"""Circuits that hold, deliveries that are sent once more, and attempts planned from the first one."""

from typing import Final

SQL: Final = """
-- When attempts are planned from, when the first had failed, and what an outage dropped that is to be sent once more.
ALTER TABLE deliveries ADD COLUMN planned_from INTEGER;
ALTER TABLE deliveries ADD COLUMN failing_since INTEGER;
ALTER TABLE deliveries ADD COLUMN missed INTEGER;
UPDATE deliveries SET (planned_from, failing_since) = (due_at, due_at) WHERE status = 'pending' AND attempts > 0;
CREATE INDEX deliveries_planned ON deliveries (endpoint, due_at) WHERE status = 'pending' AND planned_from IS NOT NULL;
CREATE INDEX deliveries_again ON deliveries (endpoint, position) WHERE status = 'pending' AND redelivery_of IS NOT NULL;
CREATE INDEX deliveries_missed ON deliveries (endpoint, event) WHERE missed = 1;

-- An endpoint whose circuit was open is probed at the time at which it would have been half-open.
ALTER TABLE endpoints RENAME COLUMN exhausted TO probes;
ALTER TABLE endpoints RENAME COLUMN open_until TO probe_at;
ALTER TABLE endpoints ADD COLUMN failing_since INTEGER;
ALTER TABLE endpoints ADD COLUMN paused_until INTEGER;
ALTER TABLE endpoints ADD COLUMN last_success_at INTEGER;
ALTER TABLE endpoints ADD COLUMN held_upto INTEGER;
ALTER TABLE endpoints ADD COLUMN catch_up TEXT NOT NULL DEFAULT 'automatic';
UPDATE endpoints SET probes = 0, probe_at = 0 WHERE probe_at IS NOT NULL;
"""
