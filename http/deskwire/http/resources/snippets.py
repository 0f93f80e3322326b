"""Snippets: prepared texts for replies (ADR 19)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.teams import Team, TeamReader
from deskwire.engine.audit.audited_changes import deleted
from deskwire.engine.core.errors import Conflict, Invalid, NotFound, Problem
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.text import MESSAGE_TEXT_MAX, canonical_language_tag
from deskwire.engine.core.values import replace
from deskwire.engine.events.project_events import append_internal_event, settings_changed
from deskwire.engine.ports import Transaction
from deskwire.engine.snippets.snippet import (
    PLACEHOLDERS,
    SNIPPETS_MAX,
    Editor,
    Snippet,
    SnippetAuthor,
    SnippetReader,
    snippet_view,
    unknown_placeholders,
)
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import NOT_BLANK, Body, Query, given_fields, matching, nulls
from deskwire.http.api.pagination import Paged, page
from deskwire.http.api.routing import LARGE, Routes, Tag, dashboard, personal
from deskwire.http.resources.fields import Name
from deskwire.http.schemas import snippets as shapes
from deskwire.http.schemas.base import Deleted, page_of

routes = Routes(
    Tag("Snippets", "Keep texts that agents insert into replies by a shortcut."),
    unrecorded="It is content: it grants nothing, is not a setting, and names its author.",
)
_ALL: Final = "/snippets"
_ONE: Final = "/snippets/<snippet_id>"
_READ: Final = dashboard("conversations.read")
_MANAGE: Final = personal(dashboard("snippets.manage"))
_NULLABLE: Final = ("language", "team_id")


def _placeholders(text: str) -> str:
    unknown = ", ".join(f"{{{name}}}" for name in unknown_placeholders(text))
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        message = "There is no placeholder {unknown}. There are: {known}."
        raise PydanticCustomError("unknown_placeholder", message, {"unknown": unknown, "known": known})
    return text


def _tag(text: str) -> str:
    tag = canonical_language_tag(text)
    if tag is None:
        raise ValueError("This is not a language tag (BCP 47), such as en or pt-BR.")
    return tag


Shortcut = Annotated[
    str,
    Field(min_length=1, max_length=40),
    *matching("[a-z0-9._-]+", "A shortcut has lower-case letters a to z, digits, `.`, `_` and `-`."),
]
Text = Annotated[
    str, Field(min_length=1, max_length=MESSAGE_TEXT_MAX), NOT_BLANK, AfterValidator(_placeholders)
]
Language = Annotated[str, AfterValidator(_tag)]
TeamId = Annotated[str, Field(min_length=1, max_length=40)]


class CreateSnippetRequest(Body):
    """The new snippet. `text` may have the placeholders {contact.name} and {agent.name}. `teamId` is its team, if any."""

    shortcut: Shortcut
    title: Name
    text: Text
    language: Language | None = None
    team_id: TeamId | None = None


class ChangeSnippetRequest(Body):
    """The fields to change. Null clears `language` and `teamId`."""

    shortcut: Shortcut | None = None
    title: Name | None = None
    text: Text | None = None
    language: Language | None = None
    team_id: TeamId | None = None


async def _check_team(call: Call[Any, Query]) -> None:
    await call.services.store.read(InlineQuery(lambda reader: _team(reader, call.project, call.body.team_id)))


@routes.add(
    "POST",
    _ALL,
    _MANAGE,
    operation_id="createSnippet",
    body=CreateSnippetRequest,
    limit=LARGE,
    answer=shapes.Snippet,
    errors=("snippet_shortcut_taken", "snippet_limit_reached"),
    idempotent=True,
    further=(_check_team,),
)
async def create_snippet(call: Call[CreateSnippetRequest, Query]) -> Answer:
    """Create a snippet. A team's snippet can be created by a member, or with the permission `projects.manage`."""
    body, now, project = call.body, call.services.clock(), call.project
    snippet_id, author = new_id("snp", now), SnippetAuthor(call.user.rowid, call.user.id, call.user.name)

    def create(tx: Transaction) -> Snippet:
        _editor(call).check_team(_team(tx, project, body.team_id))
        if tx.count_snippets(project.rowid) >= SNIPPETS_MAX:
            raise Conflict(f"A project has at most {SNIPPETS_MAX:,} snippets.", code="snippet_limit_reached")
        fields = (body.shortcut, body.title, body.text, body.language, body.team_id)
        snippet = Snippet(0, snippet_id, project.rowid, *fields, author, now, now)
        _check_shortcut(tx, snippet)
        _tell(tx, call, snippet)
        return tx.insert_snippet(snippet)

    return await call.commit(create, snippet_view)


@routes.add("GET", _ALL, _READ, operation_id="listSnippets", query=Paged, answer=page_of(shapes.Snippet))
async def list_snippets(call: Call[Body, Paged]) -> Answer:
    """List the snippets of a project, newest first."""
    query, before = call.query, call.query.row
    snippets = await call.services.store.read(
        lambda reader: reader.snippets(call.project.rowid, before, query.rows)
    )
    return page(query, snippets, snippet_view, lambda snippet: snippet.rowid)


@routes.add("GET", _ONE, _READ, operation_id="getSnippet", answer=shapes.Snippet)
async def get_snippet(call: Call[Body, Query]) -> Answer:
    """Fetch a snippet."""
    return snippet_view(await call.services.store.read(InlineQuery(lambda reader: _find(reader, call))))


@routes.add(
    "PATCH",
    _ONE,
    _MANAGE,
    operation_id="changeSnippet",
    body=ChangeSnippetRequest,
    limit=LARGE,
    answer=shapes.Snippet,
    errors=("snippet_shortcut_taken",),
    further=(nulls(*_NULLABLE), _check_team),
)
async def change_snippet(call: Call[ChangeSnippetRequest, Query]) -> Answer:
    """Change a snippet. If it is neither yours nor of one of your teams, you need the permission `projects.manage`."""
    given, now = given_fields(call.body, frozenset(_NULLABLE)), call.services.clock()

    def change(tx: Transaction) -> Snippet:
        before = _checked(tx, call)
        if given.get("team_id", before.team_id) != before.team_id:
            _editor(call).check_team(_team(tx, call.project, given["team_id"]))
        after = replace(before, **given)
        if after == before:
            return before
        _check_shortcut(tx, after)
        after = replace(after, updated_at=now)
        tx.save_snippet(after)
        _tell(tx, call, after)
        return after

    return snippet_view(await call.services.store.write(change))


@routes.add(
    "DELETE",
    _ONE,
    _MANAGE,
    operation_id="deleteSnippet",
    answer=Deleted,
    records=("snippet.deleted",),
)
async def delete_snippet(call: Call[Body, Query]) -> Answer:
    """Delete a snippet. If it is neither yours nor of one of your teams, you need the permission `projects.manage`."""

    def delete(tx: Transaction) -> Snippet:
        snippet = _checked(tx, call)
        tx.delete_snippet(snippet)
        _tell(tx, call, snippet)
        tx.record(deleted("snippet", snippet.id, call.project.rowid))
        return snippet

    snippet = await call.services.store.write(delete)
    return {"id": snippet.id, "deleted": True}


def _tell(tx: Transaction, call: Call[Any, Any], snippet: Snippet) -> None:
    draft = settings_changed("snippets", snippet.id)
    append_internal_event(tx, call.project, draft, None, call.services.clock())


def _editor(call: Call[Any, Any]) -> Editor:
    return Editor(call.user.rowid, call.access.permissions)


def _find(reader: SnippetReader, call: Call[Any, Any]) -> Snippet:
    snippet = reader.snippet(call.project.rowid, call.path["snippet_id"])
    if snippet is None:
        raise NotFound("There is no such snippet.", code="snippet_not_found")
    return snippet


def _checked(reader: SnippetReader, call: Call[Any, Any]) -> Snippet:
    """Return the snippet in the path. Raises NotFound, and Forbidden if the caller may not change it."""
    snippet = _find(reader, call)
    _editor(call).check_change(snippet, _team(reader, call.project, snippet.team_id))
    return snippet


def _team(reader: TeamReader, project: Project, team_id: str | None) -> Team | None:
    """Return the team; None without an id. Raises Invalid for an unknown team."""
    team = None if team_id is None else reader.team(project.rowid, team_id)
    if team_id is not None and team is None:
        raise Invalid(Problem("/teamId", "unknown", "There is no such team in this project."))
    return team


def _check_shortcut(reader: SnippetReader, snippet: Snippet) -> None:
    other = reader.snippet_by_shortcut(snippet.project, snippet.shortcut)
    if other is not None and other.id != snippet.id:
        raise Conflict(
            f"Another snippet of the project has this shortcut: {other.title}.", code="snippet_shortcut_taken"
        )
