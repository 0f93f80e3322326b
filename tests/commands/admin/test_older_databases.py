"""Commands that only look: they leave the bytes of every database as they are, and say what an older one needs."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlite_utils import Database, Migrations

from deskwire.commands.admin.read_queries import READ_QUERIES
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.migrations.apply import migrations
from deskwire.storage.sqlite.migrations.list import SCRIPTS
from tests.commands.admin.conftest import Deskwire, good, listed

LACKING = "m0012_imports"
LOOKING = [
    ("org", "list"),
    ("org", "delete", "Acme"),
    ("project", "list"),
    ("project", "show"),
    ("user", "list"),
    ("user", "delete", "ada@example.com"),
    ("key", "list"),
    ("credential", "list"),
    ("token", "list", "--user", "ada@example.com"),
    ("audit", "list"),
    ("mail", "list"),
]
OF_COMMANDS = {"org.delete": "org.show", "user.delete": "user.show"}


@pytest.fixture
def older(deskwire: Deskwire, tmp_path: Path) -> Path:
    """Return the database of a program that knew fewer migrations, with an organisation in it."""
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
            "INSERT INTO organisations (rowid, id, name, created_at) VALUES (1, 'org_01JZZZZZZZZZZZZZZZZZZZZZZZ', 'Acme', 0)"
        )
    (path.parent / "secret").write_text("s" * 43)
    return path


@contextmanager
def unchanged(directory: Path) -> Iterator[None]:
    """Make sure that the files of a directory keep their names and bytes."""
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    yield
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before


def test_the_commands_that_look_are_tried_here() -> None:
    names = [".".join(each[:2]) for each in LOOKING]
    assert {OF_COMMANDS.get(name, name) for name in names} == READ_QUERIES.keys()


@pytest.mark.parametrize("command", LOOKING, ids=" ".join)
def test_reading_command_reports_an_older_database_and_leaves_it_unchanged(
    deskwire: Deskwire, older: Path, command: tuple[str, ...]
) -> None:
    with unchanged(older.parent):
        refused = deskwire(*command)
    newest = list(SCRIPTS)[-1]
    assert refused.exit_code == 1
    assert (
        f"is of version 11, and this Deskwire needs version {int(newest[1:5])} (it lacks {LACKING})"
        in refused.stderr
    )
    assert "`deskwire serve`" in refused.stderr


@pytest.mark.parametrize("command", LOOKING, ids=" ".join)
def test_reading_command_creates_no_files(
    deskwire: Deskwire, tmp_path: Path, command: tuple[str, ...]
) -> None:
    refused = deskwire(*command)
    assert (refused.exit_code, "There is no Deskwire" in refused.stderr) == (1, True)
    assert not (tmp_path / "data").exists()
    (tmp_path / "data").mkdir()
    assert "There is no Deskwire" in deskwire(*command).stderr
    assert [*(tmp_path / "data").iterdir()] == []


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100], ids=["empty", "something else"])
def test_foreign_file_is_reported_and_left_unchanged(
    deskwire: Deskwire, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / FILE_NAME).write_bytes(content)
    with unchanged(tmp_path / "data"):
        refused = deskwire("org", "list")
    assert (refused.exit_code, FILE_NAME in refused.stderr) == (1, True)


def test_newer_database_is_left_unchanged_and_its_migration_named(deskwire: Deskwire, tmp_path: Path) -> None:
    good(deskwire("org", "create", "Acme"))
    path = tmp_path / "data" / FILE_NAME
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('deskwire', 'm9999_later', '')"
        )
    with unchanged(path.parent):
        refused = deskwire("org", "list")
    assert (refused.exit_code, "m9999_later" in refused.stderr) == (1, True)


def test_reading_command_changes_no_byte_after_a_stop_or_a_crash(deskwire: Deskwire, tmp_path: Path) -> None:
    good(deskwire("org", "create", "Acme"))
    with unchanged(tmp_path / "data"):
        good(deskwire("org", "list"))
    path = tmp_path / "data" / FILE_NAME
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        with connection:
            connection.execute("UPDATE organisations SET name = 'Renamed'")
        left = {each.name: each.read_bytes() for each in path.parent.iterdir() if "-shm" not in each.name}
    for name, content in left.items():  # as a process that was killed leaves them
        (path.parent / name).write_bytes(content)
    assert len(left[f"{FILE_NAME}-wal"]) > 0
    assert [each["name"] for each in listed(deskwire("org", "list", "--json"))] == ["Renamed"]
    assert {each.name: each.read_bytes() for each in path.parent.iterdir() if "-shm" not in each.name} == left


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_can_not_be_written_can_be_looked_at(deskwire: Deskwire, tmp_path: Path) -> None:
    good(deskwire("org", "create", "Acme"))
    (tmp_path / "data").chmod(0o500)
    try:
        assert "Acme" in good(deskwire("org", "list"))
    finally:
        (tmp_path / "data").chmod(0o700)


def test_check_and_backup_accept_an_older_database(deskwire: Deskwire, older: Path, tmp_path: Path) -> None:
    with unchanged(older.parent):
        checked = deskwire("check")
        assert checked.exit_code == 0
        assert f"The next start brings the database up to date ({LACKING}" in checked.stderr
        good(deskwire("backup", str(tmp_path / "copy")))
        good(deskwire("config"))


def test_changing_command_migrates_the_database_and_keeps_a_copy(deskwire: Deskwire, older: Path) -> None:
    good(deskwire("org", "rename", "Acme", "Other"))
    assert len([*(older.parent / "backups").iterdir()]) == 1
    assert [each["name"] for each in listed(deskwire("org", "list", "--json"))] == ["Other"]
