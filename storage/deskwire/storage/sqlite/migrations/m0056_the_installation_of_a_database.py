"""Which secret a database belongs to, by an id that reveals nothing about it. NULL until the next start has said so."""

from typing import Final

SQL: Final = "ALTER TABLE installation ADD COLUMN secret_id TEXT;"
