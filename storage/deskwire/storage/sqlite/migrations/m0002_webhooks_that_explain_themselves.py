"""Circuits, rotated secrets, and a delivery log that outlives the events."""

from typing import Final

SQL: Final = """
ALTER TABLE endpoints ADD COLUMN status_reason TEXT;
ALTER TABLE endpoints ADD COLUMN old_secret BLOB;
ALTER TABLE endpoints ADD COLUMN old_secret_until INTEGER;
ALTER TABLE endpoints ADD COLUMN failed_attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoints ADD COLUMN exhausted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoints ADD COLUMN open_until INTEGER;
ALTER TABLE endpoints ADD COLUMN open_reason TEXT;

-- What the delivery log shows of an event that is no longer stored.
ALTER TABLE deliveries ADD COLUMN event_id TEXT;
ALTER TABLE deliveries ADD COLUMN type TEXT;
ALTER TABLE deliveries ADD COLUMN sequence INTEGER;
UPDATE deliveries SET (event_id, type, sequence) =
    (SELECT id, type, sequence FROM events WHERE position = deliveries.event);
ALTER TABLE deliveries ADD COLUMN redelivery_of INTEGER;
ALTER TABLE deliveries ADD COLUMN redelivered_as INTEGER;
"""
