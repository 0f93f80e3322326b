"""The conditions of jumps: whether an answer meets one, and the answers that tell conditions apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final

from deskwire.engine.surveys.definition import Condition, Question
from deskwire.engine.surveys.question_types import TYPES

PRESENCE: Final = ("answered", "not_answered")
"""The operators that every type has and that take no value."""

_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": eq,
    "ne": ne,
    "lt": lt,
    "lte": le,
    "gt": gt,
    "gte": ge,
}

OPERATORS: Final = frozenset((*_COMPARE, "in", "contains", *PRESENCE))
"""Every operator; each type of question has some of them."""


def holds(condition: Condition | None, answer: Any) -> bool:
    """Tell whether a jump with this condition is taken; `answer` is None where none was given.

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
    """Return answers that between them meet these conditions in every possible way; None for open types.

    All answers of a scale or a choice; of numbers and dates those at and around the conditions' values. None
    among them stands for no answer.
    """
    answers = TYPES[question.type].telling_answers(question, _values(conditions))
    if answers is None or question.required:
        return answers
    return [*answers, None]


def _values(conditions: Iterable[Condition | None]) -> list[Any]:
    """Return the single values that the conditions compare with."""
    found: list[Any] = []
    for condition in conditions:
        if condition is not None and condition.op not in PRESENCE:
            found += condition.value if condition.op == "in" else [condition.value]
    return found
