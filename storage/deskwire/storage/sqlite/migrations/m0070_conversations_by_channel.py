"""Conversations by the channel in which they began. Messages never write the columns of this index."""

from typing import Final

SQL: Final = """
CREATE INDEX conversations_by_channel ON conversations (project, channel, created_at) WHERE channel IS NOT NULL;
"""
