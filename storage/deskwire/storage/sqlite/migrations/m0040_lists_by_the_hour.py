"""Conversations in the order of their activity, by its hour."""

from typing import Final

SQL: Final = """
-- Each message rewrote the index by activity. This one it leaves alone, but for the first message of an hour.
CREATE INDEX conversations_by_hour ON conversations (project, hour);
DROP INDEX conversations_by_activity;
"""
