"""The figures of a survey: the number of each answer, and the scores over time (ADR 20).

Each request counts the stored responses, so erased responses never show in the figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from datetime import date
from typing import Any, Final, Literal, Self

import orjson
from msgspec import Struct, field

from deskwire.engine.surveys.definition import Question, SurveyDefinition, localized
from deskwire.engine.surveys.insights.scores import score_of
from deskwire.engine.surveys.question_types import TYPES
from deskwire.engine.surveys.scoring import mean

Bucket = Literal["day", "week", "month"]
AnswerRow = tuple[int, int, str]
"""The version of a response, its time in milliseconds, and its answers as JSON."""

_QUARTER_MS: Final = 900_000
"""Midnight is at a quarter of an hour UTC in every time zone, so each quarter is within one day."""
_EPOCH: Final = date(1970, 1, 1).toordinal()


class _Cell(Struct):
    """The answers to one question on one day."""

    answered: int = 0
    values: Counter[Any] = field(default_factory=Counter)

    def __iadd__(self, other: _Cell) -> Self:
        self.answered += other.answered
        self.values.update(other.values)
        return self


class AnswerTally:
    """Counts responses page by page: `of` counts a page, and its result is added to the tally.

    Args:
        definitions: the definition of every version.
        shown: the version whose questions are counted. Another version counts if its question of the same id has the same
            type and scale, as in insights.
        day_of: tells the number of the day that a time (ms) is on.
    """

    def __init__(
        self, definitions: Mapping[int, SurveyDefinition], shown: int, day_of: Callable[[int], int]
    ) -> None:
        self._definition = definitions[shown]
        self._counted = {number: _counted(self._definition, each) for number, each in definitions.items()}
        self._day_of = day_of
        self._quarters: dict[int, int] = {}
        self._days: Counter[int] = Counter()
        self._cells: dict[str, dict[int, _Cell]] = {each.id: {} for each in self._definition.questions}

    def of(self, rows: Iterable[AnswerRow]) -> AnswerTally:
        """Return the tally of these responses. It leaves this tally unchanged, so a retried read counts nothing twice."""
        part = copy(self)
        part._days, part._cells = Counter(), {name: {} for name in self._cells}
        part._add(rows)
        return part

    def __iadd__(self, other: AnswerTally) -> Self:
        self._days.update(other._days)
        for name, cells in other._cells.items():
            mine = self._cells[name]
            for day, cell in cells.items():
                mine[day] = mine.get(day, _Cell())
                mine[day] += cell
        return self

    def _add(self, rows: Iterable[AnswerRow]) -> None:
        for version, at, answers in rows:
            day = self._day(at)
            self._days[day] += 1
            counted = self._counted.get(version, {})
            for name, value in orjson.loads(answers).items():
                by = counted.get(name)
                if by is not None:
                    cells = self._cells[name]
                    cell = cells.get(day)
                    if cell is None:
                        cell = cells[day] = _Cell()
                    cell.answered += 1
                    if by == "each":
                        cell.values.update(value)
                    elif by == "whole":
                        cell.values[value] += 1

    def view(self, bucket: Bucket) -> dict[str, Any]:
        """Return the figures in the form of the API, without empty buckets."""
        begins = {day: _begin(day, bucket) for day in sorted(self._days)}
        responses: Counter[str] = Counter()
        for day, first in begins.items():
            responses[first] += self._days[day]
        return {
            "responses": self._days.total(),
            "series": [{"day": first, "responses": count} for first, count in responses.items()],
            "questions": [self._question(question, begins) for question in self._definition.questions],
        }

    def _day(self, at: int) -> int:
        quarter = at // _QUARTER_MS
        day = self._quarters.get(quarter)
        if day is None:
            day = self._quarters[quarter] = self._day_of(at)
        return day

    def _question(self, question: Question, begins: Mapping[int, str]) -> dict[str, Any]:
        whole, parts = _Cell(), dict[str, _Cell]()
        cells = self._cells[question.id]
        for day, first in begins.items():
            if day in cells:
                whole += cells[day]
                parts[first] = parts.get(first, _Cell())
                parts[first] += cells[day]
        scored = _scored(question)
        return {
            "id": question.id,
            "type": question.type,
            "title": localized(question.title, self._definition.primary_language),
            "answered": whole.answered,
            "score": _score(question, whole) if scored else None,
            "counts": list(_counts(question, whole, self._definition.primary_language)),
            "series": [
                {"day": first, "score": _score(question, cell), "answered": cell.answered}
                for first, cell in parts.items()
            ]
            if scored
            else [],
        }


def _counted(shown: SurveyDefinition, other: SurveyDefinition) -> dict[str, str]:
    """Return how to count the questions of a version that are comparable with the shown one."""
    return {
        question.id: TYPES[question.type].counted
        for question in other.questions
        if (same := shown.question(question.id)) is not None
        and same.type == question.type
        and TYPES[same.type].scale(same) == TYPES[question.type].scale(question)
    }


def _begin(day: int, bucket: Bucket) -> str:
    """Return the first day of a day's bucket; weeks begin on Monday."""
    there = date.fromordinal(_EPOCH + day)
    if bucket == "month":
        there = there.replace(day=1)
    elif bucket == "week":
        there = date.fromordinal(there.toordinal() - there.weekday())
    return there.isoformat()


def _scored(question: Question) -> bool:
    return question.type == "number" or TYPES[question.type].scoring is not None


def _score(question: Question, cell: _Cell) -> float | None:
    """Return the score of a scale as in insights, or the mean of numbers; None without answers."""
    answers = list(cell.values.elements())
    if question.type == "number":
        return mean(answers) if answers else None
    return score_of(question, answers)


def _counts(question: Question, cell: _Cell, language: str) -> Iterator[dict[str, Any]]:
    """Yield the count of each possible answer, for types with a fixed set of answers."""
    scale = TYPES[question.type].scale(question)
    possible: Iterable[tuple[Any, str]] = ()
    if scale is not None:
        possible = ((value, str(value)) for value in range(scale[0], scale[1] + 1))
    elif question.choices is not None:
        possible = ((name, localized(label, language)) for name, label in question.choices.items())
    elif question.type == "boolean":
        possible = ((True, "true"), (False, "false"))
    for value, label in possible:
        shown = value if isinstance(value, str) else orjson.dumps(value).decode()
        yield {"value": shown, "label": label, "count": cell.values[value]}
