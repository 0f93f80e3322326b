"""The number of refusals with `Retry-After` by which a delivery is known to fail by itself."""

from typing import Final

SQL: Final = """
ALTER TABLE deliveries ADD COLUMN refusals INTEGER NOT NULL DEFAULT 0;
"""
