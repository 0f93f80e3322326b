"""The export of responses as CSV: one column for each question, safe to open in a spreadsheet (RFC 4180)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from deskwire.engine.core.clock import iso
from deskwire.engine.core.spreadsheet import BYTE_ORDER_MARK, csv_lines, escape_formula
from deskwire.engine.surveys.definition import Question, SurveyDefinition, localized
from deskwire.engine.surveys.question_types import TYPES
from deskwire.engine.surveys.survey import SurveyResponse

_FIXED: Final = ("id", "createdAt", "version", "language", "userId")


class QuestionColumn(Struct, frozen=True):
    """The column of a question: its heading, and the question in each version."""

    head: str
    question_id: str
    by_version: Mapping[int, Question]
    primary_language: str


def columns(definitions: Mapping[int, SurveyDefinition]) -> list[QuestionColumn]:
    """Return the columns: the questions of the newest version in order, then those that only older versions have."""
    by_question: dict[str, QuestionColumn] = {}
    for newest in sorted(definitions, reverse=True):
        language = definitions[newest].primary_language
        for question in definitions[newest].questions:
            if question.id not in by_question:
                versions = {
                    number: same
                    for number, definition in definitions.items()
                    if (same := definition.question(question.id)) is not None
                }
                head = f"{localized(question.title, language)} [{question.id}]"
                by_question[question.id] = QuestionColumn(head, question.id, versions, language)
    return list(by_question.values())


def head_line(shown: Sequence[QuestionColumn]) -> str:
    """Return a byte order mark and the first line."""
    return BYTE_ORDER_MARK + csv_lines([[*_FIXED, *(escape_formula(column.head) for column in shown)]])


def lines(shown: Sequence[QuestionColumn], responses: Iterable[SurveyResponse]) -> str:
    """Return a line for each response."""
    return csv_lines(_cells(shown, response) for response in responses)


def _cells(shown: Sequence[QuestionColumn], response: SurveyResponse) -> list[str]:
    fixed = [
        response.id,
        iso(response.created_at),
        str(response.version),
        response.language,
        response.user_id or "",
    ]
    return [*(escape_formula(cell) for cell in fixed), *(_cell(column, response) for column in shown)]


def _cell(column: QuestionColumn, response: SurveyResponse) -> str:
    """Return an answer as readable text, safe in a spreadsheet."""
    answer, question = response.answers.get(column.question_id), column.by_version.get(response.version)
    if answer is None or question is None:
        return ""
    words = TYPES[question.type].words(question, answer, column.primary_language)
    return (
        words if isinstance(answer, int | float) else escape_formula(words)
    )  # a number is safe: negative ones are not formulas
