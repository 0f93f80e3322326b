"""Translations: content in several languages (contract 4.6; decisions 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, Field

from deskwire.engine.audit.audited_changes import deleted
from deskwire.engine.core.errors import BadRequest, Invalid, NotFound, Problem
from deskwire.engine.core.text import canonical_language_tag
from deskwire.engine.ports import Transaction
from deskwire.engine.translations.translation import (
    Entry,
    EntryFilter,
    EntryRef,
    EntryType,
    Translation,
    TranslationReader,
    TranslationTransaction,
    entry_view,
    parse_entry_id,
    translation_tag,
    translation_view,
)
from deskwire.http.api.calls import Answer, Call, Tagged
from deskwire.http.api.input.validation import Body, Query, at_most_fields
from deskwire.http.api.pagination import Paged, page
from deskwire.http.api.routing import WHOLE, Routes, Tag, dashboard
from deskwire.http.schemas import content as shapes
from deskwire.http.schemas.base import page_of

B = TypeVar("B", bound=Body)
Q = TypeVar("Q", bound=Query)

routes = Routes(
    Tag("Translations", "Store and fetch content in several languages."),
    unrecorded="It is content: it grants nothing, and is not a setting.",
)
_ALL: Final = "/translations/entries"
_ONE: Final = f"{_ALL}/<path:entry_id>"
_READ: Final = dashboard("translations.read")
_MANAGE: Final = dashboard("translations.manage")


def _tag(text: str) -> str:
    tag = canonical_language_tag(text)
    if tag is None:
        raise ValueError("This is no language tag (BCP 47), such as en or pt-BR.")
    return tag


Language = Annotated[str, AfterValidator(_tag)]
FieldName = Annotated[str, Field(min_length=1, max_length=64)]
FieldText = Annotated[str, Field(max_length=100_000)]


class EntryList(Paged):
    """The filters of a list of entries, and its page: by type, by a language they have, or by one they lack.

    `q` is a part of the entry's id, or of one of its texts in any language; case and accents do not matter.
    """

    type: EntryType | None = None
    language: Language | None = None
    missing: Language | None = None
    q: Annotated[str, Field(min_length=1, max_length=200)] | None = None


class InLanguage(Query):
    """The language to fetch, by default the primary language of the project."""

    language: Language | None = None


class OneLanguage(Query):
    """The language to delete; without one, the whole entry is deleted."""

    language: Language | None = None


class PutTranslationRequest(Body):
    """The content of an entry in one language, by field name. It replaces the stored content."""

    language: Language
    fields: Annotated[dict[FieldName, FieldText], Field(min_length=1, max_length=100), at_most_fields(100)]


@routes.add(
    "GET", _ALL, _READ, operation_id="listEntries", query=EntryList, answer=page_of(shapes.TranslationEntry)
)
async def list_entries(call: Call[Body, EntryList]) -> Answer:
    """List the translatable entries of a project, newest first, without their content."""
    query, project = call.query, call.project.rowid
    before = query.row
    criteria = EntryFilter(query.type, query.language, query.missing, query.q)
    entries = await call.services.store.read(
        lambda reader: reader.entries(project, criteria, before, query.rows)
    )
    return page(query, entries, entry_view, lambda entry: entry.rowid)


@routes.add("GET", "/translations/missing", _READ, operation_id="reportMissing", answer=shapes.MissingReport)
async def report_missing(call: Call[Body, Query]) -> Answer:
    """Count the entries that are translated into each of the project's languages, and those that are not.

    To find the untranslated entries, list the entries with the parameter `missing`.
    """
    project = call.project
    entries, translated = await call.services.store.read(lambda reader: reader.translated(project.rowid))
    languages = (*project.settings.languages, *sorted(translated.keys() - set(project.settings.languages)))
    return {
        "entries": entries,
        "languages": [
            {
                "language": language,
                "translated": translated.get(language, 0),
                "missing": entries - translated.get(language, 0),
            }
            for language in languages
        ],
    }


@routes.add(
    "GET",
    _ONE,
    _READ,
    operation_id="getEntry",
    query=InLanguage,
    answer=shapes.Translation,
    errors=("bad_entry_id", "translation_not_found"),
    tagged=True,
)
async def get_entry(call: Call[Body, InLanguage]) -> Answer:
    """Fetch the content of an entry in one language, by default the primary language of the project.

    Its `ETag` is for `If-Match` of a change in this language.
    """
    language, find = call.query.language or call.project.settings.primary_language, _entry(call)

    def read(reader: TranslationReader) -> tuple[Entry, Translation]:
        entry = find(reader)
        return entry, _translation(reader, entry, language)

    return _tagged(*await call.services.store.read(read))


async def _check_language(call: Call[PutTranslationRequest, Query]) -> None:
    languages = call.project.settings.languages
    if call.body.language is not None and call.body.language not in languages:
        message = f"The project's languages are {', '.join(languages)}."
        raise Invalid(Problem("/language", "unknown_language", message))


@routes.add(
    "PUT",
    _ONE,
    _MANAGE,
    operation_id="putEntry",
    tells="translations",
    body=PutTranslationRequest,
    limit=WHOLE,
    answer=shapes.Translation,
    errors=("bad_entry_id", "changed_meanwhile"),
    further=(_check_language,),
    tagged=True,
)
async def put_entry(call: Call[PutTranslationRequest, Query]) -> Answer:
    """Store the content of an entry in one language. A new entry is created.

    `If-Match` takes the `ETag` of the language; `If-None-Match: *` stores only new content.
    """
    ref, body, project = _ref(call), call.body, call.project.rowid
    await _check_language(call)
    translation = Translation(body.language, body.fields, call.services.clock())

    def put(tx: TranslationTransaction) -> Entry:
        def tag() -> str | None:
            entry = tx.entry(project, ref)
            present = None if entry is None else tx.translation(entry.rowid, body.language)
            return None if entry is None or present is None else translation_tag(entry, present)

        call.seen.check(tag)
        return tx.put_translation(project, ref, translation)

    return _tagged(await call.services.store.write(put), translation)


@routes.add(
    "DELETE",
    _ONE,
    _MANAGE,
    operation_id="deleteEntry",
    tells="translations",
    query=OneLanguage,
    answer=shapes.DeletedEntry,
    errors=("bad_entry_id", "translation_not_found"),
    records=("translation.deleted",),
)
async def delete_entry(call: Call[Body, OneLanguage]) -> Answer:
    """Delete an entry, or one language of it. Deleting the last language deletes the entry."""
    find, language = _entry(call), call.query.language

    def delete(tx: Transaction) -> Entry:
        entry = find(tx)
        if language is None:
            tx.delete_entry(entry)
        else:
            _translation(tx, entry, language)
            tx.delete_translation(entry, language)
        tx.record(deleted("translation", entry.ref.entry_id, call.project.rowid, language=language))
        return entry

    entry = await call.services.store.write(delete)
    gone: dict[str, Any] = {"entryId": entry.ref.entry_id, "id": entry.ref.key, "deleted": True}
    return gone if language is None else {**gone, "language": language}


def _tagged(entry: Entry, translation: Translation) -> Tagged:
    return Tagged(translation_view(entry, translation), translation_tag(entry, translation))


def _ref(call: Call[B, Q]) -> EntryRef:
    """Return the entry in the path. Raises BadRequest."""
    try:
        return parse_entry_id(call.path["entry_id"])
    except ValueError as error:
        raise BadRequest(str(error), code="bad_entry_id") from None


def _entry(call: Call[B, Q]) -> Callable[[TranslationReader], Entry]:
    """Return a query for the entry in the path, which raises NotFound."""
    ref, project = _ref(call), call.project.rowid

    def find(reader: TranslationReader) -> Entry:
        entry = reader.entry(project, ref)
        if entry is None:
            raise NotFound("There is no such entry.", code="entry_not_found")
        return entry

    return find


def _translation(reader: TranslationReader, entry: Entry, language: str) -> Translation:
    found = reader.translation(entry.rowid, language)
    if found is None:
        there = ", ".join(entry.languages)
        raise NotFound(
            f"The entry is not there in {language}, only in: {there}.", code="translation_not_found"
        )
    return found
