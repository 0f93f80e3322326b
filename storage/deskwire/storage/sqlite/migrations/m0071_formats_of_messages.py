"""The format of messages: Markdown or plain text."""

from typing import Final

SQL: Final = """
-- Null for plain text, as for all messages from before.
ALTER TABLE messages ADD COLUMN format TEXT;
ALTER TABLE held_messages ADD COLUMN format TEXT;
"""
