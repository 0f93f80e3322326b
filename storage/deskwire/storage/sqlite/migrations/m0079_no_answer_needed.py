"""The mark of conversations whose contact needs no answer."""

from typing import Final

SQL: Final = """
-- Since when (ms) the contact would wait; null without the mark.
ALTER TABLE conversations ADD COLUMN no_answer_needed_since INTEGER;
"""
