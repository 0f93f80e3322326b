"""The insights of surveys: read, stored, and computed in the background (contract 2.1, 4.1; decisions 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from deskwire.engine.core.clock import iso, milliseconds
from deskwire.engine.core.errors import Invalid, NotFound, Problem
from deskwire.engine.definitions.checks import escaped
from deskwire.engine.surveys.insights.alerts import Severity
from deskwire.engine.surveys.insights.comments import Sentiment
from deskwire.engine.surveys.insights.insights import Insights, insights_view, refresh_view
from deskwire.engine.surveys.ports import SurveyReader, SurveyTransaction
from deskwire.engine.surveys.survey import Survey
from deskwire.engine.surveys.survey_lookup import find_survey, find_version
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import NOT_BLANK, Body, Positive, Query, at_most_fields
from deskwire.http.api.routing import WHOLE, Routes, Tag
from deskwire.http.resources.surveys.surveys import MANAGE, ONE, READ
from deskwire.http.schemas import surveys as shapes

routes = Routes(
    Tag(
        "Survey insights",
        "Read the insights of a survey, store your own, or have them computed from the responses.",
    ),
    unrecorded="It is content: it grants nothing, and is not a setting.",
)
_INSIGHTS = f"{ONE}/insights"

Id = Annotated[str, Field(min_length=1, max_length=200), NOT_BLANK]
Title = Annotated[str, Field(min_length=1, max_length=500), NOT_BLANK]
Count = Annotated[int, Field(ge=0, lt=1 << 53)]
Figure = Annotated[float, Field(allow_inf_nan=False)]


def _normal(text: str) -> str:
    """Return the time in the format of the API."""
    return iso(milliseconds(text))


class SurveyThemeInput(Body):
    """A theme that several comments mention. `countsByVersion` has the number of mentions by version number."""

    id: Id
    title: Title
    sentiment: Sentiment
    count: Count
    counts_by_version: Annotated[
        dict[str, Count], Field(max_length=100, default_factory=dict), at_most_fields(100)
    ]
    quotes: Annotated[
        list[Annotated[str, Field(max_length=2_000)]], Field(max_length=20, default_factory=list)
    ]


class SurveyDriverInput(Body):
    """A factor that raises the score (`impact` above 0) or lowers it."""

    id: Id
    title: Title
    impact: Figure
    count: Count


class SurveySegmentInput(Body):
    """A group of respondents and its score."""

    id: Id
    title: Title
    size: Count
    score: Figure | None


class SurveyAlertInput(Body):
    """An alert about the survey. `createdAt` defaults to the present time."""

    id: Id
    severity: Severity
    message: Annotated[str, Field(min_length=1, max_length=2_000), NOT_BLANK]
    created_at: Annotated[str, Field(max_length=40), AfterValidator(_normal)] | None = None


class PutInsightsRequest(Body):
    """The insights that replace the stored ones. Fields left out become empty."""

    themes: Annotated[list[SurveyThemeInput], Field(max_length=200, default_factory=list)]
    summary: Annotated[str, Field(max_length=20_000)] = ""
    drivers: Annotated[list[SurveyDriverInput], Field(max_length=200, default_factory=list)]
    segments: Annotated[list[SurveySegmentInput], Field(max_length=200, default_factory=list)]
    alerts: Annotated[list[SurveyAlertInput], Field(max_length=200, default_factory=list)]


class InsightsQuery(Query):
    """The version to count mentions in; default: all versions."""

    version: Positive | None = None


@routes.add(
    "GET",
    _INSIGHTS,
    READ,
    operation_id="getInsights",
    query=InsightsQuery,
    answer=shapes.SurveyInsights,
    errors=("survey_version_not_found",),
)
async def get_insights(call: Call[Body, InsightsQuery]) -> Answer:
    """Fetch the stored insights. Nothing is computed; all but the counts of themes cover all versions."""
    project, version = call.project.rowid, call.query.version

    def read(reader: SurveyReader) -> Insights | None:
        survey = find_survey(reader, project, call.path["survey_id"])
        if version is not None:
            find_version(reader, survey, version)
        return reader.survey_insights(survey.rowid)

    return insights_view(await call.services.store.read(read), version)


async def _check_ids(call: Call[PutInsightsRequest, Query]) -> None:
    project, body = call.project.rowid, call.body
    survey = await call.services.store.read(
        lambda reader: find_survey(reader, project, call.path["survey_id"])
    )
    _check(body, survey)


@routes.add(
    "PUT",
    _INSIGHTS,
    MANAGE,
    operation_id="putInsights",
    body=PutInsightsRequest,
    limit=WHOLE,
    answer=shapes.SurveyInsights,
    further=(_check_ids,),
)
async def put_insights(call: Call[PutInsightsRequest, Query]) -> Answer:
    """Store insights that were computed elsewhere."""
    body, project, now = call.body, call.project.rowid, call.services.clock()
    parts = body.model_dump(by_alias=True)
    for alert in parts["alerts"]:
        alert["createdAt"] = alert["createdAt"] or iso(now)

    def store(tx: SurveyTransaction) -> Insights:
        survey = find_survey(tx, project, call.path["survey_id"])
        _check(body, survey)
        insights = Insights(parts, "api", now)
        tx.put_insights(survey.rowid, insights)
        return insights

    return insights_view(await call.services.store.write(store), None)


@routes.add(
    "POST",
    f"{_INSIGHTS}/refresh",
    MANAGE,
    operation_id="refreshInsights",
    answer=shapes.InsightsRefresh,
    errors=("refresh_busy",),
)
async def refresh_insights(call: Call[Body, Query]) -> Answer:
    """Compute the insights from the responses, in the background. Returns the state of the refresh.

    While a refresh is running, further calls join it.
    """
    project = call.project.rowid
    survey = await call.services.store.read(
        lambda reader: find_survey(reader, project, call.path["survey_id"])
    )
    return refresh_view(await call.services.surveys.refreshes.start(survey))


@routes.add(
    "GET",
    f"{_INSIGHTS}/refresh",
    READ,
    operation_id="getRefresh",
    answer=shapes.InsightsRefresh,
    errors=("refresh_not_found",),
)
async def get_refresh(call: Call[Body, Query]) -> Answer:
    """Fetch the state of the running refresh, or of the last one, with the scores that it computed."""
    project = call.project.rowid
    survey = await call.services.store.read(
        lambda reader: find_survey(reader, project, call.path["survey_id"])
    )
    refresh = await call.services.surveys.refreshes.latest(survey)
    if refresh is None:
        raise NotFound("These insights were never refreshed.", code="refresh_not_found")
    return refresh_view(refresh)


def _check(body: PutInsightsRequest, survey: Survey) -> None:
    problems = [*_doubles(body), *_unknown_versions(body, survey)]
    if problems:
        raise Invalid(*problems)


def _doubles(body: PutInsightsRequest) -> list[Problem]:
    """Return the problems with duplicate ids in a list."""
    lists: dict[
        str, Sequence[SurveyThemeInput | SurveyDriverInput | SurveySegmentInput | SurveyAlertInput]
    ] = {
        "themes": body.themes,
        "drivers": body.drivers,
        "segments": body.segments,
        "alerts": body.alerts,
    }
    problems: list[Problem] = []
    for name, parts in lists.items():
        seen: set[str] = set()
        for index, part in enumerate(parts or ()):
            if part.id in seen:
                problems.append(
                    Problem(f"/{name}/{index}/id", "duplicate_id", "An earlier one has the same id.")
                )
            seen.add(part.id)
    return problems


def _unknown_versions(body: PutInsightsRequest, survey: Survey) -> list[Problem]:
    """Return the problems with versions in `countsByVersion` that the survey does not have."""
    known = {str(number) for number in range(1, survey.version + 1)}
    return [
        Problem(
            f"/themes/{index}/countsByVersion/{escaped(version)}",
            "unknown_version",
            "There is no such version.",
        )
        for index, theme in enumerate(body.themes or ())
        for version in theme.counts_by_version
        if version not in known
    ]
