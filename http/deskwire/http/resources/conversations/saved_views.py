"""Saved views of the inbox: names for filters, for a user, a team, or the project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Protocol

from pydantic import Field

from deskwire.engine.accounts.teams import Team, TeamReader
from deskwire.engine.audit.audited_changes import deleted
from deskwire.engine.conversations.inbox import COUNT_MAX
from deskwire.engine.conversations.saved_view import (
    OWN_VIEWS_MAX,
    SHARED_VIEWS_MAX,
    SavedView,
    SavedViewReader,
    ViewAuthor,
    ViewEditor,
    Visibility,
    moved,
    saved_view_view,
)
from deskwire.engine.core.errors import BadRequest, Conflict, Invalid, NotFound, Problem
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.values import replace
from deskwire.engine.events.project_events import append_internal_event, settings_changed
from deskwire.engine.ports import Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Flag, Query, given_fields, nulls, parse_query
from deskwire.http.api.routing import LARGE, Routes, Tag, dashboard, personal
from deskwire.http.resources.conversations.list_conditions import (
    ConversationConditions,
    InboxListReader,
    filter_of,
)
from deskwire.http.resources.fields import Name
from deskwire.http.schemas import saved_views as shapes
from deskwire.http.schemas.base import Deleted, page_of

routes = Routes(
    Tag("Saved views", "Keep filters of the inbox under a name, for yourself, a team or the project."),
    unrecorded="It is content: it grants nothing, is not a setting, and names its author.",
)
_ALL: Final = "/views"
_ONE: Final = "/views/<view_id>"
_ACCESS: Final = personal(dashboard("conversations.read"))
_NULLABLE: Final = ("team_id", "after")
_PERSONAL_DATA: Final = frozenset({"q", "contact"})
"""Conditions that name a customer. A view would keep them after the customer's erasure."""
_EXAMINED_MAX: Final = 20_000  # conversations that the counts of one list examine together
_EXAMINED_FOR_VIEW_MAX: Final = 2_000  # and of one view, so that a list with few views stays cheap, too

Conditions = Annotated[dict[str, Annotated[str, Field(min_length=1, max_length=1_000)]], Field(max_length=30)]
"""Parameters of `GET /v3/conversations` with their values."""


class ViewListReader(SavedViewReader, InboxListReader, Protocol):
    """Reads of views, and of the lists that they stand for."""


class CreateViewRequest(Body):
    """The new view. `filter` has parameters of `GET /v3/conversations`, with their values as text.

    `visibility` is `me`, `team` (with `teamId`) or `project`.
    """

    name: Name
    filter: Conditions
    visibility: Visibility = "me"
    team_id: Annotated[str, Field(min_length=1, max_length=40)] | None = None


class ChangeViewRequest(Body):
    """The fields to change. `after` moves the view after another of the same visibility; null moves it to the front."""

    name: Name | None = None
    filter: Conditions | None = None
    visibility: Visibility | None = None
    team_id: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    after: Annotated[str, Field(min_length=1, max_length=40)] | None = None


class ViewList(Query):
    """The parameter `counts` adds the number of its conversations to each view."""

    counts: Flag = False


async def _precheck(call: Call[Any, Query]) -> None:
    """Raise Invalid with every problem of the body that the fields alone do not show."""
    body, now = call.body, call.services.clock()

    def check(reader: ViewListReader) -> list[Problem]:
        problems = [] if body.filter is None else _filter_problems(reader, call, body.filter, now)
        try:
            if isinstance(body, CreateViewRequest):
                _check_pair(body.visibility, body.team_id)
            if body.team_id is not None:
                _team(reader, call, body.team_id)
        except Invalid as refused:
            problems += refused.problems
        return problems

    if problems := await call.services.store.read(InlineQuery(check)):
        raise Invalid(*problems)


@routes.add(
    "POST",
    _ALL,
    _ACCESS,
    operation_id="createView",
    body=CreateViewRequest,
    limit=LARGE,
    answer=shapes.SavedView,
    errors=("view_limit_reached",),
    idempotent=True,
    further=(_precheck,),
)
async def create_view(call: Call[CreateViewRequest, Query]) -> Answer:
    """Create a view. One for a team can be created by its members with `conversations.manage`, any shared one with `projects.manage`."""
    body, now, project = call.body, call.services.clock(), call.project.rowid
    author = ViewAuthor(call.user.rowid, call.user.id, call.user.name)
    fields = (body.filter, body.visibility, body.team_id, 0, author, now, now)
    view = SavedView(0, new_id("viw", now), project, body.name, *fields)

    def create(tx: Transaction) -> SavedView:
        _check_filter(tx, call, view.filter, now)
        _check_new(tx, call, view)
        _check_limit(tx, call, view)
        stored = tx.insert_saved_view(view)
        _notify(tx, call, stored)
        return stored

    return await call.commit(create, saved_view_view)


@routes.add("GET", _ALL, _ACCESS, operation_id="listViews", query=ViewList, answer=page_of(shapes.SavedView))
async def list_views(call: Call[Body, ViewList]) -> Answer:
    """List the views that you see, all of them on one page: your own, those of your teams, those of the project, each in order."""
    now = call.services.clock()

    def read(reader: ViewListReader) -> list[dict[str, Any]]:
        views = reader.saved_views(call.project.rowid, call.user.rowid)
        counts = _counts(reader, call, views, now) if call.query.counts else {}
        return [{**saved_view_view(each), **counts.get(each.id, {})} for each in views]

    return {"items": await call.services.store.read(read), "nextCursor": None}


def _counts(
    reader: ViewListReader, call: Call[Any, Any], views: Sequence[SavedView], now: int
) -> dict[str, dict[str, Any]]:
    """Return the counts of views by id, without those whose filter names a user or team that is gone."""
    found: dict[str, dict[str, Any]] = {}
    left = _EXAMINED_MAX
    for number, view in enumerate(views):
        try:
            given = {name: [value] for name, value in view.filter.items()}
            query = parse_query(ConversationConditions, given)
            wanted = filter_of(reader, query, call.project, call.user, now, for_agents=True)
        except BadRequest:
            continue
        if query.sort == "waiting":
            if wanted.waiting is False:  # such a list is empty
                found[view.id] = {"count": {"value": 0, "more": False}}
                continue
            wanted = replace(wanted, waiting=True)
        # A view may examine more if the views before it have needed less than their shares.
        most = min(_EXAMINED_FOR_VIEW_MAX, left // (len(views) - number))
        counted = reader.count_some_conversations(call.project.rowid, wanted, COUNT_MAX, most)
        left -= counted.examined
        found[view.id] = {"count": {"value": counted.value, "more": not counted.complete}}
    return found


@routes.add("GET", _ONE, _ACCESS, operation_id="getView", answer=shapes.SavedView)
async def get_view(call: Call[Body, Query]) -> Answer:
    """Fetch a view."""
    return saved_view_view(await call.services.store.read(InlineQuery(lambda reader: _find(reader, call))))


@routes.add(
    "PATCH",
    _ONE,
    _ACCESS,
    operation_id="changeView",
    body=ChangeViewRequest,
    limit=LARGE,
    answer=shapes.SavedView,
    errors=("view_limit_reached",),
    further=(nulls(*_NULLABLE), _precheck),
)
async def change_view(call: Call[ChangeViewRequest, Query]) -> Answer:
    """Change, share or move a view. Shared ones need the permission to create them."""
    given, now = given_fields(call.body, frozenset(_NULLABLE)), call.services.clock()
    moves, after_id = "after" in given, given.pop("after", None)

    def change(tx: Transaction) -> SavedView:
        before = _find(tx, call)
        _check(tx, call, before)
        if "filter" in given:
            _check_filter(tx, call, given["filter"], now)
        after = replace(before, **given)
        if after.visibility != "team" and "team_id" not in given:
            after = replace(after, team_id=None)
        _check_new(tx, call, after)
        if (after.visibility == "me") != (before.visibility == "me"):
            if after.visibility == "me" and after.author.rowid != call.user.rowid:
                raise Invalid(
                    Problem("/visibility", "not_own", "Only the author of a view can keep it for themselves.")
                )
            _check_limit(tx, call, after)
        if after != before:
            after = replace(after, updated_at=now)
            tx.save_view(after)
        if moves or after.visibility != before.visibility:
            after = _move(tx, call, after, after_id, to_end=not moves)
        if moves or after != before:
            _notify(tx, call, after)
        return after

    return saved_view_view(await call.services.store.write(change))


def _move(
    tx: Transaction, call: Call[Any, Any], view: SavedView, after_id: str | None, *, to_end: bool
) -> SavedView:
    """Move a view after another one of its visibility; return it as stored. Raises Invalid for an unknown one."""
    own = view.visibility == "me"
    project = call.project.rowid
    seen = tx.saved_views(project, call.user.rowid) if own else tx.shared_views(project)
    beside = [each for each in seen if each.visibility == view.visibility and each.id != view.id]
    if to_end:
        behind = beside[-1] if beside else None
    else:
        behind = next((each for each in beside if each.id == after_id), None)
    if after_id is not None and behind is None:
        raise Invalid(
            Problem("/after", "unknown", "There is no other view with this id and the same visibility.")
        )
    for each in moved(beside, view, behind):
        tx.save_view(each)
        view = each if each.id == view.id else view
    return view


@routes.add(
    "DELETE",
    _ONE,
    _ACCESS,
    operation_id="deleteView",
    answer=Deleted,
    records=("view.deleted",),
)
async def delete_view(call: Call[Body, Query]) -> Answer:
    """Delete a view. Shared ones need the permission to create them."""

    def delete(tx: Transaction) -> SavedView:
        view = _find(tx, call)
        _check(tx, call, view)
        tx.delete_saved_view(view)
        _notify(tx, call, view)
        tx.record(deleted("view", view.id, call.project.rowid))
        return view

    view = await call.services.store.write(delete)
    return {"id": view.id, "deleted": True}


def _notify(tx: Transaction, call: Call[Any, Any], view: SavedView) -> None:
    append_internal_event(tx, call.project, settings_changed("views", view.id), None, call.services.clock())


def _find(reader: SavedViewReader, call: Call[Any, Any]) -> SavedView:
    """Return the view in the path. A caller with `projects.manage` finds those of other teams, too."""
    project, view_id = call.project.rowid, call.path["view_id"]
    view = reader.saved_view(project, call.user.rowid, view_id)
    if view is None and "projects.manage" in call.access.permissions:
        view = reader.shared_view(project, view_id)
    if view is None:
        raise NotFound("There is no such view.", code="view_not_found")
    return view


def _check_new(reader: TeamReader, call: Call[Any, Any], view: SavedView) -> None:
    """Raise Forbidden or Invalid if the caller may not store this view."""
    _check_pair(view.visibility, view.team_id)
    _check(reader, call, view)


def _check(reader: TeamReader, call: Call[Any, Any], view: SavedView) -> None:
    """Raise Forbidden, or Invalid for an unknown team, if the caller may not have or change a view."""
    team = None if view.team_id is None else _team(reader, call, view.team_id)
    ViewEditor(call.user.rowid, call.access.permissions).check(view, team)


def _check_pair(visibility: Visibility, team_id: str | None) -> None:
    """Raise Invalid if a view for a team has none, or another view has one."""
    if visibility == "team" and team_id is None:
        raise Invalid(Problem("/teamId", "required", "A view with `visibility` `team` needs its team."))
    if visibility != "team" and team_id is not None:
        raise Invalid(Problem("/teamId", "not_for_team", "Only a view with `visibility` `team` has a team."))


def _team(reader: TeamReader, call: Call[Any, Any], team_id: str) -> Team:
    team = reader.team(call.project.rowid, team_id)
    if team is None:
        raise Invalid(Problem("/teamId", "unknown", "There is no such team in this project."))
    return team


def _check_limit(tx: Transaction, call: Call[Any, Any], view: SavedView) -> None:
    own = view.visibility == "me"
    most, whose = (OWN_VIEWS_MAX, "A user") if own else (SHARED_VIEWS_MAX, "A project")
    if tx.count_saved_views(call.project.rowid, call.user.rowid if own else None) >= most:
        kind = "views of one's own" if own else "shared views"
        raise Conflict(f"{whose} has at most {most} {kind} here.", code="view_limit_reached")


def _check_filter(reader: InboxListReader, call: Call[Any, Any], given: Mapping[str, str], now: int) -> None:
    """Raise Invalid that names every condition which no list takes, or which names a customer."""
    if problems := _filter_problems(reader, call, given, now):
        raise Invalid(*problems)


def _filter_problems(
    reader: InboxListReader, call: Call[Any, Any], given: Mapping[str, str], now: int
) -> list[Problem]:
    problems = [
        Problem(f"/filter/{name}", "personal_data", "A view can't have a condition that names a customer.")
        for name in sorted(_PERSONAL_DATA & given.keys())
    ]
    rest = {name: [value] for name, value in given.items() if name not in _PERSONAL_DATA}
    try:
        query = parse_query(ConversationConditions, rest)
        filter_of(reader, query, call.project, call.user, now, for_agents=True)
    except BadRequest as refused:
        problems += [
            Problem(f"/filter/{each.pointer.lstrip('?/')}", each.code, each.message)
            for each in refused.problems
        ]
    return problems
