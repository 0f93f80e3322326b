"""The kept answers of an SQLite database: their upgrade, and searches that use an index (ADR 24)."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_utils import Database

from deskwire.engine.core.ids import new_id
from deskwire.engine.idempotency.idempotent_requests import StoredResponse
from deskwire.storage.sqlite import kept_answers
from deskwire.storage.sqlite.database import connect_writer, migrate
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.migrations.apply import migrations
from deskwire.storage.sqlite.transaction import SqliteTransaction
from tests.support.builders import NOON
from tests.support.shortcuts import migrated_step_by_step

ID = new_id("tkt", NOON)
NEAR = "SELECT near, count(*) FROM kept_answers GROUP BY near ORDER BY near"


@pytest.fixture(autouse=True)
def _step_by_step() -> Iterator[None]:
    with migrated_step_by_step():
        yield


@pytest.fixture
def tx(tmp_path: Path) -> Iterator[SqliteTransaction]:
    migrate(tmp_path / FILE_NAME)
    with closing(connect_writer(tmp_path / FILE_NAME)) as connection:
        yield SqliteTransaction(connection)


def test_old_kept_answers_are_found_and_erased_after_an_upgrade(tmp_path: Path) -> None:
    path, names = tmp_path / FILE_NAME, [b"%032d" % number for number in range(3)]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        name = "m0039_kept_answers_beside_what_they_are_about"
        migrations.apply(Database(connection, execute_plugins=False), stop_before=name)
        connection.executemany(
            "INSERT INTO kept_answers (name, fingerprint, subject, sealed, at) VALUES (?, x'00', ?, ?, 7)",
            [(names[0], ID, b"sealed"), (names[1], None, None), (names[2], "tkt_other", b"sealed")],
        )
    migrate(path)
    with closing(connect_writer(path)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")  # the ticket's project is beside the point
        tx = SqliteTransaction(connection)
        before = StoredResponse(names[0], b"\0", ID, b"sealed", 7)
        assert [tx.stored_response(names[0], place) for place in (ID, "")] == [before, before]
        tx.store_response(StoredResponse(b"new", b"\0", ID, b"sealed", 8, ID))
        connection.execute(
            "INSERT INTO tickets (id, project, title, status, priority, tags, created_at, updated_at, activity) "
            "VALUES (?, 1, 'T', 'OPEN', 1, '[]', 0, 0, 0)",
            (ID,),
        )
        connection.execute("DELETE FROM tickets")
        left = connection.execute(
            "SELECT name, subject, sealed FROM kept_answers ORDER BY at, name"
        ).fetchall()
        assert left == [
            (names[0], None, None),
            (names[1], None, None),
            (names[2], "tkt_other", b"sealed"),
            (b"new", None, None),
        ]
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_nothing_of_an_id_is_left_in_an_answer_that_was_emptied(tx: SqliteTransaction) -> None:
    kept = StoredResponse(b"name", b"\0", ID, b"sealed", 8, ID)
    tx.store_response(kept)
    assert tx.conn.execute(NEAR).fetchall() == [(ID[4:14], 1)]
    tx.erase_response(kept)
    assert tx.conn.execute(NEAR).fetchall() == [("", 1)]


def test_every_search_of_kept_answers_uses_an_index(tx: SqliteTransaction) -> None:
    triggers = [sql for (sql,) in tx.conn.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger'")]
    changes = [
        re.sub(r"old\.\w+", "?1", change)
        for sql in triggers
        for change in re.findall(r"UPDATE kept_answers SET .*;", sql)
    ]
    assert len(changes) == 2 * 21
    for statement in (*changes, kept_answers._KEPT, kept_answers._ABOUT, kept_answers._EMPTY):
        given = ("", b"")[: 2 if "?2" in statement else 1]
        plan = [row[3] for row in tx.conn.execute(f"EXPLAIN QUERY PLAN {statement}", given)]
        looked = [step for step in plan if "kept_answers" in step]
        assert looked
        assert all(step.startswith("SEARCH kept_answers USING INDEX") for step in looked), plan
        if "length(near) = 0 AND subject" in statement:
            assert "kept_answers_by_subject" in looked[-1], plan


def test_search_by_name_is_compiled_once_for_all_values(tx: SqliteTransaction) -> None:
    """An index for `near = ''` would make SQLite compile the statement again for each value."""
    options = [row[0] for row in tx.conn.execute("PRAGMA compile_options")]
    if "ENABLE_STMTVTAB" not in options:
        pytest.skip("this SQLite does not tell how often a statement was compiled")
    for number in range(20):
        tx.stored_response(b"name %d" % number, f"cnv_{number:026}")
        tx.stored_response(b"name %d" % number, "")
    told = "SELECT run, reprep FROM sqlite_stmt WHERE sql = ?"
    assert tx.conn.execute(told, (kept_answers._KEPT,)).fetchall() == [(40, 0)]
