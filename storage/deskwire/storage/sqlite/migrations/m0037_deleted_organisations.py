"""The time at which an organisation was deleted; its row stays, as its projects' rows and the audit trail refer to it."""

from typing import Final

SQL: Final = """
ALTER TABLE organisations ADD COLUMN deleted_at INTEGER;
"""
