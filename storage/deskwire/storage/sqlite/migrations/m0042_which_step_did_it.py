"""The columns that say which step of a workflow made a change that the activity of a conversation tells of."""

from typing import Final

SQL: Final = """
-- The version by its number, the flow and the action by their ids; null of what no workflow did, and of older entries.
ALTER TABLE conversation_activity ADD COLUMN step_version INTEGER;
ALTER TABLE conversation_activity ADD COLUMN step_flow TEXT;
ALTER TABLE conversation_activity ADD COLUMN step_action INTEGER;
"""
