"""Surveys, their responses and insights in the API (contract 2.1, decisions 7)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from deskwire.engine.surveys.definition import QuestionType
from deskwire.engine.surveys.figures import Bucket
from deskwire.engine.surveys.insights.alerts import Severity
from deskwire.engine.surveys.insights.comments import Sentiment
from deskwire.engine.surveys.insights.insights import RefreshStatus, Source
from deskwire.engine.surveys.survey import Status
from deskwire.http.schemas.base import Count, Moment, ResponseId, Shape, SurveyId
from deskwire.http.schemas.conversations import BackendUserId

Texts = Annotated[
    dict[str, Annotated[str, Field(min_length=1)]],
    Field(
        description="The text in each language, by language tag.", examples=[{"en": "How satisfied are you?"}]
    ),
]
QuestionId = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,64}$", examples=["q1"])]
Language = Annotated[str, Field(description="A language tag (BCP 47).", examples=["en"])]
VersionNumber = Annotated[int, Field(ge=1, examples=[1])]


class SurveyChoice(Shape):
    """A choice of a question."""

    id: QuestionId
    label: Texts


class SurveyQuestion(Shape):
    """A question. `min` and `max` bound a scale, a number, the length of a text, or the number of choices."""

    id: QuestionId
    type: Annotated[QuestionType, Field(examples=["csat"])]
    title: Texts
    required: bool | None = None
    choices: Annotated[list[SurveyChoice], Field(max_length=100)] | None = None
    min: float | None = None
    max: float | None = None


class SurveyCondition(Shape):
    """The condition of a jump. The reference of surveys lists the operators for each type of question."""

    op: Annotated[str, Field(examples=["lte"])]
    value: Annotated[Any, Field(examples=[2])] = None


class SurveyJump(Shape):
    """A jump from a question to a later one, or to `end`."""

    from_: Annotated[QuestionId, Field(alias="from")]
    to: Annotated[QuestionId, Field(examples=["end"])]
    when: SurveyCondition | None = None


class SurveyDefinition(Shape):
    """A Surveys 2.0 definition. The reference of surveys has further rules."""

    schema_version: Literal["2.0"]
    title: Annotated[str, Field(min_length=1, max_length=500, examples=["After the chat"])]
    languages: Annotated[list[Language], Field(min_length=1, max_length=20)]
    primary_language: Language
    questions: Annotated[list[SurveyQuestion], Field(min_length=1, max_length=200)]
    logic: Annotated[list[SurveyJump], Field(max_length=500, examples=[[]])] | None = None
    thank_you: Annotated[Texts, Field(examples=[{"en": "Thank you!"}])] | None = None


class SurveySummary(Shape):
    """A survey without its definition. `version` is the published version."""

    id: SurveyId
    name: Annotated[str, Field(examples=["After the chat"])]
    status: Status
    version: VersionNumber
    responses: Count
    created_at: Moment
    updated_at: Moment


class Survey(SurveySummary):
    """A survey with the definition of its published version."""

    definition: SurveyDefinition


class SurveyVersionSummary(Shape):
    """A version of a survey, without its definition."""

    survey_id: SurveyId
    version: VersionNumber
    published: bool
    created_at: Moment


class SurveyVersion(SurveyVersionSummary):
    """A version of a survey."""

    definition: SurveyDefinition


class SurveyProblem(Shape):
    """A problem with a definition."""

    path: Annotated[str, Field(description="A JSON pointer into the definition.", examples=["/questions/0"])]
    code: Annotated[str, Field(examples=["missing_translation"])]
    message: Annotated[str, Field(examples=["The text in de is missing."])]


class SurveyValidation(Shape):
    """The result of a validation: `ok` is true if there are no `errors`."""

    ok: bool
    errors: list[SurveyProblem]


class SurveyRespondent(Shape):
    """The contact who gave a response."""

    user_id: BackendUserId


class SurveyResponse(Shape):
    """A customer's answers to one version of a survey, by question id."""

    id: ResponseId
    survey_id: SurveyId
    version: VersionNumber
    contact: SurveyRespondent | None
    language: Language
    answers: Annotated[dict[str, Any], Field(examples=[{"q1": 5}])]
    created_at: Moment


class SurveyTheme(Shape):
    """A theme that several comments mention. `count` is the number of mentions."""

    id: Annotated[str, Field(examples=["delivery"])]
    title: Annotated[str, Field(examples=["Delivery"])]
    sentiment: Sentiment
    count: Count
    counts_by_version: Annotated[dict[str, Count], Field(examples=[{"1": 1}])]
    quotes: list[Annotated[str, Field(examples=["It came late."])]]


class SurveyDriver(Shape):
    """A factor that raises the score (`impact` above 0) or lowers it."""

    id: Annotated[str, Field(examples=["delivery"])]
    title: Annotated[str, Field(examples=["Delivery"])]
    impact: Annotated[float, Field(examples=[-0.4])]
    count: Count


class SurveySegment(Shape):
    """A group of respondents and its score."""

    id: Annotated[str, Field(examples=["en"])]
    title: Annotated[str, Field(examples=["English"])]
    size: Count
    score: Annotated[float, Field(examples=[4.2])] | None


class SurveyAlert(Shape):
    """An alert about a survey."""

    id: Annotated[str, Field(examples=["score-fell"])]
    severity: Severity
    message: Annotated[str, Field(examples=["The score has fallen by a point."])]
    created_at: Moment


class SurveyInsights(Shape):
    """The stored insights of a survey. With the parameter `version`, each theme counts mentions of that version only."""

    themes: list[SurveyTheme]
    summary: Annotated[str, Field(examples=["Most are content; deliveries are late."])]
    drivers: list[SurveyDriver]
    segments: list[SurveySegment]
    alerts: list[SurveyAlert]
    updated_at: Moment | None
    version: Annotated[int, Field(ge=1, description="The parameter `version`, if it was given.")] | None = (
        None
    )


class SurveyScore(Shape):
    """The score of a scale question, null without answers."""

    question_id: QuestionId
    title: Annotated[str, Field(examples=["How satisfied are you?"])]
    type: QuestionType
    score: Annotated[float, Field(examples=[4.2])] | None
    count: Count


class InsightsRefresh(Shape):
    """The state of a refresh of insights, running or ended. `progress` goes from 0 to 1."""

    status: RefreshStatus
    progress: Annotated[float, Field(ge=0, le=1, examples=[1.0])]
    started_at: Moment
    ended_at: Moment | None
    error: Annotated[str, Field(examples=["The service was stopped."])] | None
    responses: Count | None
    scores: list[SurveyScore]
    source: Source | None


Day = Annotated[
    str,
    Field(
        description="The first day of the step.",
        pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
        examples=["2026-11-02"],
    ),
]


class SurveyAnswerCount(Shape):
    """The number of times that an answer was given. `value` is a choice's id, a number of the scale, `true` or `false`."""

    value: Annotated[str, Field(examples=["5"])]
    label: Annotated[
        str, Field(description="The text of a choice in the primary language, else `value`.", examples=["5"])
    ]
    count: Count


class SurveyScoreStep(Shape):
    """The score of the answers of one step."""

    day: Day
    score: Annotated[float, Field(examples=[4.2])]
    answered: Count


class SurveyQuestionFigures(Shape):
    """The answers to a question: the score of a scale, the mean of numbers, the counts of choices.

    `counts` is empty for texts, numbers and dates, `series` for questions without a score. Steps without an answer are omitted.
    """

    id: QuestionId
    type: QuestionType
    title: Annotated[str, Field(examples=["How satisfied are you?"])]
    answered: Count
    score: Annotated[float, Field(examples=[4.2])] | None
    counts: list[SurveyAnswerCount]
    series: list[SurveyScoreStep]


class SurveyResponseStep(Shape):
    """The number of responses in one step."""

    day: Day
    responses: Count


class SurveyFigures(Shape):
    """The figures of a survey, for responses from `from` up to, but excluding, `to`. Steps without a response are omitted.

    `refresh` is the running or last refresh of its insights; null if there was none.
    """

    survey_id: SurveyId
    version: VersionNumber | None
    from_: Annotated[Moment, Field(alias="from")]
    to: Moment
    timezone: Annotated[str, Field(examples=["Europe/Berlin"])]
    bucket: Bucket
    computed_at: Moment
    responses: Count
    series: list[SurveyResponseStep]
    questions: list[SurveyQuestionFigures]
    refresh: InsightsRefresh | None
