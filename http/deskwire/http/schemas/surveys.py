"""Surveys, their responses and insights as the API shows them (contract 2.1, decisions 7)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from deskwire.engine.surveys.definition import QuestionType
from deskwire.engine.surveys.insights.comments import Sentiment
from deskwire.engine.surveys.insights.insights import Source
from deskwire.engine.surveys.survey import Status
from deskwire.http.schemas.base import Count, Moment, ResponseId, Shape, SurveyId
from deskwire.http.schemas.conversations import BackendUserId

Texts = Annotated[
    dict[str, Annotated[str, Field(min_length=1)]],
    Field(description="A text by language.", examples=[{"en": "How satisfied are you?"}]),
]
QuestionId = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,64}$", examples=["q1"])]
Language = Annotated[str, Field(description="BCP 47.", examples=["en"])]
VersionNumber = Annotated[int, Field(ge=1, examples=[1])]


class Choice(Shape):
    """What may be chosen."""

    id: QuestionId
    label: Texts


class Question(Shape):
    """A question. `min` and `max` are a scale's ends, a number's, a text's length, or how many are chosen."""

    id: QuestionId
    type: Annotated[QuestionType, Field(examples=["csat"])]
    title: Texts
    required: bool | None = None
    choices: Annotated[list[Choice], Field(max_length=100)] | None = None
    min: float | None = None
    max: float | None = None


class Condition(Shape):
    """When a jump is taken; the operators of each type are in the reference of surveys."""

    op: Annotated[str, Field(examples=["lte"])]
    value: Annotated[Any, Field(examples=[2])] = None


class Jump(Shape):
    """Where it goes on from a question: to a later one, or to `end`."""

    from_: Annotated[QuestionId, Field(alias="from")]
    to: Annotated[QuestionId, Field(examples=["end"])]
    when: Condition | None = None


class SurveyDefinition(Shape):
    """A Surveys 2.0 definition. What holds beyond these shapes is in the reference of surveys."""

    schema_version: Literal["2.0"]
    title: Annotated[str, Field(min_length=1, max_length=500, examples=["After the chat"])]
    languages: Annotated[list[Language], Field(min_length=1, max_length=20)]
    primary_language: Language
    questions: Annotated[list[Question], Field(min_length=1, max_length=200)]
    logic: Annotated[list[Jump], Field(max_length=500, examples=[[]])] | None = None
    thank_you: Annotated[Texts, Field(examples=[{"en": "Thank you!"}])] | None = None


class SurveySummary(Shape):
    """A survey without its definition; `version` is the published one."""

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


class DefinitionProblem(Shape):
    """Something that is wrong with a definition."""

    path: Annotated[str, Field(description="A JSON pointer into the definition.", examples=["/questions/0"])]
    code: Annotated[str, Field(examples=["missing_translation"])]
    message: Annotated[str, Field(examples=["The text in de is missing."])]


class Validation(Shape):
    """Whether a definition is right, and everything that is wrong with it."""

    ok: bool
    errors: list[DefinitionProblem]


class Respondent(Shape):
    """Whose response it is."""

    user_id: BackendUserId


class SurveyResponse(Shape):
    """A customer's answers to one version of a survey, by question id."""

    id: ResponseId
    survey_id: SurveyId
    version: VersionNumber
    contact: Respondent | None
    language: Language
    answers: Annotated[dict[str, Any], Field(examples=[{"q1": 5}])]
    created_at: Moment


class Theme(Shape):
    """Something that several comments speak of; `count` is how many."""

    id: Annotated[str, Field(examples=["delivery"])]
    title: Annotated[str, Field(examples=["Delivery"])]
    sentiment: Sentiment
    count: Count
    counts_by_version: Annotated[dict[str, Count], Field(examples=[{"1": 1}])]
    quotes: list[Annotated[str, Field(examples=["It came late."])]]


class Driver(Shape):
    """Something that the score goes up (`impact` above 0) or down with."""

    id: Annotated[str, Field(examples=["delivery"])]
    title: Annotated[str, Field(examples=["Delivery"])]
    impact: Annotated[float, Field(examples=[-0.4])]
    count: Count


class Segment(Shape):
    """A group of respondents and its score."""

    id: Annotated[str, Field(examples=["en"])]
    title: Annotated[str, Field(examples=["English"])]
    size: Count
    score: Annotated[float, Field(examples=[4.2])] | None


class Alert(Shape):
    """Something to look at."""

    id: Annotated[str, Field(examples=["score-fell"])]
    severity: Literal["info", "warning", "critical"]
    message: Annotated[str, Field(examples=["The score has fallen by a point."])]
    created_at: Moment


class Insights(Shape):
    """The stored insights of a survey. With the parameter `version` each theme counts that version alone."""

    themes: list[Theme]
    summary: Annotated[str, Field(examples=["Most are content; deliveries are late."])]
    drivers: list[Driver]
    segments: list[Segment]
    alerts: list[Alert]
    updated_at: Moment | None
    version: Annotated[int, Field(ge=1, description="The parameter `version`, if it was given.")] | None = (
        None
    )


class Score(Shape):
    """What the answers to a scale come to, null without any."""

    question_id: QuestionId
    title: Annotated[str, Field(examples=["How satisfied are you?"])]
    type: QuestionType
    score: Annotated[float, Field(examples=[4.2])] | None
    count: Count


class Refresh(Shape):
    """How a refresh of insights stands, or how it ended; `progress` goes from 0 to 1."""

    status: Literal["running", "done", "failed"]
    progress: Annotated[float, Field(ge=0, le=1, examples=[1.0])]
    started_at: Moment
    ended_at: Moment | None
    error: Annotated[str, Field(examples=["The service was stopped."])] | None
    responses: Count | None
    scores: list[Score]
    source: Source | None
