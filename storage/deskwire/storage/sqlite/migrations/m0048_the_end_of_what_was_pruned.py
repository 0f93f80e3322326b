"""The position up to which retention has removed events, by which a consumer is told of a gap.

Of an older file it is the one in front of the first event that is stored: what was erased there counts as removed.
"""

from typing import Final

SQL: Final = """
ALTER TABLE event_window ADD COLUMN pruned_position INTEGER NOT NULL DEFAULT 0;
UPDATE event_window SET pruned_position = coalesce((SELECT min(position) - 1 FROM events), spent_position)
    WHERE pruned_id IS NOT NULL;
"""
