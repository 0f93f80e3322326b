"""Tags of conversations, contacts and tickets with the key by which they are compared; `refold_tags` makes the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sqlite_utils import Database

_TABLES: Final = (
    ("conversation", " REFERENCES conversations"),
    ("contact", " REFERENCES contacts"),
    ("ticket", ""),
)
_BY_HOLDER: Final = ("conversation", "contact")
"""Objects whose tags have an index by the object."""

SQL: Final = "".join(f"ALTER TABLE {holder}_tags ADD COLUMN folded TEXT;\n" for holder, _ in _TABLES)


def fill(db: Database) -> None:
    """Fill the keys, and put the tables into their order."""
    from deskwire.storage.refolding import refold_tags  # it logs: commands that only read go without

    connection = db.conn
    refold_tags(lambda sql, values=(): connection.execute(sql, values).fetchall())
    for holder, references in _TABLES:
        table = f"{holder}_tags"
        connection.execute(
            f"CREATE TABLE {table}_folded (project INTEGER NOT NULL, folded TEXT NOT NULL, {holder} INTEGER NOT NULL{references}, "
            f"tag TEXT NOT NULL, PRIMARY KEY (project, folded, {holder})) STRICT, WITHOUT ROWID"
        )
        connection.execute(f"INSERT INTO {table}_folded SELECT project, folded, {holder}, tag FROM {table}")
        connection.execute(f"DROP TABLE {table}")
        connection.execute(f"ALTER TABLE {table}_folded RENAME TO {table}")
        if holder in _BY_HOLDER:
            connection.execute(f"CREATE INDEX {table}_by_{holder} ON {table} ({holder})")
