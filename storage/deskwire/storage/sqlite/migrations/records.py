"""The table of applied migrations, which sqlite-utils keeps, with a column of ours for the program that applied each."""

from __future__ import annotations

import sqlite3
from typing import Final

RECORDS: Final = "_sqlite_migrations"


def applying_programs(connection: sqlite3.Connection) -> dict[str, str | None]:
    """Return the version of the program that applied each migration, in the order of application.

    It is None for migrations that were applied before 0.2.0, which recorded no version. The result is empty for a
    database without migrations.
    """
    columns = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (RECORDS,))}
    if not columns:
        return {}
    program = "program" if "program" in columns else "NULL"
    return dict(
        connection.execute(
            f"SELECT name, {program} FROM {RECORDS} WHERE migration_set = 'deskwire' ORDER BY id"
        ).fetchall()
    )
