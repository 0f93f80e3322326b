"""The export of responses as CSV: one column for each question, safe to open in a spreadsheet (RFC 4180)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from deskwire.engine.core.clock import iso
from deskwire.engine.core.spreadsheet import BYTE_ORDER_MARK, csv_lines, escape_formula
from deskwire.engine.surveys.definition import Definition, Question, localized
from deskwire.engine.surveys.question_types import TYPES
from deskwire.engine.surveys.survey import Response

_FIXED: Final = ("id", "createdAt", "version", "language", "userId")


class Column(Struct, frozen=True):
    """A question's column: its heading, and the question as each version has it."""

    head: str
    question_id: str
    by_version: Mapping[int, Question]
    primary_language: str


def columns(definitions: Mapping[int, Definition]) -> list[Column]:
    """Return the columns for these versions: the newest's questions in their order, then those of older ones alone."""
    by_question: dict[str, Column] = {}
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
                by_question[question.id] = Column(head, question.id, versions, language)
    return list(by_question.values())


def head_line(shown: Sequence[Column]) -> str:
    """Return the first line, with a byte order mark in front."""
    return BYTE_ORDER_MARK + csv_lines([[*_FIXED, *(escape_formula(column.head) for column in shown)]])


def lines(shown: Sequence[Column], responses: Iterable[Response]) -> str:
    """Return a line for each response."""
    return csv_lines(_cells(shown, response) for response in responses)


def _cells(shown: Sequence[Column], response: Response) -> list[str]:
    fixed = [
        response.id,
        iso(response.created_at),
        str(response.version),
        response.language,
        response.user_id or "",
    ]
    return [*(escape_formula(cell) for cell in fixed), *(_cell(column, response) for column in shown)]


def _cell(column: Column, response: Response) -> str:
    """Return an answer as people read it, safe in a spreadsheet."""
    answer, question = response.answers.get(column.question_id), column.by_version.get(response.version)
    if answer is None or question is None:
        return ""
    words = TYPES[question.type].words(question, answer, column.primary_language)
    return (
        words if isinstance(answer, int | float) else escape_formula(words)
    )  # a negative number is no formula
