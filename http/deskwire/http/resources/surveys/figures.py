"""The figures of surveys: counts of each answer, and scores over time (ADR 20)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final

from pydantic import Field

from deskwire.engine.core.clock import iso
from deskwire.engine.surveys.definition import SurveyDefinition, definition_of
from deskwire.engine.surveys.figures import AnswerTally, Bucket
from deskwire.engine.surveys.insights.insights import refresh_view
from deskwire.engine.surveys.ports import SurveyReader
from deskwire.engine.surveys.survey import ResponseFilter, Survey
from deskwire.engine.surveys.survey_lookup import find_survey, find_version
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.periods import PeriodQuery
from deskwire.http.api.input.validation import Body, Positive
from deskwire.http.api.routing import Routes, Tag
from deskwire.http.resources.surveys.surveys import ONE, READ
from deskwire.http.schemas import surveys as shapes

routes = Routes(
    Tag("Survey figures", "Count the answers to a survey, and follow its scores over time."),
    unrecorded="It changes nothing.",
)
_PAGE_SIZE: Final = 5_000  # responses counted at once, so that other reads get a turn


class FiguresQuery(PeriodQuery):
    """The responses to count, and the length of a series' steps."""

    version: Annotated[
        Positive | None,
        Field(
            description="Counts only responses to this version and its questions. By default, the questions of the published "
            "version are counted, including other versions in which a question has the same type and scale."
        ),
    ] = None
    bucket: Annotated[
        Bucket, Field(description="The length of a step. Weeks begin on Monday.", examples=["week"])
    ] = "day"


@routes.add(
    "GET",
    f"{ONE}/figures",
    READ,
    operation_id="getSurveyFigures",
    query=FiguresQuery,
    answer=shapes.SurveyFigures,
    errors=("survey_version_not_found",),
)
async def get_figures(call: Call[Body, FiguresQuery]) -> Answer:
    """Count the answers to each question of a survey, and compute its scores for each day, week or month.

    The figures are computed from the responses on each call. A response counts in full, or not at all once it is erased.
    """
    query, store, now = call.query, call.services.store, call.services.clock()
    period = query.period(now)
    survey, definitions = await store.read(_definitions(call))
    tally = AnswerTally(definitions, query.version or survey.version, period.day_of)
    wanted = ResponseFilter(query.version, since=period.start, until=period.end)
    before: int | None = None
    while True:
        count, before, part = await store.read(_counted(tally, survey.rowid, wanted, before))
        tally += part
        if count < _PAGE_SIZE:
            break
    refresh = await call.services.surveys.refreshes.latest(survey)
    return {
        "surveyId": survey.id,
        "version": query.version,
        "from": iso(period.start),
        "to": iso(period.end),
        "timezone": period.timezone,
        "bucket": query.bucket,
        "computedAt": iso(now),
        **tally.view(query.bucket),
        "refresh": None if refresh is None else refresh_view(refresh),
    }


def _definitions(
    call: Call[Body, FiguresQuery],
) -> Callable[[SurveyReader], tuple[Survey, Mapping[int, SurveyDefinition]]]:
    """Return a query for the survey and the definitions of its versions, which raises NotFound."""
    project, version = call.project.rowid, call.query.version

    def read(reader: SurveyReader) -> tuple[Survey, Mapping[int, SurveyDefinition]]:
        survey = find_survey(reader, project, call.path["survey_id"])
        if version is not None:
            find_version(reader, survey, version)
        versions = reader.survey_versions(survey.rowid, None, survey.version)
        return survey, {each.number: definition_of(each.definition) for each in versions}

    return read


def _counted(
    tally: AnswerTally, survey: int, wanted: ResponseFilter, before: int | None
) -> Callable[[SurveyReader], tuple[int, int | None, AnswerTally]]:
    """Return a query that counts one page of responses.

    It returns their number, the last storage key, and their counts. It may run more than once, so it changes nothing itself.
    """

    def read(reader: SurveyReader) -> tuple[int, int | None, AnswerTally]:
        rows: Sequence[tuple[int, int, int, str]] = reader.survey_answers(survey, wanted, before, _PAGE_SIZE)
        return len(rows), rows[-1][0] if rows else None, tally.of(row[1:] for row in rows)

    return read
