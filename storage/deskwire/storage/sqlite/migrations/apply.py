"""Applies the migrations of the list to a database, in order."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from sqlite_utils import Database, Migrations

from deskwire.storage.sqlite.migrations.list import FILLS, SCRIPTS, known_migrations


def execute_script(db: Database, script: str) -> None:
    """Execute the statements of a script one by one, because `executescript` would commit first.

    A statement ends at a semicolon before a line without indentation; the semicolons inside triggers are indented.
    """
    for statement in re.split(r";\n(?! )", script):
        if statement.strip():
            db.execute(statement)


def _migration(name: str, script: str) -> Callable[[Database], None]:
    def migrate(db: Database) -> None:
        execute_script(db, script)
        if name in FILLS:
            FILLS[name](db)

    return migrate


migrations: Final = Migrations("deskwire")
for _name, _script in SCRIPTS.items():
    migrations(name=_name)(_migration(_name, _script))


def newer_than_program(db: Database) -> list[str]:
    """Return the names of applied migrations that this program does not know."""
    return sorted({migration.name for migration in migrations.applied(db)} - known_migrations())
