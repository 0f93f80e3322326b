"""The table of conversation columns: it agrees with the schema and the state, and values round-trip."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from msgspec.structs import fields

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.core.values import replace
from deskwire.storage.tables.conversations import columns
from deskwire.storage.tables.conversations.columns import COLUMNS
from tests.support.builders import CONTACT, NOON, PROJECT

STATE = Conversation(
    id="cnv_1",
    project=PROJECT.rowid,
    created_at=NOON,
    updated_at=NOON + 1,
    revision=2,
    title="Hello",
    status="CLOSED",
    closed_by="agent",
    closed_at=NOON + 3,
    unread=True,
    archived=True,
    assignee=Assignee("user", "usr_1", "Ada"),
    attributes={"plan": "pro"},
    rating=4,
    rated_at=NOON + 5,
    rating_comment="Quick.",
    ticket_id="tkt_1",
    visible=False,
    human=True,
    archived_at=NOON + 6,
    imported_at=NOON + 7,
    messages=8,
    contact_messages=3,
    last_message_at=NOON + 9,
    sequence=10,
    last_turn=9,
    waiting_since=NOON + 11,
    snoozed_until=NOON + 12,
    tags=("returns", "vip"),
    contact_seen_index=13,
    contact_seen_at=NOON + 14,
    network_logs_at=NOON + 15,
    asked_at=NOON + 16,
    answered_at=NOON + 17,
    opened_at=NOON + 18,
    replier_id="usr_2",
    team_id="team_1",
    seen_until=NOON + 19,
    channel="chn_1",
    client_id="draft-1",
    contact_reached_index=14,
    contact_reached_at=NOON + 20,
    no_answer_needed_since=NOON + 21,
    merged_into="cnv_1",
    merged=("cnv_2", "cnv_3"),
    merged_at=NOON + 22,
    split_from="cnv_4",
    split_into=("cnv_5", "cnv_6"),
)
"""A state in which no field has its default."""


@pytest.fixture(autouse=True)
def _contact(tx: Any) -> None:
    tx.insert_contact(PROJECT.rowid, CONTACT)


def stored(tx: Any) -> Conversation:
    pair = tx.conversation(PROJECT.rowid, STATE.id)
    assert pair is not None
    state: Conversation = pair[0]
    return state


@pytest.mark.sqlite
def test_every_column_of_the_schema_is_in_the_table_once_and_no_other(tx: Any) -> None:
    schema = [row[1] for row in tx.conn.execute("PRAGMA table_info(conversations)")]
    names = [column.name for column in COLUMNS]
    assert sorted([*names, *columns.ALWAYS_WRITTEN, columns.HOUR, columns.OWNER]) == sorted(schema)


def test_every_field_of_the_state_has_a_column_or_an_exception() -> None:
    sources = {column.source for column in COLUMNS} | set(columns.NOT_STORED)
    assert sources == set(Conversation.__struct_fields__)
    assert columns.SELECTED.startswith("c.id, "), (
        "so that a reader can put an id in its place that is in memory already"
    )


@pytest.mark.sqlite
def test_indexed_columns_are_named_by_no_usual_statement(tx: Any) -> None:
    indexed = {
        row[2]
        for index in tx.conn.execute("PRAGMA index_list(conversations)").fetchall()
        if index[1]
        != "conversations_by_change"  # this index omits conversations whose last change was a message
        for row in tx.conn.execute(f"PRAGMA index_info({index[1]})")
    }
    written = {column.name for column in COLUMNS if column.written in ("always", "by commands")}
    assert indexed & written == set()


def test_all_that_is_stored_is_read_again(tx: Any) -> None:
    assert all(
        getattr(STATE, field.name) != field.default
        for field in fields(Conversation)
        if field.name != "run" and field.name != "rowid"
    )
    inserted = tx.insert_conversation(STATE, CONTACT.rowid, {3: 9})
    assert repr(stored(tx)) == repr(inserted)
    assert tx.claim(inserted).routed == {3: 9}


@pytest.mark.parametrize(
    "column", [column for column in COLUMNS if column.written not in ("by SQLite", "once")]
)
def test_a_change_of_any_field_that_may_change_is_stored(tx: Any, column: columns.ConversationColumn) -> None:
    bare = Conversation(id=STATE.id, project=STATE.project, created_at=NOON, updated_at=NOON)
    before = tx.insert_conversation(bare, CONTACT.rowid, {})
    after = replace(before, **{column.source: getattr(STATE, column.source)})
    tx.save_conversation(before, after, {})
    assert repr(stored(tx)) == repr(after)
    tx.save_conversation(after, before, {})
    assert repr(stored(tx)) == repr(before)


@pytest.mark.sqlite
def test_statement_writes_only_columns_that_its_change_may_affect(tx: Any) -> None:
    def written(sql: str) -> set[str]:
        return {
            part.split(" = ")[0] for part in sql.partition(" SET ")[2].partition(" WHERE ")[0].split(", ")
        }

    always, turns, commands, rarely = (
        {column.name for column in COLUMNS if column.written == when}
        for when in ("always", "by turns", "by commands", "rarely")
    )
    assert written(columns.BY_MESSAGES) == always | set(columns.ALWAYS_WRITTEN)
    assert written(columns.BY_TURNS) == written(columns.BY_MESSAGES) | turns
    assert written(columns.USUAL) == written(columns.BY_MESSAGES) | commands
    assert written(columns.ALL) == written(columns.USUAL) | turns | rarely | {columns.HOUR}
    for sql in (columns.INSERT, columns.BY_MESSAGES, columns.BY_TURNS, columns.USUAL, columns.ALL):
        with pytest.raises(sqlite3.ProgrammingError, match=f"uses {sql.count('?')}, and there are 0"):
            tx.conn.execute(sql)
