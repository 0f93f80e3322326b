"""Translations and memory as the API shows them (decisions 7)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from deskwire.engine.translations.translation import EntryType
from deskwire.http.schemas.base import Count, Listed, MemoryId, Moment, Shape

EntryId = Annotated[
    str,
    Field(
        description="`<type>:<id>`: the type and an id of 24 hex digits, or for `statictranslation` a key.",
        examples=["statictranslation:checkout.title"],
    ),
]
EntryKey = Annotated[str, Field(examples=["checkout.title"])]
Language = Annotated[str, Field(description="BCP 47.", examples=["en"])]


class Entry(Shape):
    """A translatable entry, without its content."""

    entry_id: EntryId
    type: EntryType
    id: EntryKey
    languages: list[Language]
    updated_at: Moment


class Translation(Entry):
    """An entry with its content in one language."""

    language: Language
    fields_: Annotated[dict[str, str], Field(alias="fields", examples=[{"text": "Checkout"}])]


class DeletedEntry(Shape):
    """An entry, or with `language` one language of it, is removed."""

    entry_id: EntryId
    id: EntryKey
    deleted: Annotated[bool, Field(json_schema_extra={"const": True})]
    language: Language | None = None


class LanguageProgress(Shape):
    """How many entries a language has and lacks."""

    language: Language
    translated: Count
    missing: Annotated[int, Field(ge=0, examples=[0])]


class MissingReport(Shape):
    """How far the project is translated."""

    entries: Count
    languages: list[LanguageProgress]


class MemoryOff(Shape):
    """The project has switched memory off (contract 2.6). It is no failure of the caller's."""

    ok: Annotated[bool, Field(json_schema_extra={"const": False})]
    reason: Literal["disabled"]


class MemoryEntry(Shape):
    """Something that is remembered of a contact."""

    id: MemoryId
    name: Annotated[str, Field(examples=["shoe size"])]
    content: Annotated[str, Field(examples=["43"])]
    description: Annotated[str, Field(examples=["Said in a chat."])] | None
    created_at: Moment
    updated_at: Moment


class KnownMemoryEntry(MemoryEntry):
    """The memory entry that was asked for, made or changed."""

    ok: Annotated[bool, Field(json_schema_extra={"const": True})]


class MemoryPage(Listed):
    """A page of what is remembered of a contact. `reason` says why nothing is."""

    items: list[MemoryEntry]
    ok: Annotated[bool, Field(examples=[True])]
    reason: Literal["disabled"] | None = None


class MemoryCleared(Shape):
    """How many memory entries were removed (contract 2.6)."""

    ok: Annotated[bool, Field(examples=[True])]
    consolidation_enqueued: bool
    entries: Count
    reason: Literal["disabled"] | None = None


class MemoryEntryDeleted(Shape):
    """A memory entry is removed."""

    ok: Annotated[bool, Field(json_schema_extra={"const": True})]
    id: MemoryId
    deleted: Annotated[bool, Field(json_schema_extra={"const": True})]
