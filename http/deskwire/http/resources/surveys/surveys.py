"""Surveys: created, validated, changed, published in versions, deleted (contract 4.1, decisions 7)."""

from __future__ import annotations

from typing import Annotated, Any, Final

import trio
from pydantic import Field

from deskwire.engine.audit.audited_changes import deleted
from deskwire.engine.channels.references import drop_references
from deskwire.engine.core.errors import Conflict, Invalid, Problem
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import replace
from deskwire.engine.events.project_events import append_internal_event, settings_changed, survey_deleted
from deskwire.engine.ports import Transaction
from deskwire.engine.surveys.ports import SurveyReader, SurveyTransaction
from deskwire.engine.surveys.removal import put_out_of_sight
from deskwire.engine.surveys.survey import (
    Status,
    Survey,
    SurveyVersion,
    full_view,
    survey_tag,
    survey_view,
    version_view,
)
from deskwire.engine.surveys.survey_lookup import find_survey, find_version
from deskwire.engine.surveys.validation.validate import definition_errors
from deskwire.engine.webhooks.publish import publish_extension
from deskwire.http.api.calls import Answer, Call, Tagged
from deskwire.http.api.input.validation import Body, Query, nulls, refuse_null
from deskwire.http.api.pagination import Paged, page
from deskwire.http.api.routing import WHOLE, Routes, Tag, dashboard, s2s
from deskwire.http.resources.fields import Name
from deskwire.http.schemas import surveys as shapes
from deskwire.http.schemas.base import Deleted, page_of

routes = Routes(
    Tag("Surveys", "Create, validate, change and delete surveys, and publish versions of them."),
    unrecorded="It is content: it grants nothing, and is no setting.",
)
ONE: Final = "/engagement/surveys/<survey_id>"
READ: Final = dashboard("surveys.read")
MANAGE: Final = dashboard("surveys.manage")
_VERSIONS: Final = f"{ONE}/versions"
VERSIONS_MAX: Final = 100
"""Versions that a survey may have; an export has columns for all of them."""


Definition = Annotated[Any, Field(json_schema_extra={"x-shape": "SurveyDefinition"})]


class CreateSurveyRequest(Body):
    """The new survey. Its definition becomes version 1."""

    name: Name
    definition: Definition


class ChangeSurveyRequest(Body):
    """The fields to change. A closed survey accepts no responses."""

    name: Name | None = None
    status: Status | None = None


class PublishSurveyVersionRequest(Body):
    """The definition of the next version."""

    definition: Definition


class ValidateSurveyRequest(Body):
    """The definition to validate, any JSON value."""

    as_sent = True  # problems with its numbers belong in the response

    definition: Any


class SurveyList(Paged):
    """The filters of a list of surveys, and its page. `q` is a part of the name, whatever the case and the accents."""

    status: Status | None = None
    q: Annotated[str, Field(min_length=1, max_length=200)] | None = None


async def _check_definition(call: Call[Any, Query]) -> None:
    if "definition" in call.body.model_fields_set:
        await _check(call.body.definition)


@routes.add(
    "POST",
    "/engagement/surveys",
    MANAGE,
    operation_id="createSurvey",
    tells="surveys",
    body=CreateSurveyRequest,
    limit=WHOLE,
    answer=shapes.Survey,
    idempotent=True,
    further=(_check_definition,),
)
async def create_survey(call: Call[CreateSurveyRequest, Query]) -> Answer:
    """Create a survey. Its definition is published as version 1."""
    await _check(call.body.definition)
    now = call.services.clock()
    survey = Survey(0, new_id("srv", now), call.project.rowid, call.body.name, "OPEN", 1, 0, 0, now, now)
    first = SurveyVersion(1, call.body.definition, now)
    return await call.commit(
        lambda tx: tx.insert_survey(survey, first.definition), lambda made: full_view(made, first)
    )


@routes.add(
    "GET",
    "/engagement/surveys",
    READ,
    operation_id="listSurveys",
    query=SurveyList,
    answer=page_of(shapes.SurveySummary),
)
async def list_surveys(call: Call[Body, SurveyList]) -> Answer:
    """List the surveys of a project, newest first, without their definitions."""
    query, project = call.query, call.project.rowid
    before = query.row
    surveys = await call.services.store.read(
        lambda reader: reader.surveys(project, query.status, query.q, before, query.rows)
    )
    return page(query, surveys, survey_view, lambda survey: survey.rowid)


@routes.add("GET", ONE, READ, operation_id="getSurvey", answer=shapes.Survey, tagged=True)
async def get_survey(call: Call[Body, Query]) -> Answer:
    """Fetch a survey with the definition of its published version.

    Its `ETag` is for `If-Match` of a change; the number of responses does not count in it.
    """
    return _tagged(*await _published(call))


@routes.add(
    "GET", "/s2s/surveys/<survey_id>", s2s("surveys.read"), operation_id="showSurvey", answer=shapes.Survey
)
async def show_survey(call: Call[Body, Query]) -> Answer:
    """Fetch a survey with its published definition, to show it to a customer."""
    return full_view(*await _published(call))


@routes.add(
    "PATCH",
    ONE,
    MANAGE,
    operation_id="changeSurvey",
    tells="surveys",
    body=ChangeSurveyRequest,
    answer=shapes.Survey,
    errors=("changed_meanwhile",),
    further=(nulls(),),
    tagged=True,
)
async def change_survey(call: Call[ChangeSurveyRequest, Query]) -> Answer:
    """Rename, close or reopen a survey. To change its definition, publish a version."""
    body, project, now = call.body, call.project.rowid, call.services.clock()
    refuse_null(body)

    def change(tx: SurveyTransaction) -> tuple[Survey, SurveyVersion]:
        before = find_survey(tx, project, call.path["survey_id"])
        _require_seen(tx, call, before)
        after = replace(before, **body.model_dump(exclude_unset=True))
        if after != before:
            after = replace(after, updated_at=now)
            tx.save_survey(after)
        return after, find_version(tx, after, after.version)

    return _tagged(*await call.services.store.write(change))


@routes.add(
    "DELETE",
    ONE,
    MANAGE,
    operation_id="deleteSurvey",
    tells="surveys",
    answer=Deleted,
    errors=("changed_meanwhile",),
    records=("survey.deleted", "channel.changed"),
    tagged=True,
)
async def delete_survey(call: Call[Body, Query]) -> Answer:
    """Delete a survey permanently, with its versions, responses and insights. Channels no longer show it."""
    services, project, now = call.services, call.project, call.services.clock()

    def remove(tx: Transaction) -> Survey:
        _require_seen(tx, call, find_survey(tx, project.rowid, call.path["survey_id"]))
        survey = put_out_of_sight(tx, project.rowid, call.path["survey_id"])
        publish_extension(tx, project, survey_deleted(survey.id), None, now, lane=None)
        tx.record(deleted("survey", survey.id, project.rowid, responses=survey.responses))
        for channel in drop_references(tx, project, now, survey=survey.id):
            append_internal_event(tx, project, settings_changed("channels", channel), None, now)
        return survey

    survey = await services.surveys.removals.clear_behind(services.store.write(remove))
    return {"id": survey.id, "deleted": True}


@routes.add(
    "POST",
    f"{ONE}/validate",
    READ,
    operation_id="validateDefinition",
    body=ValidateSurveyRequest,
    limit=WHOLE,
    answer=shapes.SurveyValidation,
)
async def validate_definition(call: Call[ValidateSurveyRequest, Query]) -> Answer:
    """Validate a definition, and list every problem with it. Nothing is stored, and problems also return 200.

    The rules and their codes are listed with examples in the reference of surveys.
    """
    await call.services.store.read(
        lambda reader: find_survey(reader, call.project.rowid, call.path["survey_id"])
    )
    errors = await trio.to_thread.run_sync(definition_errors, call.body.definition)
    listed = [{"path": each.path, "code": each.code, "message": each.message} for each in errors]
    return {"ok": not errors, "errors": listed}


@routes.add(
    "POST",
    _VERSIONS,
    MANAGE,
    operation_id="publishVersion",
    tells="surveys",
    body=PublishSurveyVersionRequest,
    limit=WHOLE,
    answer=shapes.SurveyVersion,
    errors=("survey_version_limit_reached", "changed_meanwhile"),
    idempotent=True,
    further=(_check_definition,),
)
async def publish_version(call: Call[PublishSurveyVersionRequest, Query]) -> Answer:
    """Publish a definition as the next version. The definition that is published already makes no new version.

    Responses keep the version that they answered. `If-Match` takes the `ETag` of the survey.
    """
    definition, project, now = call.body.definition, call.project.rowid, call.services.clock()
    await call.services.store.read(lambda reader: find_survey(reader, project, call.path["survey_id"]))
    await _check(definition)

    def publish(tx: SurveyTransaction) -> tuple[Survey, SurveyVersion]:
        survey = find_survey(tx, project, call.path["survey_id"])
        _require_seen(tx, call, survey)
        present = find_version(tx, survey, survey.version)
        if present.definition == definition:
            return survey, present
        if survey.version >= VERSIONS_MAX:
            raise Conflict(
                f"A survey has at most {VERSIONS_MAX} versions.", code="survey_version_limit_reached"
            )
        version = SurveyVersion(survey.version + 1, definition, now)
        tx.publish_version(survey.rowid, version)
        return replace(survey, version=version.number), version

    return await call.commit(publish, lambda made: version_view(*made), call.path["survey_id"])


@routes.add(
    "GET",
    _VERSIONS,
    READ,
    operation_id="listVersions",
    query=Paged,
    answer=page_of(shapes.SurveyVersionSummary),
)
async def list_versions(call: Call[Body, Paged]) -> Answer:
    """List the versions of a survey, newest first, without their definitions."""
    query, project = call.query, call.project.rowid
    before = query.row

    def listed(reader: SurveyReader) -> tuple[Survey, list[SurveyVersion]]:
        survey = find_survey(reader, project, call.path["survey_id"])
        return survey, list(reader.survey_versions(survey.rowid, before, query.rows))

    survey, versions = await call.services.store.read(listed)

    def summary(version: SurveyVersion) -> dict[str, Any]:
        view = version_view(survey, version)
        return {name: value for name, value in view.items() if name != "definition"}

    return page(query, versions, summary, lambda version: version.number)


@routes.add("GET", f"{_VERSIONS}/<version>", READ, operation_id="getVersion", answer=shapes.SurveyVersion)
async def get_version(call: Call[Body, Query]) -> Answer:
    """Fetch a version of a survey with its definition."""
    project, text = call.project.rowid, call.path["version"]
    number = int(text) if text.isdecimal() and len(text) < 10 else 0

    def read(reader: SurveyReader) -> tuple[Survey, SurveyVersion]:
        survey = find_survey(reader, project, call.path["survey_id"])
        return survey, find_version(reader, survey, number)

    return version_view(*await call.services.store.read(read))


async def _check(definition: Any) -> None:
    """Raise Invalid with every problem of the definition in a body."""
    errors = await trio.to_thread.run_sync(definition_errors, definition)
    if errors:
        raise Invalid(*(Problem(f"/definition{each.path}", each.code, each.message) for each in errors))


async def _published(call: Call[Any, Any]) -> tuple[Survey, SurveyVersion]:
    """Return the survey in the path and its published version. Raises NotFound."""
    project = call.project.rowid

    def read(reader: SurveyReader) -> tuple[Survey, SurveyVersion]:
        survey = find_survey(reader, project, call.path["survey_id"])
        return survey, find_version(reader, survey, survey.version)

    return await call.services.store.read(read)


def _require_seen(reader: SurveyReader, call: Call[Any, Any], survey: Survey) -> None:
    """Raise PreconditionFailed if `If-Match` names another state of the survey than this."""
    call.seen.check(lambda: survey_tag(survey, find_version(reader, survey, survey.version)))


def _tagged(survey: Survey, published: SurveyVersion) -> Tagged:
    return Tagged(full_view(survey, published), survey_tag(survey, published))
