"""Deliveries of a conversation in the order of its events."""

from typing import Final

SQL: Final = """
-- In the place of the index by lane alone: what that found, this finds, too.
CREATE INDEX deliveries_by_sequence ON deliveries (lane, sequence) WHERE lane IS NOT NULL;
DROP INDEX deliveries_by_lane;
"""
