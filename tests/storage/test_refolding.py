"""An upgrade of a database whose texts were not folded: equal names still work, and searches find all rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlite_utils import Database as Utils

from deskwire.engine.contacts.ports import ContactFilter, ContactSort
from deskwire.engine.contacts.search_terms import search_terms
from deskwire.engine.conversations.listing import ConversationFilter, ConversationSort
from deskwire.engine.definitions.attributes import attribute_is
from deskwire.engine.tickets.ports import TicketFilter, TicketSort
from deskwire.storage.check.rules import broken_rules
from deskwire.storage.dialect import POSTGRES, SQLITE
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.migrations.apply import migrate as migrate_postgres
from deskwire.storage.postgres.migrations.list import MIGRATIONS
from deskwire.storage.postgres.transaction import PostgresReader
from deskwire.storage.sqlite.database import connect_reader, migrate
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.migrations.apply import migrations
from deskwire.storage.sqlite.transaction import SqliteReader
from tests.support.shortcuts import migrated_step_by_step

LARGE = 1234567890123456789
ROWS = (
    "INSERT INTO organisations (rowid, id, name, created_at) VALUES (1, 'org_1', 'Acme', 0)",
    "INSERT INTO projects (rowid, id, organisation, name, stream_key, created_at) VALUES (1, 'prj_1', 1, 'Shop', 'key', 0)",
    (
        "INSERT INTO users (id, email, name, created_at) VALUES ('usr_1', '\u00c4rztin@example.org', 'A', 0), "
        "('usr_2', '\u00e4rztin@example.org', 'B', 0), ('usr_3', 'arztin@example.org', 'C', 0)"
    ),
    "INSERT INTO teams (id, project, name, created_at) VALUES ('team_1', 1, '\u00dcber Uns', 0), ('team_2', 1, '\u00fcber uns', 0)",
    (
        "INSERT INTO contacts (rowid, id, project, user_id, name, email, phone, created_at, updated_at) VALUES "
        "(1, 'con_1', 1, 'u1', 'Ada', ' Ada <ada@Example.org>', '+49 (0)30 123-456', 0, 0), (2, 'con_2', 1, 'u2', 'B', 'b@x.org', NULL, 0, 0)"
    ),
    "INSERT INTO contact_words VALUES (1, 'ada', 1), (1, '4903', 1), (1, 'b@x.org', 2)",
    (
        "INSERT INTO tickets (id, project, title, status, priority, tags, created_at, updated_at, activity) "
        "VALUES ('tkt_1', 1, '\ufb01nance \uff21', 'OPEN', 1, '[\"VIP\",\"vip\"]', 0, 0, 0)"
    ),
    (
        "INSERT INTO conversations (id, project, contact, status, created_at, updated_at, activity, hour, revision, sequence, human, "
        "messages, contact_messages, archived, visible, tags, routed, unread, attributes) VALUES "
        f"('cnv_1', 1, 1, 'OPEN', 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, '[\"arger\",\"vip\",\"\u00e4rger\"]', '{{}}', 0, "
        f'\'{{"order": {LARGE}, "rate": 1e16}}\')'
    ),
    "INSERT INTO conversation_tags SELECT 1, 'arger', rowid FROM conversations",
    "INSERT INTO conversation_tags SELECT 1, 'vip', rowid FROM conversations",
    "INSERT INTO conversation_tags SELECT 1, '\u00e4rger', rowid FROM conversations",
    "INSERT INTO contact_tags VALUES (1, '\u0434\u043e\u0441\u0442\u0430\u0432\u043a\u0430', 1)",
    "UPDATE contacts SET tags = '[\"\u0434\u043e\u0441\u0442\u0430\u0432\u043a\u0430\"]' WHERE rowid = 1",
    "INSERT INTO ticket_tags SELECT 1, 'VIP', rowid FROM tickets",
    "INSERT INTO ticket_tags SELECT 1, 'vip', rowid FROM tickets",
)


@pytest.fixture(params=["sqlite", "postgres"])
def reader(request: pytest.FixtureRequest, tmp_path: Path, empty_postgres_url: str) -> Iterator[Any]:
    """A reader of a database that was just upgraded."""
    if request.param == "sqlite":
        path = tmp_path / FILE_NAME
        with migrated_step_by_step(), closing(sqlite3.connect(path, isolation_level=None)) as connection:
            migrations.apply(Utils(connection, execute_plugins=False), stop_before="m0051_text_folding")
            for statement in ROWS:
                connection.execute(statement)
            migrate(path)
        with closing(connect_reader(path)) as upgraded:
            assert upgraded.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            yield SqliteReader(upgraded)
        return
    at = next(number for number, each in enumerate(MIGRATIONS) if each.name == "m0021_text_folding")
    migrate_postgres(empty_postgres_url, MIGRATIONS[:at])
    with psycopg.connect(empty_postgres_url) as older:
        for statement in ROWS:
            older.execute(statement.encode())
    migrate_postgres(empty_postgres_url)
    current = BlockingConnection(Database(empty_postgres_url, "test"), "lone")
    yield PostgresReader(current)
    current.close()


def test_existing_equal_names_are_kept_and_new_ones_are_refused(reader: Any) -> None:
    for user_id, email in (
        ("usr_1", "\u00c4rztin@example.org"),
        ("usr_2", "\u00e4rztin@example.org"),
        ("usr_3", "arztin@example.org"),
    ):
        assert reader.user_by_email(email).id == user_id
    assert reader.similar_account_exists("ARZTIN@example.org")
    assert reader.team_named(1, "uber uns") == "team_1"
    assert [each.id for each in reader.teams(1, None, 9)] == ["team_2", "team_1"]


def test_contacts_and_tickets_are_found_by_folded_words(reader: Any) -> None:
    def found(**wanted: Any) -> list[str]:
        return [
            each.contact.id
            for each in reader.listed_contacts(1, ContactFilter(**wanted), ContactSort(), None, 9)
        ]

    assert found(email="ADA@example.org") == ["con_1"]
    assert found(email="B@X.org") == ["con_2"]
    assert found(terms=search_terms("0049 30 123456")) == ["con_1"]
    assert found(terms=search_terms("4903")) == []
    for text in ("finance", "fin a"):
        assert [each.id for each, _ in reader.tickets(1, TicketFilter(text=text), TicketSort(), None, 9)] == [
            "tkt_1"
        ]


def test_large_numbers_are_found_by_all_of_their_digits(reader: Any) -> None:
    def found(name: str, value: str) -> list[str]:
        wanted = ConversationFilter(attributes=(attribute_is(name, value),))
        return [each.conversation.id for each in reader.conversations(1, wanted, ConversationSort(), None, 9)]

    assert found("order", str(LARGE)) == ["cnv_1"]
    assert found("order", str(LARGE + 1)) == []
    assert found("rate", str(10**16)) == ["cnv_1"]
    dialect = SQLITE if isinstance(reader, SqliteReader) else POSTGRES
    assert "attributes_differ" not in {each.code for each in broken_rules(reader.conn, dialect)}


def test_tags_that_read_alike_become_the_first_and_all_are_found(reader: Any) -> None:
    def found(tag: str) -> list[tuple[str, ...]]:
        wanted = ConversationFilter(tags=(tag,))
        return [
            each.conversation.tags for each in reader.conversations(1, wanted, ConversationSort(), None, 9)
        ]

    assert found("\u00c4rger") == found("arger") == found("vip") == [("arger", "vip")]
    assert reader.conversation_tags(1, "", 9) == [("arger", 1), ("vip", 1)]
    contacts = reader.listed_contacts(
        1, ContactFilter(tags=("\u0414\u041e\u0421\u0422\u0410\u0412\u041a\u0410",)), ContactSort(), None, 9
    )
    assert [each.contact.id for each in contacts] == ["con_1"]
    tickets = reader.tickets(1, TicketFilter(tag="v\u00edp"), TicketSort(), None, 9)
    assert [ticket.tags for ticket, _ in tickets] == [("VIP",)]
    dialect = SQLITE if isinstance(reader, SqliteReader) else POSTGRES
    assert "tags_differ" not in {each.code for each in broken_rules(reader.conn, dialect)}
