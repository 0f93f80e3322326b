"""Lists of contacts: the same as a check of each contact, whether a term is common or rare."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlite_utils import Database

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.contacts.ports import ContactFilter, ContactSort, ListedContact
from deskwire.engine.contacts.search_terms import search_terms, search_words
from deskwire.engine.core.values import replace
from deskwire.storage.sqlite.database import connect_reader, migrate
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.migrations.apply import migrations
from deskwire.storage.sqlite.transaction import SqliteReader
from deskwire.storage.tables.contacts import lists
from tests.support.builders import OTHER_PROJECT, PROJECT
from tests.support.shortcuts import migrated_step_by_step


def insert(tx: Any, number: int, name: str | None, project: int = PROJECT.rowid) -> Contact:
    """Store a contact and return it."""
    stored: Contact = tx.insert_contact(project, Contact(0, f"con_{number}", f"u{number}", 0, 0, name))
    return stored


def paged(tx: Any, wanted: ContactFilter, sort: ContactSort, limit: int) -> list[Contact]:
    """Return all contacts of a list, read page by page."""
    listed: list[ListedContact] = []
    while page := tx.listed_contacts(PROJECT.rowid, wanted, sort, listed[-1].at if listed else None, limit):
        assert len(page) <= limit
        listed += page
    return [each.contact for each in listed]


names = st.none() | st.lists(st.sampled_from(["Ada", "Adam", "Bea", "Ber"]), max_size=2).map(" ".join)
searches = st.lists(st.sampled_from(["a", "ad", "ada", "adam", "b", "u1", "x"]), max_size=3).map(" ".join)
settled = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@settled
@given(st.lists(names, max_size=12), searches, st.sampled_from((0, 3, 20_000)), st.integers(1, 4))
def test_a_page_has_the_newest_that_have_a_word_for_each_term(
    tx: Any, given_names: list[str | None], text: str, many: int, limit: int
) -> None:
    tx.conn.execute("SAVEPOINT one")
    made = [insert(tx, number, name) for number, name in enumerate(given_names)]
    insert(tx, 99, "Ada Bea", OTHER_PROJECT.rowid)
    terms = search_terms(text)
    fitting = [
        contact
        for contact in reversed(made)
        if all(
            any(word.startswith(term) for word in search_words(contact.user_id, contact.name, None))
            for term in terms
        )
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lists, "UNSELECTIVE_ROWS", many)
        listed = paged(tx, ContactFilter(terms=terms), ContactSort(), limit)
    tx.conn.execute("ROLLBACK TO one")
    assert listed == fitting


def test_a_contact_keeps_just_the_words_that_it_has_now(tx: Any) -> None:
    contact = insert(tx, 1, "Ada Byron")
    tx.save_contact(replace(contact, name="Ada Lovelace", email="ada@shop.example"))
    words = {word for (word,) in tx.conn.execute("SELECT word FROM contact_words")}
    assert words == search_words("u1", "Ada Lovelace", "ada@shop.example")
    tx.erase_contact_row(contact.rowid)
    assert tx.conn.execute("SELECT count(*) FROM contact_words").fetchone() == (0,)


def test_one_whose_erasure_has_begun_is_not_listed(tx: Any) -> None:
    contact = insert(tx, 1, "Ada")
    tx.mark_erasing(contact.rowid)
    assert tx.contacts(PROJECT.rowid, (), 9) == tx.contacts(PROJECT.rowid, ("ada",), 9) == []


@pytest.mark.sqlite
def test_contacts_from_before_there_were_words_can_be_found(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    with migrated_step_by_step(), closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrations.apply(Database(connection, execute_plugins=False), stop_before="m0021_finding_contacts")
        connection.execute(
            "INSERT INTO organisations (rowid, id, name, created_at) VALUES (1, 'org_1', 'Acme', 0)"
        )
        connection.execute(
            "INSERT INTO projects (rowid, id, organisation, name, stream_key, created_at) "
            "VALUES (1, 'prj_1', 1, 'Shop', 'key', 0)"
        )
        connection.execute(
            "INSERT INTO contacts (id, project, user_id, name, email, created_at, updated_at) "
            "VALUES ('con_1', 1, 'u1', 'J\u00f6rg M\u00fcller', 'jm@shop.example', 0, 0)"
        )
        migrate(path)
    with closing(connect_reader(path)) as connection:
        reader = SqliteReader(connection)
        for term in ("muller", "shop.e", "u1"):
            assert [each.id for each in reader.contacts(1, (term,), 9)] == ["con_1"]
