"""The conversations whose times are out of order, which lists by one time that are bounded by another look at by themselves."""

from typing import Final

SQL: Final = """
CREATE INDEX conversations_out_of_order ON conversations (project)
    WHERE activity < created_at OR updated_at < activity;
"""
