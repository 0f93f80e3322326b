"""Translatable entries and their texts by language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from deskwire.engine.translations.translation import Entry, EntryFilter, EntryRef, Translation
from deskwire.storage.dialect import differing, either
from deskwire.storage.folded_patterns import contains
from deskwire.storage.tables.base import Changes, Queries

_LANGUAGES: Final = differing(
    sqlite="SELECT group_concat(language) FROM (SELECT language FROM translations WHERE entry = e.rowid ORDER BY 1)",
    postgres="SELECT string_agg(language, ',' ORDER BY language) FROM translations WHERE entry = e.rowid",
)
_ENTRY: Final = either(
    "SELECT e.rowid, e.type, e.key, e.updated_at, ({languages}) FROM entries e", languages=_LANGUAGES
)
_TEXTS: Final = differing(
    sqlite="json_each(t.fields) f",
    postgres=r"json_each_text(CAST(replace(t.fields, '\u0000', '\u0020') AS json)) f",
)
"""The texts of a translation `t`."""


class TranslationReads(Queries):
    """The methods are those of `engine.translations.translation.TranslationReader`."""

    def entries(self, project: int, wanted: EntryFilter, before: int | None, limit: int) -> Sequence[Entry]:
        there = "EXISTS (SELECT 1 FROM translations WHERE entry = e.rowid AND language = ?)"
        conditions = [
            ("e.project = ?", project),
            ("e.rowid < ?", before),
            ("e.type = ?", wanted.type),
            (there, wanted.language),
            (f"NOT {there}", wanted.missing),
        ]
        chosen = [(condition, value) for condition, value in conditions if value is not None]
        where = " AND ".join(condition for condition, _ in chosen)
        values: list[Any] = [value for _, value in chosen]
        if wanted.words is not None:
            condition, some = self._with_words(wanted.words)
            where += f" AND {condition}"
            values += some
        rows = self.conn.execute(
            f"{_ENTRY[self.dialect]} WHERE {where} ORDER BY e.rowid DESC LIMIT ?", (*values, limit)
        )
        return [_entry_of(row) for row in rows]

    def _with_words(self, words: str) -> tuple[str, tuple[Any, ...]]:
        """Return the condition that an entry has words in its key or in a text, with its values."""
        key, values = contains(self.dialect, "e.key", words)
        text, some = contains(self.dialect, "f.value", words)
        condition = (
            f"SELECT 1 FROM translations t JOIN {_TEXTS[self.dialect]} ON {text} WHERE t.entry = e.rowid"
        )
        return f"({key} OR EXISTS ({condition}))", (*values, *some)

    def entry(self, project: int, ref: EntryRef) -> Entry | None:
        row = self.conn.execute(
            f"{_ENTRY[self.dialect]} WHERE e.project = ? AND e.type = ? AND e.key = ?",
            (project, ref.type, ref.key),
        ).fetchone()
        return None if row is None else _entry_of(row)

    def translation(self, entry: int, language: str) -> Translation | None:
        row = self.conn.execute(
            "SELECT fields, updated_at FROM translations WHERE entry = ? AND language = ?", (entry, language)
        ).fetchone()
        return None if row is None else Translation(language, orjson.loads(row[0]), row[1])

    def translated(self, project: int) -> tuple[int, Mapping[str, int]]:
        entries = self.conn.execute("SELECT count(*) FROM entries WHERE project = ?", (project,)).fetchone()
        languages = self.conn.execute(
            "SELECT t.language, count(*) FROM entries e JOIN translations t ON t.entry = e.rowid "
            "WHERE e.project = ? GROUP BY t.language",
            (project,),
        )
        return entries[0], dict(languages.fetchall())


class TranslationWrites(TranslationReads, Changes):
    """The methods are those of `engine.translations.translation.TranslationTransaction`."""

    def put_translation(self, project: int, ref: EntryRef, translation: Translation) -> Entry:
        rowid = self.conn.execute(
            "INSERT INTO entries (project, type, key, updated_at) VALUES (?1, ?2, ?3, ?4) "
            "ON CONFLICT (project, type, key) DO UPDATE SET updated_at = excluded.updated_at RETURNING rowid",
            (project, ref.type, ref.key, translation.updated_at),
        ).fetchone()[0]
        self.conn.execute(
            "INSERT INTO translations (entry, language, fields, updated_at) VALUES (?1, ?2, ?3, ?4) "
            "ON CONFLICT (entry, language) DO UPDATE SET fields = ?3, updated_at = ?4",
            (
                rowid,
                translation.language,
                orjson.dumps(dict(translation.fields)).decode(),
                translation.updated_at,
            ),
        )
        entry = self.entry(project, ref)
        assert entry is not None, "it was just put"
        return entry

    def delete_translation(self, entry: Entry, language: str) -> None:
        if list(entry.languages) == [language]:
            self.delete_entry(entry)
            return
        self.conn.execute(
            "DELETE FROM translations WHERE entry = ? AND language = ?", (entry.rowid, language)
        )

    def delete_entry(self, entry: Entry) -> None:
        self.conn.execute("DELETE FROM translations WHERE entry = ?", (entry.rowid,))
        self.conn.execute("DELETE FROM entries WHERE rowid = ?", (entry.rowid,))


def _entry_of(row: Sequence[Any]) -> Entry:
    rowid, kind, key, updated_at, languages = row
    return Entry(rowid, EntryRef(kind, key), languages.split(","), updated_at)
