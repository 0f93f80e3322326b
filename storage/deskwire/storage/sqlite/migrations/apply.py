"""Applies the migrations of the list to a database, in order.

Import it only if there are any: it loads sqlite-utils, which takes a twentieth of a start.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from sqlite_utils import Database, Migrations

from deskwire.engine.core.build import version
from deskwire.storage.sqlite.migrations.list import FILLS, SCRIPTS
from deskwire.storage.sqlite.migrations.records import RECORDS


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


def apply_pending(db: Database, migrations: Migrations = migrations) -> None:
    """Apply the pending migrations, and record the version of this program with each of them."""
    migrations.ensure_migrations_table(db)
    table = db.table(RECORDS)
    if "program" not in table.columns_dict:
        table.add_column("program", str)
    # A trigger writes in the transaction of the migration, so that a crash leaves no migration without its program.
    db.execute(
        f"CREATE TEMP TRIGGER record_program AFTER INSERT ON main.{RECORDS} BEGIN "
        f"UPDATE {RECORDS} SET program = {db.quote(version())} WHERE id = new.id; END"
    )
    migrations.apply(db)
    db.execute("DROP TRIGGER temp.record_program")
