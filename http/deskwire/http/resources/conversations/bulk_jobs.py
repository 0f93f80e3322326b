"""Bulk jobs: change all conversations that match a filter, in the background, and undo it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Protocol

from pydantic import Field

from deskwire.engine.accounts.people import READ
from deskwire.engine.audit.trail import AuditEntry
from deskwire.engine.conversations.bulk_jobs import (
    BULK_MAX,
    EXAMINED_MAX,
    LISTED_MAX,
    PERMISSION,
    ActionType,
    BulkAction,
    BulkJob,
    BulkReader,
    bulk_job_view,
    cancel_bulk_job,
    no_such_job,
    start_bulk_job,
    undo_bulk_job,
)
from deskwire.engine.conversations.saved_view import SavedViewReader
from deskwire.engine.conversations.tags import TAGS_MAX, normal_tags
from deskwire.engine.core.errors import BadRequest, Invalid, Problem
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query, parse_query
from deskwire.http.api.routing import LARGE, Routes, Tag, dashboard, personal
from deskwire.http.resources.conversations.list_conditions import (
    ConversationConditions,
    InboxListReader,
    filter_of,
)
from deskwire.http.resources.conversations.operations import assignee_of
from deskwire.http.resources.conversations.requests import AssigneeInput
from deskwire.http.resources.conversations.saved_views import Conditions
from deskwire.http.resources.conversations.writing import ahead
from deskwire.http.resources.fields import Tag as TagName
from deskwire.http.resources.fields import Time
from deskwire.http.schemas import bulk_jobs as shapes
from deskwire.http.schemas.base import page_of

routes = Routes(
    Tag("Bulk jobs", "Change all conversations that match a filter, in the background, and undo it."),
    unrecorded="The start of the job is recorded.",
)
_ALL: Final = "/bulk-jobs"
_ONE: Final = "/bulk-jobs/<bulk_job_id>"
_ACCESS: Final = personal(dashboard(READ))  # actions need more; see `PERMISSION`
_FIELDS: Final[dict[ActionType, frozenset[str]]] = {
    "assign": frozenset({"assignee"}),
    "tag": frozenset({"add", "remove"}),
    "snooze": frozenset({"until"}),
}
_REQUIRED: Final[dict[ActionType, str]] = {"assign": "assignee", "snooze": "until"}


class BulkFilterReader(SavedViewReader, InboxListReader, Protocol):
    """Reads of views, and of the lists that they stand for."""


class BulkActionInput(Body):
    """The change: `assign` needs `assignee` (null unassigns), `tag` needs `add` or `remove`, `snooze` needs `until` (null ends it)."""

    type: ActionType
    assignee: AssigneeInput | None = None
    add: Annotated[list[TagName], Field(max_length=TAGS_MAX)] | None = None
    remove: Annotated[list[TagName], Field(max_length=TAGS_MAX)] | None = None
    until: Time | None = None


class StartBulkJobRequest(Body):
    """The conversations and their change: a `filter` with parameters of `GET /v3/conversations` as text, or the id of a saved view."""

    filter: Conditions | None = None
    view_id: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    action: BulkActionInput


async def _precheck(call: Call[StartBulkJobRequest, Query]) -> None:
    """Raise Invalid with every problem of the body that the fields alone do not show.

    A field of the wrong type is None, also one that is required. Raises Forbidden without the permission of the action.
    """
    action: BulkActionInput | None = call.body.action
    if action is not None and action.type:
        call.access.require(PERMISSION[action.type])
    problems = [] if action is None or not action.type else _action_problems(action)
    try:
        if action is not None:
            await assignee_of(call, action.assignee, "/action/assignee")
            ahead(action.until, call.services.clock(), "/action/until")
    except Invalid as refused:
        problems += refused.problems
    try:
        if action is not None or call.body.model_fields_set:
            await call.services.store.read(lambda reader: _query(reader, call))
    except Invalid as refused:
        problems += refused.problems
    if problems:
        raise Invalid(*problems)


def _action_problems(action: BulkActionInput) -> list[Problem]:
    given = action.model_fields_set - {"type"}
    allowed = _FIELDS.get(action.type, frozenset())
    problems = [
        Problem(f"/action/{name}", "not_allowed", f"The action {action.type} has no {name}.")
        for name in sorted(given - allowed)
    ]
    required = _REQUIRED.get(action.type)
    if required is not None and required not in given:
        problems.append(
            Problem(
                f"/action/{required}", "required", f"The action {action.type} needs this; it may be null."
            )
        )
    if action.type == "tag" and not (action.add or action.remove):
        problems.append(Problem("/action/add", "required", "Give tags to add or to remove."))
    both = {*normal_tags(action.add or ())} & {*normal_tags(action.remove or ())}
    if both:
        problems.append(
            Problem(
                "/action/remove",
                "conflict",
                f"These tags are to be added as well: {', '.join(sorted(both))}.",
            )
        )
    return problems


def _query(reader: BulkFilterReader, call: Call[StartBulkJobRequest, Any]) -> ConversationConditions:
    """Return the conditions of the job. Raises Invalid that names every wrong one."""
    body = call.body
    if (body.filter is None) == (body.view_id is None):
        raise Invalid(Problem("/filter", "required", "Give either a filter or the id of a view."))
    given: Mapping[str, str] = body.filter or {}
    place = "/filter"
    if body.view_id is not None:
        view = reader.saved_view(call.project.rowid, call.user.rowid, body.view_id)
        if view is None:
            raise Invalid(Problem("/viewId", "unknown", "There is no such saved view that you see."))
        given, place = view.filter, "/viewId"
    problems = []
    if "q" in given:
        problems.append(Problem("/filter/q", "not_allowed", "A bulk job has no search for a text."))
    rest = {name: [value] for name, value in given.items() if name != "q"}
    try:
        query = parse_query(ConversationConditions, rest)
        filter_of(reader, query, call.project, call.user, call.services.clock(), for_agents=True)
    except BadRequest as refused:
        problems += [
            Problem(
                place if body.view_id else f"{place}/{each.pointer.lstrip('?/')}", each.code, each.message
            )
            for each in refused.problems
        ]
    if problems:
        raise Invalid(*problems)
    return query


def _conversations(reader: BulkFilterReader, call: Call[StartBulkJobRequest, Any]) -> Sequence[int]:
    """Return the storage keys of the matching conversations. Raises Invalid if they are too many."""
    query, now = _query(reader, call), call.services.clock()
    wanted = filter_of(reader, query, call.project, call.user, now, for_agents=True)
    if query.sort == "waiting" and wanted.waiting is None:
        wanted = replace(wanted, waiting=True)
    found, complete = reader.matching_conversations(
        call.project.rowid, wanted, query.in_order, BULK_MAX + 1, EXAMINED_MAX
    )
    if len(found) > BULK_MAX or not complete:
        message = (
            f"More than {BULK_MAX:,} conversations match; a job changes at most {BULK_MAX:,}. Narrow the filter."
            if len(found) > BULK_MAX
            else f"The filter matches few of very many conversations, of which a job examines {EXAMINED_MAX:,}. Narrow the filter."
        )
        raise Invalid(Problem("/filter", "too_many", message))
    return found


@routes.add(
    "POST",
    _ALL,
    _ACCESS,
    operation_id="startBulkJob",
    body=StartBulkJobRequest,
    limit=LARGE,
    answer=shapes.BulkJob,
    errors=("bulk_job_running", "bulk_job_limit_reached"),
    records=("bulk_job.started",),
    idempotent=True,
    further=(_precheck,),
)
async def start(call: Call[StartBulkJobRequest, Query]) -> Answer:
    """Start a job that changes all conversations which match now, with the permission that its action needs.

    Later matches are not added. `noAnswerNeeded` and `waitAgain` need `conversations.reply`. `unread`, `follow` and `unfollow`
    are about you alone and need nothing more. All others need `conversations.manage`.
    """
    await _precheck(call)
    conversations = await call.services.store.read(lambda reader: _conversations(reader, call))
    now, user = call.services.clock(), call.user
    ids = (0, new_id("blk", now), call.project.rowid, user.rowid, user.id, user.name)
    job = BulkJob(*ids, _action(call, now), "running", None, 0, now)

    def begin(tx: Transaction) -> tuple[BulkJob, Any]:
        stored = start_bulk_job(tx, call.project, job, conversations)
        details = {"action": stored.action.type, "conversations": stored.total}
        tx.record(AuditEntry("bulk_job.started", stored.id, project=stored.project, details=details))
        return stored, tx.bulk_counts(stored.rowid)

    return await call.commit(begin, lambda made: bulk_job_view(*made))


def _action(call: Call[StartBulkJobRequest, Any], now: int) -> BulkAction:
    given = call.body.action
    assignee = None if given.assignee is None else (given.assignee.type, given.assignee.id)
    until = ahead(given.until, now, "/action/until")
    return BulkAction(
        given.type, assignee, normal_tags(given.add or ()), normal_tags(given.remove or ()), until
    )


@routes.add("GET", _ALL, _ACCESS, operation_id="listBulkJobs", answer=page_of(shapes.BulkJob))
async def list_jobs(call: Call[Body, Query]) -> Answer:
    """List your newest jobs, at most 20, on one page."""

    def read(reader: BulkReader) -> list[dict[str, Any]]:
        jobs = reader.bulk_jobs(call.project.rowid, call.user.rowid, LISTED_MAX)
        return [bulk_job_view(each, reader.bulk_counts(each.rowid)) for each in jobs]

    return {"items": await call.services.store.read(read), "nextCursor": None}


@routes.add("GET", _ONE, _ACCESS, operation_id="getBulkJob", answer=shapes.BulkJob)
async def get_job(call: Call[Body, Query]) -> Answer:
    """Fetch one of your jobs with its progress."""

    def read(reader: BulkReader) -> dict[str, Any]:
        job = _find(reader, call)
        return bulk_job_view(job, reader.bulk_counts(job.rowid))

    return await call.services.store.read(InlineQuery(read))


@routes.add(
    "POST",
    f"{_ONE}/cancel",
    _ACCESS,
    operation_id="cancelBulkJob",
    answer=shapes.BulkJob,
    errors=("bulk_job_ended",),
)
async def cancel(call: Call[Body, Query]) -> Answer:
    """Cancel one of your running jobs. Conversations that it has changed stay so, until you undo the job.

    Like undo, it needs the permission of the job's action.
    """
    return await _end(call, cancel_bulk_job)


@routes.add(
    "POST",
    f"{_ONE}/undo",
    _ACCESS,
    operation_id="undoBulkJob",
    answer=shapes.BulkJob,
    errors=("bulk_job_running", "bulk_job_ended", "bulk_job_limit_reached"),
    records=("bulk_job.undone",),
)
async def undo(call: Call[Body, Query]) -> Answer:
    """Undo one of your ended jobs, in the background. Conversations that were changed since are kept."""

    def begin(tx: Transaction, *given: Any) -> BulkJob:
        job = undo_bulk_job(tx, *given)
        tx.record(AuditEntry("bulk_job.undone", job.id, project=job.project))
        return job

    return await _end(call, begin)


async def _end(call: Call[Any, Any], change: Callable[..., BulkJob]) -> Answer:
    def run(tx: Transaction) -> dict[str, Any]:
        found = _find(tx, call)
        call.access.require(PERMISSION[found.action.type])
        job = change(tx, call.project, found, call.services.clock())
        return bulk_job_view(job, tx.bulk_counts(job.rowid))

    return await call.services.store.write(run)


def _find(reader: BulkReader, call: Call[Any, Any]) -> BulkJob:
    job = reader.bulk_job(call.project.rowid, call.user.rowid, call.path["bulk_job_id"])
    if job is None:
        raise no_such_job()
    return job
