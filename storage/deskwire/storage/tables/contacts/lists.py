"""Lists of contacts: all of a project, or those that are found by beginnings of words.

A term that few words begin with leads to its contacts, and the others are looked up for each. If all are common, the newest
contacts are gone through, as a page is full soon.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deskwire.engine.contacts.contact import Contact
from deskwire.storage.dialect import either
from deskwire.storage.tables.base import Queries
from deskwire.storage.tables.contacts.contacts import CONTACT_COLUMNS, contact_of

_ROWID_MAX: Final = (1 << 63) - 1
_LAST: Final = chr(0x10FFFF)
"""The largest character: behind a term it bounds the words that begin with it."""

_MANY: Final = 20_000
"""The words from which on a term is common."""

_HAS_WORD: Final = (
    "EXISTS (SELECT 1 FROM contact_words w "
    "WHERE w.contact = k.rowid AND w.project = k.project AND w.word >= ? AND w.word < ?)"
)
_ALL: Final = either("k.project = ?")
_AMONG: Final = either("{unindexed}k.project = ?")
"""Not by the way through all contacts."""


def _range(term: str) -> tuple[str, str]:
    return term, f"{term}{_LAST}"


class ContactListReads(Queries):
    """The query of `contacts.ports.ContactReader` for lists."""

    def contacts(
        self, project: int, terms: Sequence[str], before: int | None, limit: int
    ) -> Sequence[Contact]:
        by_frequency = sorted((self._frequency(project, term), term) for term in terms)
        few = [term for count, term in by_frequency[:1] if count < _MANY]
        where: list[str] = []
        values: list[object] = []
        if few:
            where.append(
                "k.rowid IN (SELECT contact FROM contact_words WHERE project = ? AND word >= ? AND word < ?)"
            )
            values += [project, *_range(few[0])]
        for _, term in by_frequency[len(few) :]:
            where.append(_HAS_WORD)
            values += _range(term)
        rows = self.conn.execute(
            f"SELECT {CONTACT_COLUMNS} FROM contacts k WHERE {(_AMONG if few else _ALL)[self.dialect]} "
            f"AND k.erasing = 0 AND k.rowid < ? {''.join(f'AND {each} ' for each in where)}ORDER BY k.rowid DESC LIMIT ?",
            (project, _ROWID_MAX if before is None else before, *values, limit),
        )
        return [contact_of(row) for row in rows]

    def _frequency(self, project: int, term: str) -> int:
        """Count the words that begin with the term, up to _MANY."""
        row = self.conn.execute(
            "SELECT count(*) FROM (SELECT 1 FROM contact_words WHERE project = ? AND word >= ? AND word < ? LIMIT ?) AS words",
            (project, *_range(term), _MANY),
        ).fetchone()
        return int(row[0])
