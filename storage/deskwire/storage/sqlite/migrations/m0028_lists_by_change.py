"""Conversations in the order of their last change."""

from typing import Final

SQL: Final = """
-- Of those alone whose last change was none of the activity: a message behind a message rewrites nothing of it.
CREATE INDEX conversations_by_change ON conversations (project, updated_at) WHERE updated_at <> activity;
"""
