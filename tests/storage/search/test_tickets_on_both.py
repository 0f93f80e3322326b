"""Searches of tickets by words on PostgreSQL and on SQLite: both find the same tickets for any texts."""

# they are real texts

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.values import replace
from deskwire.engine.tickets.ports import TicketFilter, TicketSort
from deskwire.engine.tickets.ticket import Ticket
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.transaction import PostgresTransaction
from deskwire.storage.sqlite.database import connect_writer, migrate
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.transaction import SqliteTransaction
from tests.storage.search.test_both import TEXTS
from tests.support.builders import NOON, OTHER_PROJECT, PROJECT, found_projects
from tests.support.postgres import fresh_database
from tests.support.properties import budget

PIECES = [
    "ada@ex.org",
    "ex org",
    "A-1001",
    "größe",
    "GROSSE",
    "x",
    "'",
    "\\",
    "a'b",
    "*",
    '"',
    "東京",
    "%",
    "_",
    "&|!",
    "\n",
]
words = st.lists(st.sampled_from([*PIECES, *TEXTS]) | st.text(max_size=8), max_size=4).map(" ".join)


class Both:
    """A transaction on each of the databases, which is never committed."""

    def __init__(self, *each: Any) -> None:
        self.each = each
        self.stored: dict[str, list[Ticket]] = {}

    def found(self, text: str, project: int = PROJECT.rowid) -> list[str]:
        """Return the ids of the tickets that both databases find."""
        one, other = [
            [ticket.id for ticket, _ in tx.tickets(project, TicketFilter(text=text), TicketSort(), None, 50)]
            for tx in self.each
        ]
        assert one == other, text
        return one

    def insert(self, number: int, title: str, description: str | None, project: int = PROJECT.rowid) -> None:
        """Store a ticket in both."""
        ticket = Ticket(f"tkt_{number}", project, title, NOON, NOON, NOON, description=description)
        self.stored[ticket.id] = [tx.insert_ticket(ticket) for tx in self.each]


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Both]:
    """Yield both databases with their projects."""
    migrate(tmp_path / FILE_NAME)
    with fresh_database() as url, closing(connect_writer(tmp_path / FILE_NAME)) as connection:
        postgres = BlockingConnection(Database(url, "a"), "setup")
        postgres.command("BEGIN")
        connection.execute("BEGIN")
        txs: tuple[Any, Any] = SqliteTransaction(connection), PostgresTransaction(postgres)
        for tx in txs:
            found_projects(tx)
        yield Both(*txs)
        postgres.close()


def test_real_texts_by_their_words_and_beginnings(both: Both) -> None:
    for number, text in enumerate(TEXTS):
        both.insert(
            number, text[:200] or "-", TEXTS[-number], PROJECT.rowid if number % 5 else OTHER_PROJECT.rowid
        )
    hits = 0
    for text in TEXTS:
        for query in {text, *text.split(), *(word[:3] for word in text.split()), text[:12], text[5:30]}:
            hits += bool(both.found(query)) + bool(both.found(query, OTHER_PROJECT.rowid))
    assert hits > 200


@given(titles=st.lists(st.tuples(words, st.none() | words), min_size=1, max_size=3), query=words)
@budget(60)
def test_any_texts_at_all(both: Both, titles: list[tuple[str, str | None]], query: str) -> None:
    for tx in both.each:
        tx.conn.execute("SAVEPOINT empty")
    for number, (title, description) in enumerate(titles):
        both.insert(number, title, description)
    for text in (query, query[:3], titles[0][0], titles[0][0][2:9], titles[0][1] or ""):
        both.found(text)
    for tx in both.each:
        tx.conn.execute("ROLLBACK TO SAVEPOINT empty")


def test_changed_ticket_is_found_only_by_new_words_and_a_removed_one_not(both: Both) -> None:
    both.insert(1, "parcel lost", "somewhere in Málaga")
    assert both.found("lost malaga") == ["tkt_1"]
    for tx, before in zip(both.each, both.stored["tkt_1"], strict=True):
        tx.save_ticket(before, replace(before, title="refund"))
    assert both.found("lost") == []
    assert both.found("refund malaga") == ["tkt_1"]
    for tx, stored in zip(both.each, both.stored["tkt_1"], strict=True):
        tx.erase_ticket_rows(stored)
    assert both.found("refund") == []
    assert both.each[1].conn.execute("SELECT count(*) FROM ticket_words").fetchone() == (0,)
