"""Content in several languages: entries and their ids (contract 2.8, 4.6; decisions 7)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Protocol, get_args

from msgspec import Struct

from deskwire.engine.core.clock import iso
from deskwire.engine.core.values import entity_tag

EntryType = Literal["article", "collection", "emailtemplate", "statictranslation"]

_CONTENT_ID: Final = re.compile(r"[0-9a-f]{24}")
_KEY_MAX: Final = 200


class EntryRef(Struct, frozen=True):
    """A reference to an entry: its type, and its key within that."""

    type: EntryType
    key: str

    @property
    def entry_id(self) -> str:
        """The reference as text: `<type>:<id>`."""
        return f"{self.type}:{self.key}"


def parse_entry_id(text: str) -> EntryRef:
    """Read `<type>:<id>`. Raises ValueError with the reason if the text is invalid."""
    kind, colon, key = text.partition(":")
    if not colon or kind not in get_args(EntryType):
        kinds = ", ".join(get_args(EntryType))
        raise ValueError(f"An entry id reads <type>:<id>, where the type is one of {kinds}.")
    if kind != "statictranslation" and not _CONTENT_ID.fullmatch(key):
        raise ValueError(f"The id of an entry of type {kind} is 24 lowercase hexadecimal digits.")
    if not 1 <= len(key) <= _KEY_MAX or not key.isprintable():
        raise ValueError(f"A translation key has 1 to {_KEY_MAX} printable characters.")
    return EntryRef(kind, key)  # type: ignore[arg-type]  # checked above


class Entry(Struct, frozen=True):
    """An entry with its languages, in alphabetical order. The time is in milliseconds."""

    rowid: int
    ref: EntryRef
    languages: Sequence[str]
    updated_at: int


class Translation(Struct, frozen=True):
    """The texts of an entry in one language, by field name. The time is in milliseconds."""

    language: str
    fields: Mapping[str, str]
    updated_at: int


class EntryFilter(Struct, frozen=True):
    """A filter of entries: of a type, in a language, or missing in one, with words in the key or a text. None means any."""

    type: EntryType | None = None
    language: str | None = None
    missing: str | None = None
    words: str | None = None


def entry_view(entry: Entry) -> dict[str, Any]:
    """Return the entry as lists show it, without its content."""
    return {
        "entryId": entry.ref.entry_id,
        "type": entry.ref.type,
        "id": entry.ref.key,
        "languages": list(entry.languages),
        "updatedAt": iso(entry.updated_at),
    }


def translation_view(entry: Entry, translation: Translation) -> dict[str, Any]:
    """Return the entry with its content in one language."""
    return {
        "entryId": entry.ref.entry_id,
        "type": entry.ref.type,
        "id": entry.ref.key,
        "language": translation.language,
        "languages": list(entry.languages),
        "fields": dict(translation.fields),
        "updatedAt": iso(translation.updated_at),
    }


def translation_tag(entry: Entry, translation: Translation) -> str:
    """Return the tag of an entry's content in one language. Another language is no change that anybody could overwrite."""
    view = translation_view(entry, translation)
    return entity_tag({name: view[name] for name in ("entryId", "language", "fields")})


class TranslationReader(Protocol):
    """Queries on entries."""

    def entries(self, project: int, wanted: EntryFilter, before: int | None, limit: int) -> Sequence[Entry]:
        """Return entries, newest first, with a `rowid` smaller than `before`."""

    def entry(self, project: int, ref: EntryRef) -> Entry | None:
        """Return the entry, with its languages."""

    def translation(self, entry: int, language: str) -> Translation | None:
        """Return the texts of an entry in one language."""

    def translated(self, project: int) -> tuple[int, Mapping[str, int]]:
        """Count the entries, and those in each language."""


class TranslationTransaction(TranslationReader, Protocol):
    """Changes of entries."""

    def put_translation(self, project: int, ref: EntryRef, translation: Translation) -> Entry:
        """Store the texts of an entry in one language, in place of the present ones; make the entry if it is new."""

    def delete_translation(self, entry: Entry, language: str) -> None:
        """Remove one language; the entry, too, if it was the last."""

    def delete_entry(self, entry: Entry) -> None:
        """Remove an entry in all its languages."""
