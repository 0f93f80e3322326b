"""A survey definition (Surveys 2.0) as typed values (decisions 7).

`definition_of` reads definitions that `validation.validate` has accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, cast

from msgspec import Struct

QuestionType = Literal[
    "nps",
    "csat",
    "ces",
    "rating",
    "single_choice",
    "multiple_choice",
    "text",
    "number",
    "date",
    "boolean",
]
"""The types of questions; `question_types.TYPES` has the rules of each."""

Operator = Literal["eq", "ne", "lt", "lte", "gt", "gte", "in", "contains", "answered", "not_answered"]
"""The operators of conditions; each type of question supports some of them."""

SCHEMA_VERSION: Final = "2.0"
END: Final = "end"
"""The target of a jump that ends the survey."""


class Condition(Struct, frozen=True):
    """The condition of a jump. `value` is None for operators without a value."""

    op: Operator
    value: Any = None


class Jump(Struct, frozen=True):
    """A jump from a question to a later one or to the end, with an optional condition."""

    source: str
    target: str
    when: Condition | None


class Question(Struct, frozen=True):
    """A question. Titles and labels are texts by language; `minimum` and `maximum` depend on the type."""

    id: str
    type: QuestionType
    title: Mapping[str, str]
    required: bool = False
    choices: Mapping[str, Mapping[str, str]] | None = None
    minimum: float | None = None
    maximum: float | None = None


class SurveyDefinition(Struct, frozen=True):
    """The questions of a survey, and the jumps between them."""

    title: str
    languages: tuple[str, ...]
    primary_language: str
    questions: tuple[Question, ...]
    logic: tuple[Jump, ...]

    def question(self, question_id: str) -> Question | None:
        """Return the question with this id, None if there is none."""
        return next((each for each in self.questions if each.id == question_id), None)


def definition_of(value: Mapping[str, Any]) -> SurveyDefinition:
    """Convert a valid definition."""
    return SurveyDefinition(
        value["title"],
        tuple(value["languages"]),
        value["primaryLanguage"],
        tuple(question_of(each) for each in value["questions"]),
        tuple(jump_of(each) for each in value.get("logic", ())),
    )


def question_of(value: Mapping[str, Any]) -> Question:
    """Convert a valid question."""
    choices = value.get("choices")
    return Question(
        value["id"],
        cast(QuestionType, value["type"]),
        value["title"],
        value.get("required", False),
        None if choices is None else {each["id"]: each["label"] for each in choices},
        value.get("min"),
        value.get("max"),
    )


def jump_of(value: Mapping[str, Any]) -> Jump:
    """Convert a valid jump."""
    when = value.get("when")
    return Jump(
        value["from"], value["to"], None if when is None else Condition(when["op"], when.get("value"))
    )


def localized(texts: Mapping[str, str], *languages: str) -> str:
    """Return the text in the first available of these languages, else in any, else an empty text."""
    for language in languages:
        if language in texts:
            return texts[language]
    return next(iter(texts.values()), "")
