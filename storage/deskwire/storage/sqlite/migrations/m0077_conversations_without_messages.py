"""Conversations without a message by their creation: lists read them beside the messages of a crowded hour."""

from typing import Final

SQL: Final = """
-- Only the first message of a conversation writes this index; most conversations begin with one, and are never in it.
CREATE INDEX conversations_without_messages ON conversations (project, created_at) WHERE last_message_at IS NULL;
"""
