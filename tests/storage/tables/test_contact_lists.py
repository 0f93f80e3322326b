"""Lists of contacts: the same as looking at each by hand, whether a term is common or rare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.contacts.words import terms_of, words_of
from deskwire.storage.database import FILE_NAME, connect_writer, migrate
from deskwire.storage.tables.contacts import lists
from deskwire.storage.transaction import SqliteTransaction
from tests.support.builders import OTHER_PROJECT, PROJECT, found_projects


@pytest.fixture
def tx(tmp_path: Path) -> Iterator[SqliteTransaction]:
    migrate(tmp_path / FILE_NAME)
    opened = SqliteTransaction(connect_writer(tmp_path / FILE_NAME))
    found_projects(opened)
    yield opened
    opened.conn.close()


def insert(tx: SqliteTransaction, number: int, name: str | None, project: int = PROJECT.rowid) -> Contact:
    """Store a contact; returns it."""
    return tx.insert_contact(project, Contact(0, f"con_{number}", f"u{number}", 0, 0, name))


names = st.none() | st.lists(st.sampled_from(["Ada", "Adam", "Bea", "Ber"]), max_size=2).map(" ".join)
searches = st.lists(st.sampled_from(["a", "ad", "ada", "adam", "b", "u1", "x"]), max_size=3).map(" ".join)
settled = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@settled
@given(st.lists(names, max_size=12), searches, st.sampled_from((0, 3, 20_000)), st.integers(1, 4))
def test_a_page_has_the_newest_that_have_a_word_for_each_term(
    tx: SqliteTransaction, given_names: list[str | None], text: str, many: int, limit: int
) -> None:
    tx.conn.execute("SAVEPOINT one")
    made = [insert(tx, number, name) for number, name in enumerate(given_names)]
    insert(tx, 99, "Ada Bea", OTHER_PROJECT.rowid)
    terms = terms_of(text)
    fitting = [
        contact
        for contact in reversed(made)
        if all(
            any(word.startswith(term) for word in words_of(contact.user_id, contact.name, None))
            for term in terms
        )
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lists, "_MANY", many)
        listed: list[Contact] = []
        while page := tx.contacts(PROJECT.rowid, terms, listed[-1].rowid if listed else None, limit):
            assert len(page) <= limit
            listed += page
    tx.conn.execute("ROLLBACK TO one")
    assert listed == fitting


def test_a_contact_keeps_just_the_words_that_it_has_now(tx: SqliteTransaction) -> None:
    contact = insert(tx, 1, "Ada Byron")
    tx.save_contact(replace(contact, name="Ada Lovelace", email="ada@shop.example"))
    words = {word for (word,) in tx.conn.execute("SELECT word FROM contact_words")}
    assert words == words_of("u1", "Ada Lovelace", "ada@shop.example")
    tx.erase_contact_row(contact.rowid)
    assert tx.conn.execute("SELECT count(*) FROM contact_words").fetchone() == (0,)


def test_one_whose_erasure_has_begun_is_not_listed(tx: SqliteTransaction) -> None:
    contact = insert(tx, 1, "Ada")
    tx.mark_erasing(contact.rowid)
    assert tx.contacts(PROJECT.rowid, (), None, 9) == tx.contacts(PROJECT.rowid, ("ada",), None, 9) == []
