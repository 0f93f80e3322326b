"""The message that an imported record has become, by which a deletion at its source finds it; unknown of earlier imports."""

from typing import Final

SQL: Final = """
ALTER TABLE imported_messages ADD COLUMN message TEXT;
"""
