"""SQLite's table of message times has each message once, or reads it from the messages, after any writes and deletions."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlite_utils import Database

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Author, AuthorType, Conversation, Message
from deskwire.engine.core.ids import new_id
from deskwire.engine.importing.ports import MessageRow
from deskwire.engine.reports.period import DAY_MS, OffsetSpan, Period
from deskwire.engine.reports.ports import ReportScope
from deskwire.storage.check.rules import RULES
from deskwire.storage.dialect import SQLITE
from deskwire.storage.sqlite import log
from deskwire.storage.sqlite.migrations.apply import migrations
from deskwire.storage.sqlite.transaction import SqliteTransaction
from tests.support.builders import NOON, OTHER_PROJECT, PROJECT
from tests.support.properties import budget

pytestmark = pytest.mark.sqlite
AUTHORS: Final[tuple[tuple[AuthorType, str | None, bool], ...]] = (
    ("contact", "con_1", False),
    ("agent", "usr_1", False),
    ("agent", "usr_2", False),
    ("agent", None, False),
    ("agent", "usr_1", True),
    ("bot", None, False),
    ("system", None, False),
)
WHOLE: Final = Period(NOON - DAY_MS, NOON + DAY_MS, "UTC", (OffsetSpan(NOON + DAY_MS, 0),))
"""A period that contains all messages."""
RULE: Final = next(rule for rule in RULES if rule.code == "message_times_differ").query[SQLITE]


def begin(tx: Any, project: int) -> int:
    """Return the key of a new conversation."""
    contact = tx.contact(project, "ada") or tx.insert_contact(
        project, Contact(0, new_id("con", NOON), "ada", NOON, NOON)
    )
    made = Conversation(id=new_id("cnv", NOON), project=project, created_at=NOON, updated_at=NOON)
    key: int = tx.insert_conversation(made, contact.rowid, {}).rowid
    return key


def write(tx: Any, conversation: int, who: int = 0, at: int = NOON) -> None:
    """Write a message of one of the authors."""
    kind, author, internal = AUTHORS[who]
    message = Message(
        new_id("msg", NOON), Author(kind, author), "Hello", at, internal, None if internal else 0
    )
    tx.insert_message(conversation, message, None)


def written(tx: Any, project: int) -> tuple[Counter[str], Counter[str | None]]:
    """Return the number of messages by author type and by agent."""
    kinds: Counter[str] = Counter()
    agents: Counter[str | None] = Counter()
    for kind, author in tx.conn.execute(
        "SELECT author_type, author_id FROM messages WHERE project = ? AND internal = 0", (project,)
    ):
        kinds[kind] += 1
        agents[author if kind == "agent" else None] += 1
    return kinds, agents


def counted(tx: Any, project: int) -> tuple[Counter[str], Counter[str | None]]:
    """Return the same figures from the reports."""
    found = tx.written_messages(ReportScope(project, WHOLE), "agent")
    agents: Counter[str | None] = Counter()
    for tally in found.groups:
        agents[tally.key] += tally.count
    assert tx.written_messages(ReportScope(project, WHOLE), None).total == found.total
    return +Counter(found.total), agents


def waiting(tx: Any) -> int:
    """Return the number of messages that are not yet in the table."""
    sql = "SELECT count(*) FROM messages WHERE rowid > (SELECT message FROM message_times_end)"
    (number,) = tx.conn.execute(sql).fetchone()
    return int(number)


def faults(tx: Any) -> list[Any]:
    rows: list[Any] = tx.conn.execute(RULE).fetchall()
    return rows


def assert_right(tx: Any, at_once: int) -> None:
    for project in (PROJECT.rowid, OTHER_PROJECT.rowid):
        assert counted(tx, project) == written(tx, project)
    assert faults(tx) == []
    assert waiting(tx) < at_once


deeds = st.one_of(
    st.tuples(
        st.just("write"), st.integers(0, 4), st.tuples(st.integers(0, len(AUTHORS) - 1), st.integers(-9, 9))
    ),
    st.tuples(st.just("erase"), st.integers(0, 4), st.just((0, 0))),
    st.tuples(
        st.sampled_from(("project", "created_at", "author_type", "internal")),
        st.integers(1, 30),
        st.tuples(st.integers(0, 1), st.just(0)),
    ),
)
CHANGES: Final = {
    "project": (PROJECT.rowid, OTHER_PROJECT.rowid),
    "created_at": (NOON, NOON + 5),
    "author_type": ("agent", "bot"),
    "internal": (0, 1),
}


@budget(150)
@given(st.lists(deeds, max_size=60), st.integers(1, 6))
def test_reports_count_stored_messages_after_any_writes_and_erasures(
    tx: Any, monkeypatch: pytest.MonkeyPatch, what: list[tuple[str, int, tuple[int, int]]], at_once: int
) -> None:
    """Keys are reused after the newest messages are deleted, and times go back, as those of imports do."""
    tx.conn.execute("SAVEPOINT one")
    try:
        monkeypatch.setattr(log, "MESSAGE_TIMES_BATCH_SIZE", at_once)
        keys: dict[int, int] = {}
        for deed, which, (value, shift) in what:
            if deed == "write":
                project = OTHER_PROJECT if which == 4 else PROJECT
                if which not in keys:
                    keys[which] = begin(tx, project.rowid)
                write(tx, keys[which], value, NOON + shift)
            elif deed == "erase":
                if which in keys:
                    tx.erase_conversation_rows(keys.pop(which))
            else:
                tx.conn.execute(
                    f"UPDATE messages SET {deed} = ? WHERE rowid = ?", (CHANGES[deed][value], which)
                )
            assert_right(tx, at_once)
    finally:
        tx.conn.execute("ROLLBACK TO one")
        tx.forget()


def test_reused_key_is_counted_after_the_newest_row_was_deleted(
    tx: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "MESSAGE_TIMES_BATCH_SIZE", 4)
    first, second, third = (begin(tx, PROJECT.rowid) for _ in range(3))
    for conversation in (first, first, first, second, third):
        write(tx, conversation)
    tx.erase_conversation_rows(second)  # the fourth message, the last one in the table
    tx.erase_conversation_rows(third)  # the fifth
    write(tx, first, 1)
    assert tx.conn.execute("SELECT max(rowid) FROM messages").fetchone() == (4,)
    assert_right(tx, 4)
    assert counted(tx, PROJECT.rowid)[0] == {"contact": 3, "agent": 1}


def test_a_message_is_added_with_those_before_it_once_there_are_512(tx: Any) -> None:
    conversation = begin(tx, PROJECT.rowid)
    for number in range(1, 1_100):
        write(tx, conversation, number % len(AUTHORS), NOON + number)
        assert waiting(tx) == number % 512
    assert_right(tx, 512)


def test_an_erased_conversation_leaves_no_row_in_the_table(tx: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MESSAGE_TIMES_BATCH_SIZE", 2)
    kept, erased = begin(tx, PROJECT.rowid), begin(tx, PROJECT.rowid)
    for conversation in (kept, erased, erased, kept):
        write(tx, conversation, 1)
    tx.erase_conversation_rows(erased)
    assert tx.conn.execute("SELECT message, conversation FROM message_times").fetchall() == [
        (1, kept),
        (4, kept),
    ]


@pytest.mark.parametrize(
    "spoiling",
    [
        "DELETE FROM message_times WHERE message = 1",
        "INSERT INTO message_times VALUES (1, 7, 99, 1, 0, NULL)",
        "INSERT INTO message_times SELECT project, created_at, 5, conversation, 0, NULL FROM message_times WHERE message = 1",
        "UPDATE message_times SET project = 99 WHERE message = 1",
        "UPDATE message_times SET created_at = 99 WHERE message = 1",
        "UPDATE message_times SET conversation = 99 WHERE message = 1",
        "UPDATE message_times SET author = 3 WHERE message = 1",
        "UPDATE message_times SET agent_id = 'usr_9' WHERE message = 2",
        "UPDATE message_times SET agent_id = NULL WHERE message = 2",
        "UPDATE message_times_end SET message = 5",
        "UPDATE message_times_end SET message = 6",
        "UPDATE message_times_end SET message = 3",
    ],
)
def test_check_finds_all_wrong_counts_of_reports(
    tx: Any, monkeypatch: pytest.MonkeyPatch, spoiling: str
) -> None:
    monkeypatch.setattr(log, "MESSAGE_TIMES_BATCH_SIZE", 4)
    conversation = begin(tx, PROJECT.rowid)
    for number in range(5):
        write(tx, conversation, number % 2)
    assert faults(tx) == []
    tx.conn.execute(spoiling)
    assert faults(tx) != []


def test_the_messages_of_an_older_database_are_counted_after_its_upgrade(tmp_path: Path) -> None:
    name = "m0045_the_times_of_messages"
    with closing(sqlite3.connect(tmp_path / "old.sqlite3", isolation_level=None)) as connection:
        migrations.apply(Database(connection, execute_plugins=False), stop_before=name)
        for number, (kind, author, internal) in enumerate(AUTHORS):
            connection.execute(
                "INSERT INTO messages (id, conversation, author_type, author_id, text, internal, created_at, project) "
                "VALUES (?, 1, ?, ?, 'Hello', ?, ?, 7)",
                (f"msg_{number}", kind, author, internal, 100 - number),
            )
        migrations.apply(Database(connection, execute_plugins=False))
        rows = connection.execute("SELECT * FROM message_times ORDER BY message").fetchall()
        assert rows == [
            (7, 100, 1, 1, 0, None),
            (7, 99, 2, 1, 1, "usr_1"),
            (7, 98, 3, 1, 1, "usr_2"),
            (7, 97, 4, 1, 1, None),
            (7, 95, 6, 1, 2, None),
            (7, 94, 7, 1, 3, None),
        ]
        assert connection.execute("SELECT * FROM message_times_end").fetchall() == [(7,)]
        assert connection.execute(RULE).fetchall() == []
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_reports_go_by_the_time_in_the_table_and_read_the_newest_messages_alone(tx: Any) -> None:
    asked: list[str] = []
    tx.conn.set_trace_callback(asked.append)
    tx.written_messages(ReportScope(PROJECT.rowid, WHOLE), "agent")
    tx.conn.set_trace_callback(None)
    plans = [[row[3] for row in tx.conn.execute(f"EXPLAIN QUERY PLAN {sql}")] for sql in asked]
    tables = "SEARCH message_times USING PRIMARY KEY (project=? AND created_at>? AND created_at<?)"
    newest = "SEARCH messages USING INTEGER PRIMARY KEY (rowid>?)"
    assert [plan[0] for plan in plans] == [tables, newest] * 2


def test_counts_resume_after_a_stop_or_a_rollback(tx: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MESSAGE_TIMES_BATCH_SIZE", 4)
    conversation = begin(tx, PROJECT.rowid)
    for _ in range(3):
        write(tx, conversation)
    again = SqliteTransaction(tx.conn)
    tx.conn.execute("SAVEPOINT one")
    write(again, conversation)
    assert waiting(tx) == 0
    tx.conn.execute("ROLLBACK TO one")
    again.forget()
    assert waiting(tx) == 3
    write(again, conversation)
    assert waiting(tx) == 0
    assert_right(tx, 4)


def test_a_batch_of_an_import_is_added_with_itself(tx: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MESSAGE_TIMES_BATCH_SIZE", 4)
    conversation = begin(tx, PROJECT.rowid)
    row = MessageRow(
        new_id("msg", NOON), conversation, 0, "agent", "usr_1", "Ada", "Hello", False, NOON - 5, None, None
    )
    for count in (3, 5):
        tx.insert_imported([row._replace(id=new_id("msg", NOON)) for _ in range(count)], [], [])
    assert waiting(tx) == 0
    assert_right(tx, 4)
    assert counted(tx, PROJECT.rowid)[1] == {"usr_1": 8}
