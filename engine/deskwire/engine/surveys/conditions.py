"""Conditions of jumps: which a type knows, when one holds, and which answers tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final

from deskwire.engine.surveys.definition import Condition, Question

_ORDERED: Final = ("eq", "ne", "lt", "lte", "gt", "gte", "in")
PRESENCE: Final = ("answered", "not_answered")
"""Operators that every type knows and that take no value."""

OPERATORS: Final[Mapping[str, tuple[str, ...]]] = {
    "nps": _ORDERED,
    "csat": _ORDERED,
    "ces": _ORDERED,
    "rating": _ORDERED,
    "number": _ORDERED,
    "date": _ORDERED,
    "single_choice": ("eq", "ne", "in"),
    "multiple_choice": ("contains",),
    "text": ("contains",),
    "boolean": ("eq",),
}
"""The operators that a type of question knows besides those of PRESENCE."""

ALL_OPERATORS: Final = frozenset(op for ops in OPERATORS.values() for op in ops) | set(PRESENCE)
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": eq,
    "ne": ne,
    "lt": lt,
    "lte": le,
    "gt": gt,
    "gte": ge,
}
_DAY: Final = timedelta(days=1)


def holds(condition: Condition | None, answer: Any) -> bool:
    """Whether a jump with this condition is taken; `answer` is None where none was given.

    Without an answer only `not_answered` holds.
    """
    if condition is None:
        return True
    if condition.op in PRESENCE:
        return (answer is not None) == (condition.op == "answered")
    if answer is None:
        return False
    if condition.op == "in":
        return answer in condition.value
    if condition.op == "contains":
        if isinstance(answer, str):
            return str(condition.value).casefold() in answer.casefold()
        return condition.value in answer
    return _COMPARE[condition.op](answer, condition.value)


def telling_answers(question: Question, conditions: Iterable[Condition | None]) -> list[Any] | None:
    """Answers that between them meet these conditions in every way that is possible; None for open types.

    All answers of a scale or a choice; of numbers and dates those at and around the conditions' values. None
    among them stands for no answer.
    """
    given = _given_answers(question, _values(conditions))
    if given is None:
        return None
    return given if question.required else [*given, None]


def _given_answers(question: Question, values: Sequence[Any]) -> list[Any] | None:
    if question.scale is not None:
        low, high = question.scale
        return list(range(low, high + 1))
    match question.type:
        case "single_choice":
            return list(question.choices or ()) or None
        case "boolean":
            return [False, True]
        case "number":
            return _around_numbers(question, values)
        case "date":
            return _around_dates(values)
        case _:
            return None


def _values(conditions: Iterable[Condition | None]) -> list[Any]:
    """The single values that the conditions compare with."""
    found: list[Any] = []
    for condition in conditions:
        if condition is not None and condition.op not in PRESENCE:
            found += condition.value if condition.op == "in" else [condition.value]
    return found


def _around_numbers(question: Question, values: Sequence[float]) -> list[float]:
    marks = sorted({*values, *(bound for bound in (question.minimum, question.maximum) if bound is not None)})
    if not marks:
        return [0]
    between = [(low + high) / 2 for low, high in pairwise(marks)]
    low = marks[0] - 1 if question.minimum is None else question.minimum
    high = marks[-1] + 1 if question.maximum is None else question.maximum
    return [number for number in {low, high, *marks, *between} if low <= number <= high]


def _around_dates(values: Sequence[str]) -> list[str]:
    days = {date.fromisoformat(value) for value in values} or {date(2000, 1, 1)}
    before = {day - _DAY for day in days if day > date.min}
    after = {day + _DAY for day in days if day < date.max}
    return [day.isoformat() for day in days | before | after]
