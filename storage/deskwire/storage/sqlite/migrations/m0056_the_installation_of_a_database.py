"""The id of the secret that a database belongs to, which reveals nothing about it. NULL until the next start stores it."""

from typing import Final

SQL: Final = "ALTER TABLE installation ADD COLUMN secret_id TEXT;"
