"""First steps that are hidden from the members of a project."""

from typing import Final

SQL: Final = """
ALTER TABLE projects ADD COLUMN setup_hidden INTEGER NOT NULL DEFAULT 0 CHECK (setup_hidden IN (0, 1));
"""
