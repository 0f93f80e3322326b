"""The contact's words beside the rating of a conversation."""

from typing import Final

SQL: Final = """
ALTER TABLE conversations ADD COLUMN rating_comment TEXT;
"""
