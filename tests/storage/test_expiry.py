"""Conversations past their retention: an index finds them, and costs no ordinary change."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlite_utils import Database

from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.core.values import replace
from deskwire.storage.sqlite.database import connect_reader, connect_writer, migrate
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.migrations.apply import migrations
from deskwire.storage.sqlite.transaction import SqliteReader, SqliteTransaction
from deskwire.storage.tables.conversations import columns, conversations
from tests.support.builders import CONTACT, NOON, PROJECT, found_projects

DAY_MS = 86_400_000
START = (-1, -1)


def opened(directory: Path) -> SqliteTransaction:
    """Open a transaction on a fresh database, where each statement is a commit of its own."""
    migrate(directory / FILE_NAME)
    tx = SqliteTransaction(connect_writer(directory / FILE_NAME))
    tx.conn.execute("PRAGMA synchronous = OFF")  # this is not about crashes
    found_projects(tx)
    tx.insert_contact(PROJECT.rowid, CONTACT)
    return tx


def insert(tx: SqliteTransaction, number: int, **fields: object) -> Conversation:
    state = Conversation(id=f"cnv_{number}", project=1, created_at=NOON + number, updated_at=NOON)
    return tx.insert_conversation(replace(state, **fields), 1, {})  # type: ignore[arg-type]


def plan(tx: SqliteTransaction, sql: str) -> list[str]:
    """Return the steps of a query's plan."""
    values = [0] * sql.count("?")
    return [row[3] for row in tx.conn.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


def test_due_conversations_are_found_by_index_only(tmp_path: Path) -> None:
    with closing(opened(tmp_path).conn) as connection:
        tx = SqliteTransaction(connection)
        for sql, wanted in (
            (conversations.BOT_ONLY, "conversations_bot_only (<expr>"),
            (conversations.ARCHIVED, "conversations_archived (project=? AND archived_at"),
            (conversations.PROJECTS, "conversations_archived (project=? AND archived_at<?"),
        ):
            steps = plan(tx, sql)
            assert any(wanted in step for step in steps)
            assert not any("TEMP B-TREE" in step or "SCAN c" in step for step in steps)


def test_a_usual_change_writes_neither_index(tmp_path: Path) -> None:
    with closing(opened(tmp_path).conn) as connection:
        names = ("conversations_bot_only", "conversations_archived")
        roots = {
            connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).fetchone()[0]
            for name in names
        }
        usual = (columns.USUAL, columns.BY_MESSAGES)
        for sql, written in (*((each, set()) for each in usual), (columns.ALL, roots)):
            program = connection.execute(f"EXPLAIN {sql}", [0] * sql.count("?"))
            assert {row[3] for row in program if row[1] == "OpenWrite"} & roots == written


def test_a_change_of_either_is_stored_and_found(tmp_path: Path) -> None:
    with closing(opened(tmp_path).conn) as connection:
        tx = SqliteTransaction(connection)
        state = insert(tx, 1)
        for changes in (
            {"human": True},
            {"archived_at": NOON + 5, "archived": True},
            {"archived_at": None},
            {"attributes": {"vip": 1}},
            {"attributes": {"vip": True}},  # to Python the same
            {"messages": 1, "last_message_at": NOON, "unread": True},
        ):
            after = replace(state, revision=state.revision + 1, **changes)
            tx.save_conversation(state, after, {})
            found = tx.conversation(1, state.id)
            assert found is not None
            assert repr(found[0]) == repr(after)
            state = after


def test_equal_times_are_listed_page_by_page_each_once(tmp_path: Path) -> None:
    with closing(opened(tmp_path).conn) as connection:
        tx = SqliteTransaction(connection)
        for number in range(7):
            insert(tx, number, created_at=NOON, archived=True, archived_at=NOON)
        insert(tx, 7, created_at=NOON + 1, archived=True, archived_at=NOON + 1)
        insert(tx, 8, created_at=NOON, human=True)
        for kind in ("bot_only", "archived"):
            seen, place = [], START
            while True:
                if kind == "bot_only":
                    page = tx.bot_only_before(NOON + 1, place, 3)
                else:
                    page = tx.archived_before(1, NOON + 1, place, 3)
                if not page:
                    break
                seen += [due.conversation for due in page]
                place = page[-1].place
            assert seen == [f"cnv_{number}" for number in range(7)]


def test_only_projects_with_something_expired_are_named(tmp_path: Path) -> None:
    with closing(opened(tmp_path).conn) as connection:
        tx = SqliteTransaction(connection)
        insert(tx, 1, archived=True, archived_at=NOON)
        window = 365 * DAY_MS
        assert tx.projects_with_expired(NOON + window, DAY_MS) == []
        (project,) = tx.projects_with_expired(NOON + window + 1, DAY_MS)
        assert project.id == PROJECT.id
        tx.save_project(replace(project, settings=replace(project.settings, archived_retention_days=None)))
        assert tx.projects_with_expired(NOON + 10 * window, DAY_MS) == []


def test_archive_without_a_time_counts_from_its_last_change(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        before = "m0010_what_has_passed_its_retention"
        migrations.apply(Database(connection, execute_plugins=False), stop_before=before)
        connection.execute(
            "INSERT INTO organisations (rowid, id, name, created_at) VALUES (1, 'org_1', 'Acme', 0)"
        )
        connection.execute(
            "INSERT INTO projects (rowid, id, organisation, name, stream_key, created_at) "
            "VALUES (1, 'prj_1', 1, 'Shop', 'key', 0)"
        )
        connection.execute(
            "INSERT INTO contacts (id, project, user_id, created_at, updated_at) VALUES ('con_1', 1, 'u', 0, 0)"
        )
        for rowid, archived in ((1, 1), (2, 0)):
            connection.execute(
                "INSERT INTO conversations (rowid, id, project, contact, revision, sequence, status, unread, archived, "
                "attributes, visible, human, messages, routed, activity, created_at, updated_at) "
                "VALUES (?, ?, 1, 1, 0, 1, 'OPEN', 0, ?, '{}', 1, 1, 0, '{}', 5, 5, 77)",
                (rowid, f"cnv_{rowid}", archived),
            )
    migrate(path)
    with closing(connect_reader(path)) as connection:
        (due,) = SqliteReader(connection).archived_before(1, 78, START, 10)
        assert (due.conversation, due.place) == ("cnv_1", (77, 1))
        assert SqliteReader(connection).archived_before(1, 77, START, 10) == []
