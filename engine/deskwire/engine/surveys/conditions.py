"""The conditions of jumps: whether an answer meets one, and the answers that tell conditions apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, assert_never, get_args

from deskwire.engine.core.folding import fold
from deskwire.engine.surveys.definition import Condition, Operator, Question
from deskwire.engine.surveys.question_types import TYPES

OPERATORS: Final[tuple[Operator, ...]] = get_args(Operator)
PRESENCE: Final[tuple[Operator, ...]] = ("answered", "not_answered")
"""The operators that every type has and that take no value."""

_COMPARE: Final[Mapping[Operator, Callable[[Any, Any], bool]]] = {
    "eq": eq,
    "ne": ne,
    "lt": lt,
    "lte": le,
    "gt": gt,
    "gte": ge,
}


def holds(condition: Condition | None, answer: Any) -> bool:
    """Tell whether a jump with this condition is taken; `answer` is None where none was given.

    Without an answer only `not_answered` holds.
    """
    if condition is None:
        return True
    if answer is None:
        return condition.op == "not_answered"
    match condition.op:
        case "answered":
            return True
        case "not_answered":
            return False
        case "in":
            return answer in condition.value
        case "contains":
            if isinstance(answer, str):
                return fold(str(condition.value)) in fold(answer)
            return condition.value in answer
        case "eq" | "ne" | "lt" | "lte" | "gt" | "gte":
            return _COMPARE[condition.op](answer, condition.value)
        case _:
            assert_never(condition.op)


def representative_answers(question: Question, conditions: Iterable[Condition | None]) -> list[Any] | None:
    """Return answers that between them meet these conditions in every possible way; None for open types.

    All answers of a scale or a choice; of numbers and dates those at and around the conditions' values. None
    among them stands for no answer.
    """
    answers = TYPES[question.type].representative_answers(question, _values(conditions))
    if answers is None or question.required:
        return answers
    return [*answers, None]


def _values(conditions: Iterable[Condition | None]) -> list[Any]:
    """Return the single values that the conditions compare with."""
    values: list[Any] = []
    for condition in conditions:
        if condition is not None and condition.op not in PRESENCE:
            values += condition.value if condition.op == "in" else [condition.value]
    return values
