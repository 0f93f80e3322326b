"""The life of the node that refreshes a survey's insights; that of a node that is alone is 0."""

from typing import Final

SQL: Final = """
ALTER TABLE survey_refreshes ADD COLUMN incarnation INTEGER NOT NULL DEFAULT 0;
"""
