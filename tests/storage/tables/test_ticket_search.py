"""The search index drops the words of erased tickets while others are added and removed (ADR 16)."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from deskwire.engine.conversations.commands import ContactRef
from deskwire.engine.conversations.contacts import put_contact
from deskwire.engine.core.actor import SYSTEM, Actor
from deskwire.engine.core.ids import new_id
from deskwire.engine.ports import Transaction
from deskwire.engine.tickets.change import change_ticket, create_ticket, remove_ticket
from deskwire.engine.tickets.ports import TicketFilter, TicketSort
from deskwire.engine.tickets.ticket import Ticket
from deskwire.storage.sqlite.database import connect_writer, migrate
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.scrub import Scrubber
from deskwire.storage.sqlite.ticket_search import SearchMerge
from deskwire.storage.sqlite.transaction import SqliteTransaction
from tests.storage.test_erasure import erasures, left_in, mark, scrubbed
from tests.support.builders import NOON, PROJECT, found_projects, running
from tests.support.seeing import seen

BY = Actor("user", "usr_1", "Ada")
TAIL = 8
"""A marker inside a token, because the index omits the prefix that a word shares with the word before it."""


@pytest.fixture
def tx(tmp_path: Path) -> Iterator[SqliteTransaction]:
    migrate(tmp_path / FILE_NAME)
    opened = SqliteTransaction(connect_writer(tmp_path / FILE_NAME))
    found_projects(opened)
    yield opened
    opened.conn.close()


class History:
    """Tickets that are added, changed and removed, each with words that no other ticket has."""

    def __init__(self, tx: SqliteTransaction, seed: int) -> None:
        self.tx = tx
        self.chance = random.Random(seed)
        self.common = [self.word() for _ in range(500)]
        self.words: dict[int, tuple[Ticket, list[str]]] = {}
        self.erased: list[str] = []

    def word(self) -> str:
        return self.chance.randbytes(10).hex()

    def text(self, own: str) -> str:
        return f"{' '.join(self.chance.choices(self.common, k=self.chance.randint(1, 40)))} {own}"

    def create(self) -> None:
        own = self.word()
        blank = Ticket(new_id("tkt", NOON), PROJECT.rowid, f"{own}", NOON, NOON, NOON)
        ticket = self.tx.insert_ticket(blank)
        self.words[ticket.rowid] = (ticket, [own])
        self.change(ticket.rowid)

    def change(self, rowid: int | None = None) -> None:
        rowid = rowid or self.chance.choice(list(self.words))
        before, words = self.words[rowid]
        own = self.word()
        values = {"title": own, "description": self.text(own)}
        change_ticket(self.tx, PROJECT, before.id, values, BY, NOON, None)
        self.words[rowid] = (before, [*words, own])

    def erase(self) -> None:
        ticket, words = self.words.pop(self.chance.choice(list(self.words)))
        remove_ticket(self.tx, PROJECT, ticket.id, BY, NOON, None)
        self.erased += words

    def commit(self, step: str, count: int) -> None:
        self.tx.conn.execute("BEGIN IMMEDIATE")
        for _ in range(count):
            getattr(self, step)()
        self.tx.conn.execute("COMMIT")

    def go_on(self) -> None:
        self.commit("create", self.chance.choice((1, 1, 3, 40)))
        if self.chance.random() < 0.5:
            self.commit("change", self.chance.choice((1, 5)))


@pytest.mark.parametrize("seed", range(6))
def test_no_word_of_an_erased_ticket_is_left_during_other_changes(
    tx: SqliteTransaction, tmp_path: Path, seed: int
) -> None:
    history = History(tx, seed)
    for _ in range(30):
        history.go_on()
        if len(history.words) > 20 and history.chance.random() < 0.3:
            history.commit("erase", history.chance.choice((1, 5)))
    history.commit("erase", 5)
    file = os.open(tmp_path / FILE_NAME, os.O_RDWR)
    scrubber = Scrubber(tx.conn, file, lambda: 0.0, SearchMerge(tx.conn))
    scrubber.want()
    for _ in range(10_000):
        if not scrubber.due:
            break
        if history.chance.random() < 0.3:
            history.go_on()
        scrubber.step()
    assert not scrubber.due
    assert len(history.erased) > 20
    data = (tmp_path / FILE_NAME).read_bytes()
    assert [word for word in history.erased if word[-TAIL:].encode() in data] == []
    for ticket, words in history.words.values():
        found = tx.tickets(PROJECT.rowid, TicketFilter(text=words[-1]), TicketSort(), None, 2)
        assert [each.rowid for each, _ in found] == [ticket.rowid]
    tx.conn.execute("INSERT INTO ticket_search (ticket_search, rank) VALUES ('integrity-check', 1)")
    os.close(file)


@pytest.mark.thorough
def test_words_leave_the_file_during_continuous_erasures(tx: SqliteTransaction, tmp_path: Path) -> None:
    history = History(tx, 9)
    for _ in range(60):
        history.go_on()
    file = os.open(tmp_path / FILE_NAME, os.O_RDWR)
    clock = [0.0]
    scrubber = Scrubber(tx.conn, file, lambda: clock[0], SearchMerge(tx.conn))
    erased: list[int] = []
    for turn in range(200):
        clock[0] = float(turn)
        history.commit("create", 1)
        history.commit("erase", 1)
        erased.append(len(history.erased))
        scrubber.want()
        scrubber.step()
    os.close(file)
    assert scrubber.since is not None
    assert scrubber.since > 150, "the oldest is not overtaken by those that come after it"
    gone = history.erased[: erased[int(scrubber.since) - 1]]
    data = (tmp_path / FILE_NAME).read_bytes()
    assert [word for word in gone if word[-TAIL:].encode() in data] == []


def test_interrupted_merge_starts_again(tx: SqliteTransaction) -> None:
    history = History(tx, 7)
    for _ in range(80):
        history.go_on()
    history.commit("erase", 5)
    merge = SearchMerge(tx.conn)
    assert not merge.step()
    after_the_crash = SearchMerge(tx.conn)
    for _ in range(1_000):
        if after_the_crash.step():
            break
    assert tx.conn.execute("SELECT merge_due FROM search_upkeep").fetchone() == (0,)
    shadow = b"".join(row[0] for row in tx.conn.execute("SELECT block FROM ticket_search_data"))
    assert [word for word in history.erased if word[-TAIL:].encode() in shadow] == []


def test_a_merge_that_the_disk_refuses_is_undone_and_can_be_repeated(
    tx: SqliteTransaction, tmp_path: Path
) -> None:
    history = History(tx, 8)
    history.go_on()
    history.commit("erase", 1)
    merge = SearchMerge(tx.conn)
    with closing(sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        tx.conn.execute("PRAGMA busy_timeout = 0")
        with pytest.raises(sqlite3.OperationalError):
            merge.step()
        other.execute("ROLLBACK")
    assert not tx.conn.in_transaction
    for _ in range(100):
        if merge.step():
            return
    pytest.fail("the merge does not end")


SECRETS = ("unspeakablesecret", "undisclosedmatter")
"""Words as stored in the index, in lower case."""

TICKET_PLACES = ("title", "oldtitle", "description", "olddescription", "type", "tag", "oldtag", "actor")


async def test_nothing_of_an_erased_contacts_tickets_is_left(tmp_path: Path) -> None:
    """Contract 3, decisions 4: not in rows, not in the log of changes, and not in the search index."""
    async with running(tmp_path) as engine:
        ref = ContactRef("user-1", {})
        contact = await engine.store.write(lambda tx: put_contact(tx, PROJECT, ref, NOON))
        marks = {place: mark(place) for place in TICKET_PLACES}
        by = Actor("user", "usr_1", marks["actor"])
        first = {
            "title": f"{marks['oldtitle']} {SECRETS[0]}",
            "description": marks["olddescription"] * 400,
            "tags": (marks["oldtag"],),
            "contact_id": contact.id,
        }
        second = {
            "title": marks["title"],
            "description": f"{marks['description']} {SECRETS[1]}",
            "type": marks["type"],
            "tags": (marks["tag"],),
        }

        def plant(tx: Transaction) -> None:
            for number in range(250):  # more than one batch of an erasure
                made = create_ticket(tx, PROJECT, new_id("tkt", NOON + number), first, by, NOON)
                change_ticket(tx, PROJECT, made.id, second, by, NOON, None)

        await engine.store.write(plant)
        kept = {"title": "keptwordforever", "description": None}
        await engine.store.write(
            lambda tx: create_ticket(tx, PROJECT, new_id("tkt", NOON), kept, SYSTEM, NOON)
        )
        assert {place for _, place in left_in(tmp_path, TICKET_PLACES)} == set(TICKET_PLACES)
        assert all(_somewhere(tmp_path, word[-TAIL:]) for word in SECRETS)
        async with erasures(engine) as erasing:
            await erasing.erase(PROJECT, "user-1")
        await scrubbed(engine)
        assert left_in(tmp_path, TICKET_PLACES) == []
        assert [word for word in SECRETS if _somewhere(tmp_path, word[-TAIL:])] == []
        assert _somewhere(tmp_path, "keptwordforever"[-TAIL:])
        found = seen(
            engine.store, lambda reader: reader.tickets(PROJECT.rowid, TicketFilter(), TicketSort(), None, 10)
        )
        assert [ticket.title for ticket, _ in found] == ["keptwordforever"]


def _somewhere(directory: Path, word: str) -> bool:
    files = [file for file in directory.iterdir() if file.name.startswith(FILE_NAME)]
    return any(word.encode() in file.read_bytes() for file in files)
