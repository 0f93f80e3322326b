"""The table of applied migrations, which sqlite-utils keeps, with a column of ours for the program that applied each."""

from __future__ import annotations

import sqlite3
from typing import Final

from deskwire.storage.sqlite.migrations.list import SCRIPTS, known_migrations
from deskwire.storage.versions import newer_program, this_program

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


def pending_migrations(connection: sqlite3.Connection) -> list[str]:
    """Return the migrations that this program would apply, in their order."""
    applied = applying_programs(connection)
    return [name for name in SCRIPTS if name not in applied]


def newer_words(connection: sqlite3.Connection) -> str | None:
    """Return the words that name the newer program that wrote this database; None if this program may open it."""
    programs = applying_programs(connection)
    unknown = sorted(programs.keys() - known_migrations())
    return f"{newer_program(unknown, programs)}. {this_program()}" if unknown else None
