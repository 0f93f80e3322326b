"""The words that contacts are found by, and the order of their list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from deskwire.engine.contacts.search_terms import search_words

if TYPE_CHECKING:
    from sqlite_utils import Database

SQL: Final = """
-- The second index is for those of a contact: they go with it, whatever the program would make of its name by then.
CREATE TABLE contact_words (
    project INTEGER NOT NULL, word TEXT NOT NULL, contact INTEGER NOT NULL REFERENCES contacts,
    PRIMARY KEY (project, word, contact)
) STRICT, WITHOUT ROWID;
CREATE INDEX contact_words_by_contact ON contact_words (contact);
CREATE INDEX contacts_by_project ON contacts (project) WHERE erasing = 0;
"""


def fill(db: Database) -> None:
    """Write the words of the contacts that there are."""
    db.conn.executemany("INSERT INTO contact_words VALUES (?, ?, ?)", _words(db))


def _words(db: Database) -> Iterator[tuple[int, str, int]]:
    rows = db.conn.execute("SELECT project, rowid, user_id, name, email, phone FROM contacts").fetchall()
    for project, rowid, *identity in rows:
        for word in search_words(*identity):
            yield project, word, rowid
