"""The responses to surveys: stored for a backend, listed, exported, deleted (decisions 7)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Annotated, Any, Final, Protocol

import orjson
from pydantic import Field

from deskwire.engine.accounts.people import Project
from deskwire.engine.audit.audited_changes import deleted, survey_exported
from deskwire.engine.conversations.commands import ContactRef
from deskwire.engine.conversations.contacts import put_contact
from deskwire.engine.core.errors import Conflict, Invalid, NotFound, Problem
from deskwire.engine.core.ids import is_id, new_id
from deskwire.engine.core.store import InlineQuery, Store
from deskwire.engine.core.values import replace
from deskwire.engine.events.project_events import response_created, response_deleted
from deskwire.engine.events.types import response_lane
from deskwire.engine.ports import Transaction
from deskwire.engine.surveys.answers import answer_problems
from deskwire.engine.surveys.definition import SurveyDefinition, definition_of
from deskwire.engine.surveys.export import QuestionColumn, columns, head_line, lines
from deskwire.engine.surveys.ports import SurveyReader, SurveyTransaction
from deskwire.engine.surveys.survey import (
    ResponseFilter,
    Survey,
    SurveyResponse,
    SurveyVersion,
    response_view,
)
from deskwire.engine.surveys.survey_lookup import find_survey, find_version
from deskwire.engine.webhooks.publish import publish_extension
from deskwire.http.api.audit_records import recorded_export
from deskwire.http.api.calls import Answer, Call, Streamed
from deskwire.http.api.input.validation import Body, Positive, Query, Time
from deskwire.http.api.pagination import Paged, page
from deskwire.http.api.routing import LARGE, Media, Routes, Tag, fresh, s2s
from deskwire.http.resources.contacts.contacts import may_change_contacts
from deskwire.http.resources.conversations.s2s import ContactInput
from deskwire.http.resources.member_filters import contact_named
from deskwire.http.resources.surveys.surveys import MANAGE, ONE, READ
from deskwire.http.schemas import surveys as shapes
from deskwire.http.schemas.base import Deleted, page_of

routes = Routes(
    Tag("Survey responses", "Store, list, export and delete the responses to surveys."),
    unrecorded="It is content: it grants nothing, and is not a setting.",
)
_LIST: Final = f"{ONE}/responses"
_ANSWERS_BYTES: Final = 64 * 1024
"""Maximum bytes of a response's answers as JSON, which limits a page of responses."""
_PAGE: Final = 200


class CreateSurveyResponseRequest(Body):
    """The answers, by question id. `version` defaults to the published version, `language` to its primary language."""

    answers: dict[str, Any]
    contact: ContactInput | None = None
    version: Annotated[int, Field(ge=1, lt=1 << 31)] | None = None
    language: Annotated[str, Field(max_length=100)] | None = None


class ResponseExport(Query):
    """The filters of an export of responses. `contact` is a con_ id or the backend's user id."""

    version: Positive | None = None
    contact: str | None = None
    language: str | None = None
    since: Time | None = None
    until: Time | None = None


class ResponseList(ResponseExport, Paged):
    """The filters of a list of responses, and its page. `contact` is a con_ id or the backend's user id."""


async def _check_answers(call: Call[CreateSurveyResponseRequest, Query]) -> None:
    version = await call.services.store.read(answered_version(call))
    check_answers(call.body, definition_of(version.definition))


@routes.add(
    "POST",
    "/s2s/surveys/<survey_id>/responses",
    s2s("surveys.manage"),
    operation_id="createResponse",
    body=CreateSurveyResponseRequest,
    limit=LARGE,
    answer=shapes.SurveyResponse,
    errors=("survey_closed",),
    idempotent=True,
    further=(_check_answers,),
)
async def create_response(call: Call[CreateSurveyResponseRequest, Query]) -> Answer:
    """Store a customer's answers, checked against the version of the survey that they answer.

    The contact is created or updated like for a conversation. Without a contact, the response is anonymous.
    """
    body, now = call.body, call.services.clock()
    version = await call.services.store.read(answered_version(call))
    definition = definition_of(version.definition)
    language = definition.primary_language if body.language is None else body.language
    check_answers(body, definition)
    response = SurveyResponse(0, new_id("rsp", now), version.number, None, None, language, body.answers, now)
    return await call.commit(lambda tx: _store(tx, call, response), lambda view: view)


@routes.add(
    "GET",
    _LIST,
    READ,
    operation_id="listResponses",
    query=ResponseList,
    answer=page_of(shapes.SurveyResponse),
)
async def list_responses(call: Call[Body, ResponseList]) -> Answer:
    """List the responses to a survey, newest first."""
    query, project = call.query, call.project.rowid
    before = query.row
    criteria = await _criteria(call)

    def listed(reader: SurveyReader) -> tuple[Survey, list[SurveyResponse]]:
        survey = find_survey(reader, project, call.path["survey_id"])
        return survey, list(reader.survey_responses(survey.rowid, criteria, before, query.rows))

    survey, responses = await call.services.store.read(listed)
    return page(
        query,
        responses,
        lambda response: response_view(survey, response),
        lambda response: response.rowid,
    )


@routes.add(
    "GET",
    f"{ONE}/responses.csv",
    fresh(READ),
    operation_id="exportResponses",
    query=ResponseExport,
    answer=Media("text/csv"),
    records=("survey.exported",),
)
async def export_responses(call: Call[Body, ResponseExport]) -> Answer:
    """Export responses as CSV, newest first, with a column for each question.

    The file follows RFC 4180, in UTF-8 with a byte order mark. Choices are shown by their labels in the primary
    language. A text that a spreadsheet would take for a formula is prefixed with `'`.
    """
    project = call.project.rowid

    def head(reader: SurveyReader) -> tuple[Survey, list[QuestionColumn]]:
        survey = find_survey(reader, project, call.path["survey_id"])
        versions = reader.survey_versions(survey.rowid, None, survey.version)
        return survey, columns({each.number: definition_of(each.definition) for each in versions})

    criteria = await _criteria(call)
    survey, shown = await call.services.store.read(head)
    rows = _exported(call.revocable_store, survey.rowid, criteria, shown)
    pieces = await recorded_export(call, survey_exported(survey.id, project), rows)
    disposition = {"Content-Disposition": f'attachment; filename="{survey.id}.csv"'}
    return Streamed(pieces, "text/csv; charset=utf-8", disposition)


@routes.add("GET", f"{_LIST}/<response_id>", READ, operation_id="getResponse", answer=shapes.SurveyResponse)
async def get_response(call: Call[Body, Query]) -> Answer:
    """Fetch a response."""
    return response_view(*await call.services.store.read(_one(call)))


@routes.add(
    "DELETE",
    f"{_LIST}/<response_id>",
    MANAGE,
    operation_id="deleteResponse",
    answer=Deleted,
    records=("response.deleted",),
)
async def delete_response(call: Call[Body, Query]) -> Answer:
    """Delete a response, and the quotes from it in the insights."""

    def delete(tx: Transaction) -> SurveyResponse:
        survey, response = _one(call)(tx)
        tx.delete_response(survey.rowid, response)
        draft, lane = response_deleted(survey.id, response.id), response_lane(response.id)
        publish_extension(tx, call.project, draft, None, call.services.clock(), lane=lane)
        tx.record(deleted("response", response.id, call.project.rowid, survey=survey.id))
        return response

    response = await call.services.store.write(delete)
    return {"id": response.id, "deleted": True}


class GivenAnswers(Protocol):
    """The answers in a body, and their language."""

    answers: dict[str, Any]
    version: int | None
    language: str | None


def check_answers(body: GivenAnswers, definition: SurveyDefinition) -> None:
    """Raise Invalid with every problem of the answers."""
    too_long = len(orjson.dumps(body.answers)) > _ANSWERS_BYTES
    # Larger answers are not checked one by one.
    problems = [] if body.answers is None or too_long else answer_problems(definition, body.answers)
    if body.language not in (None, *definition.languages):
        message = f"The languages of this version are {', '.join(definition.languages)}."
        problems.append(Problem("/language", "unknown_language", message))
    if too_long:
        message = f"All answers together may take at most {_ANSWERS_BYTES:,} bytes."
        problems.append(Problem("/answers", "too_long", message))
    if problems:
        raise Invalid(*problems)


def answered_version(call: Call[Any, Query]) -> Callable[[SurveyReader], SurveyVersion]:
    """Return a query for the version that a response answers, which raises NotFound, Conflict or Invalid."""
    project, number = call.project.rowid, call.body.version

    def read(reader: SurveyReader) -> SurveyVersion:
        survey = find_survey(reader, project, call.path["survey_id"])
        _require_open(survey)
        if number is not None and number > survey.version:
            message = f"The survey has the versions 1 to {survey.version}."
            raise Invalid(Problem("/version", "unknown_version", message))
        return find_version(reader, survey, number or survey.version)

    return read


def _store(
    tx: Transaction, call: Call[CreateSurveyResponseRequest, Query], response: SurveyResponse
) -> dict[str, Any]:
    given = call.body.contact
    if given is not None:
        identity = {name: getattr(given, name) for name in given.model_fields_set - {"user_id"}}
        contact = put_contact(
            tx,
            call.project,
            ContactRef(given.user_id, identity, may_change=may_change_contacts(call)),
            response.created_at,
        )
        response = replace(response, contact=contact.rowid, user_id=contact.user_id)
    return store_response(tx, call.project, call.path["survey_id"], response)


def store_response(
    tx: Transaction, project: Project, survey_id: str, response: SurveyResponse
) -> dict[str, Any]:
    """Store a response with its event, and return its view. Raises NotFound, and Conflict if the survey is closed."""
    survey = find_survey(tx, project.rowid, survey_id)
    _require_open(survey)
    view = response_view(survey, tx.insert_response(survey.rowid, response))
    draft, lane = response_created(survey.id, response.version, view), response_lane(response.id)
    publish_extension(tx, project, draft, lane, response.created_at, lane=lane)
    return view


def _require_open(survey: Survey) -> None:
    if survey.status != "OPEN":
        raise Conflict("The survey is closed and accepts no responses.", code="survey_closed")


async def _criteria(call: Call[Body, ResponseList] | Call[Body, ResponseExport]) -> ResponseFilter:
    query = call.query
    contact = None
    if query.contact is not None:
        named = query.contact
        contact = await call.services.store.read(
            InlineQuery(lambda reader: contact_named(reader, call.project, named))
        )
    return ResponseFilter(query.version, contact, query.language, query.since, query.until)


def _one(call: Call[Body, Query]) -> Callable[[SurveyReader], tuple[Survey, SurveyResponse]]:
    """Return a query for the response in the path, which raises NotFound."""
    project, response_id = call.project.rowid, call.path["response_id"]

    def find(reader: SurveyReader) -> tuple[Survey, SurveyResponse]:
        survey = find_survey(reader, project, call.path["survey_id"])
        response = reader.survey_response(survey.rowid, response_id) if is_id(response_id, "rsp") else None
        if response is None:
            raise NotFound("The survey has no such response.", code="response_not_found")
        return survey, response

    return find


async def _exported(
    store: Store[SurveyReader, SurveyTransaction],
    survey: int,
    criteria: ResponseFilter,
    shown: Sequence[QuestionColumn],
) -> AsyncGenerator[bytes, None]:
    """Yield the export, page by page: a slow reader blocks no transaction, and memory holds one page."""
    yield head_line(shown).encode()
    before = None
    while True:
        responses = await store.read(_page(survey, criteria, before))
        if responses:
            yield lines(shown, responses).encode()
        if len(responses) < _PAGE:
            return
        before = responses[-1].rowid


def _page(
    survey: int, criteria: ResponseFilter, before: int | None
) -> Callable[[SurveyReader], Sequence[SurveyResponse]]:
    return lambda reader: reader.survey_responses(survey, criteria, before, _PAGE)
