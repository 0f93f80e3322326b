"""Blocks of contacts."""

from typing import Final

SQL: Final = """
-- The block of a contact as JSON: its time, actor and reason. NULL: the contact is not blocked.
ALTER TABLE contacts ADD COLUMN blocked TEXT;
"""
