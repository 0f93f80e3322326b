"""Splits: a conversation that shows messages of another one, too."""

from typing import Final

SQL: Final = """
-- The id of the conversation that this one was split off from; and a JSON array with the ids of those split off from this one.
ALTER TABLE conversations ADD COLUMN split_from TEXT;
ALTER TABLE conversations ADD COLUMN split_into TEXT NOT NULL DEFAULT '[]';
-- The id of the conversation that was split off with the message, and shows it, too.
ALTER TABLE messages ADD COLUMN shown_in TEXT;
CREATE INDEX messages_shown ON messages (shown_in) WHERE shown_in IS NOT NULL;
"""
