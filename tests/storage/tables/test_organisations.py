"""Tables of people: defaults for older databases, and lists that are read by index."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_utils import Database

from deskwire.engine.accounts.people import DEFAULT_SETTINGS
from deskwire.storage.sqlite.database import connect_reader, migrate
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.migrations.apply import migrations
from deskwire.storage.sqlite.transaction import SqliteReader


def test_projects_and_users_from_before_get_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        before = "m0004_people_and_what_projects_choose"
        migrations.apply(Database(connection, execute_plugins=False), stop_before=before)
        connection.execute(
            "INSERT INTO organisations (rowid, id, name, created_at) VALUES (1, 'org_1', 'Acme', 5)"
        )
        connection.execute("INSERT INTO projects VALUES (1, 'prj_1', 1, 'Shop', 'stream', 6)")
        connection.execute("INSERT INTO users VALUES (1, 'usr_1', 'a@b.example', 'Ada', 'hash', 7)")
    migrate(path)
    with closing(connect_reader(path)) as connection:
        reader = SqliteReader(connection)
        project, user = reader.project("prj_1"), reader.user("usr_1")
        assert project is not None
        assert user is not None
        assert (project.settings, project.created_at) == (DEFAULT_SETTINGS, 6)
        assert (user.password_temporary, user.generation, user.created_at) == (False, 0, 7)


@pytest.fixture
def reader(tmp_path: Path) -> SqliteReader:
    """Return a reader of an empty database."""
    migrate(tmp_path / FILE_NAME)
    return SqliteReader(connect_reader(tmp_path / FILE_NAME))


def plans(reader: SqliteReader) -> list[str]:
    """Return the plan of every statement that the lists run."""
    statements: list[str] = []
    reader.conn.set_trace_callback(statements.append)
    reader.memberships(1, (-1, -1), 10)
    reader.members(1, 0, 10)
    reader.organisation_member(1, "usr_1")
    reader.owners(1)
    reader.projects(1, None, 99, 10)
    reader.projects(None, 1, 99, 10)
    reader.keys(1, 99, 10)
    reader.key("key_1")
    reader.keys_in_force(1, 0)
    reader.conn.set_trace_callback(None)
    assert len(statements) == 9
    return [
        step[3]
        for each in statements
        for step in reader.conn.execute(f"EXPLAIN QUERY PLAN {each}").fetchall()
    ]


def test_no_list_scans_a_table(reader: SqliteReader) -> None:
    found = plans(reader)
    assert len(found) >= 9
    assert not [step for step in found if step.startswith("SCAN")]
    reader.conn.close()
