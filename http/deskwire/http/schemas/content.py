"""Translations and memory as the API shows them (decisions 7)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from deskwire.engine.translations.translation import EntryType
from deskwire.http.schemas.base import Count, Listed, MemoryId, Moment, Shape

EntryId = Annotated[
    str,
    Field(
        description="The type and id, as `<type>:<id>`. The id has 24 hex digits; that of a `statictranslation` is a key.",
        examples=["statictranslation:checkout.title"],
    ),
]
EntryKey = Annotated[str, Field(examples=["checkout.title"])]
Language = Annotated[str, Field(description="A language tag (BCP 47).", examples=["en"])]


class TranslationEntry(Shape):
    """A translatable entry, without its content."""

    entry_id: EntryId
    type: EntryType
    id: EntryKey
    languages: list[Language]
    updated_at: Moment


class Translation(TranslationEntry):
    """An entry with its content in one language."""

    language: Language
    fields_: Annotated[dict[str, str], Field(alias="fields", examples=[{"text": "Checkout"}])]


class DeletedEntry(Shape):
    """The confirmation that an entry, or only its translation into `language`, is deleted."""

    entry_id: EntryId
    id: EntryKey
    deleted: Annotated[bool, Field(json_schema_extra={"const": True})]
    language: Language | None = None


class LanguageProgress(Shape):
    """The numbers of entries with and without a translation into a language."""

    language: Language
    translated: Count
    missing: Annotated[int, Field(ge=0, examples=[0])]


class MissingReport(Shape):
    """The progress of a project's translation."""

    entries: Count
    languages: list[LanguageProgress]


class MemoryDisabled(Shape):
    """The response if the project has disabled memory (contract 2.6). It is not an error of the caller."""

    ok: Annotated[bool, Field(json_schema_extra={"const": False})]
    reason: Literal["disabled"]


class MemoryEntry(Shape):
    """A memory entry: a named note about a contact."""

    id: MemoryId
    name: Annotated[str, Field(examples=["shoe size"])]
    content: Annotated[str, Field(examples=["43"])]
    description: Annotated[str, Field(examples=["Said in a chat."])] | None
    created_at: Moment
    updated_at: Moment


class MemoryEntryResult(MemoryEntry):
    """The memory entry that was fetched, stored or changed."""

    ok: Annotated[bool, Field(json_schema_extra={"const": True})]


class MemoryPage(Listed):
    """A page of the memory entries of a contact. `reason` is set if the project has disabled memory."""

    items: list[MemoryEntry]
    ok: Annotated[bool, Field(examples=[True])]
    reason: Literal["disabled"] | None = None


class MemoryCleared(Shape):
    """The confirmation that memory entries are deleted, with their number (contract 2.6)."""

    ok: Annotated[bool, Field(examples=[True])]
    consolidation_enqueued: bool
    entries: Count
    reason: Literal["disabled"] | None = None


class MemoryEntryDeleted(Shape):
    """The confirmation that a memory entry is deleted."""

    ok: Annotated[bool, Field(json_schema_extra={"const": True})]
    id: MemoryId
    deleted: Annotated[bool, Field(json_schema_extra={"const": True})]
