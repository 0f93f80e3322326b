"""Held messages whose author chose the time."""

from typing import Final

SQL: Final = """
-- scheduled: 0 for a message that only waits for an undo. unless_replied: 1 if a later message of the contact refuses it.
ALTER TABLE held_messages ADD COLUMN scheduled INTEGER NOT NULL DEFAULT 0;
ALTER TABLE held_messages ADD COLUMN unless_replied INTEGER NOT NULL DEFAULT 0;
"""
