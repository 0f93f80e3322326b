"""Commands that only look, on a data directory that an older program has written."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pytest
from sqlite_utils import Database, Migrations

from deskwire.commands.admin.context import LOOKS
from deskwire.storage.sqlite.database import FILE_NAME
from deskwire.storage.sqlite.migrations.list import migrations
from tests.commands.admin.conftest import Deskwire, good, listed

LACKING = "m0012_imports"


@pytest.fixture
def older(deskwire: Deskwire, tmp_path: Path) -> Path:
    """Return the database of a program that knew one migration less, with an organisation in it."""
    with closing(Database(memory=True)) as empty:
        known = migrations.pending(empty)
    before = Migrations("deskwire")
    for each in known[: [each.name for each in known].index(LACKING)]:
        before(name=each.name)(each.fn)
    path = tmp_path / "data" / FILE_NAME
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        before.apply(Database(connection, execute_plugins=False))
        connection.execute(
            "INSERT INTO organisations VALUES (1, 'org_01JZZZZZZZZZZZZZZZZZZZZZZZ', 'Acme', 0)"
        )
    (path.parent / "secret").write_text("s" * 43)
    return path


LOOKING = [
    ("org", "list"),
    ("project", "list"),
    ("project", "show"),
    ("user", "list"),
    ("key", "list"),
    ("credential", "list"),
    ("audit", "list"),
]


def test_the_commands_that_look_are_tried_here() -> None:
    import_module("deskwire.commands.admin.operations")  # where they are registered
    assert {".".join(each[:2]) for each in LOOKING} == LOOKS


@pytest.mark.parametrize("command", LOOKING, ids=" ".join)
def test_a_command_that_only_looks_says_that_the_database_is_older_and_leaves_it_alone(
    deskwire: Deskwire, older: Path, command: tuple[str, ...]
) -> None:
    before = older.read_bytes()
    refused = deskwire(*command)
    assert refused.exit_code == 1
    assert f"written by an older Deskwire (it lacks {LACKING})" in refused.stderr
    assert "`deskwire serve`" in refused.stderr
    assert older.read_bytes() == before
    assert not (older.parent / "backups").exists()


def test_check_and_backup_take_it_as_it_is(deskwire: Deskwire, older: Path, tmp_path: Path) -> None:
    before = older.read_bytes()
    checked = deskwire("check")
    assert checked.exit_code == 0
    assert f"The next start brings the database up to date ({LACKING}" in checked.stderr
    good(deskwire("backup", str(tmp_path / "copy")))
    good(deskwire("config"))
    assert older.read_bytes() == before


def test_a_command_that_changes_something_brings_it_up_to_date_and_keeps_a_copy(
    deskwire: Deskwire, older: Path
) -> None:
    good(deskwire("org", "rename", "Acme", "Other"))
    assert len([*(older.parent / "backups").iterdir()]) == 1
    assert [each["name"] for each in listed(deskwire("org", "list", "--json"))] == ["Other"]
