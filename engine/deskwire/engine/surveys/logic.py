"""The logic of a survey: conditions of jumps, representative answers, and the path of a respondent (decisions 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, assert_never, get_args

from deskwire.engine.core.folding import fold
from deskwire.engine.surveys.definition import END, Condition, Operator, Question, SurveyDefinition
from deskwire.engine.surveys.question_types import TYPES

OPERATORS: Final[tuple[Operator, ...]] = get_args(Operator)
PRESENCE: Final[tuple[Operator, ...]] = ("answered", "not_answered")
"""The operators of every type; they take no value."""

_COMPARE: Final[Mapping[Operator, Callable[[Any, Any], bool]]] = {
    "eq": eq,
    "ne": ne,
    "lt": lt,
    "lte": le,
    "gt": gt,
    "gte": ge,
}


def holds(condition: Condition | None, answer: Any) -> bool:
    """Return whether an answer meets a condition; None stands for no answer, which only `not_answered` accepts."""
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
    """Return answers that cover every combination of these conditions; None for types with too many answers.

    These are all answers of a scale or a choice, and for numbers and dates those at and around the conditions' values.
    None in the list stands for no answer.
    """
    answers = TYPES[question.type].representative_answers(question, _values(conditions))
    if answers is None or question.required:
        return answers
    return [*answers, None]


def _values(conditions: Iterable[Condition | None]) -> list[Any]:
    """Return the values with which the conditions compare."""
    values: list[Any] = []
    for condition in conditions:
        if condition is not None and condition.op not in PRESENCE:
            values += condition.value if condition.op == "in" else [condition.value]
    return values


def questions_asked(definition: SurveyDefinition, answers: Mapping[str, Any]) -> Iterator[Question]:
    """Yield the questions in the order in which they are asked.

    The first jump of a question whose condition holds is taken; otherwise the next question follows. The loop ends
    because valid jumps lead forwards.
    """
    positions = {question.id: position for position, question in enumerate(definition.questions)}
    position = 0
    while position < len(definition.questions):
        question = definition.questions[position]
        yield question
        target = _target(definition, question, answers.get(question.id))
        if target == END:
            return
        position = position + 1 if target is None else positions[target]


def _target(definition: SurveyDefinition, question: Question, answer: Any) -> str | None:
    for jump in definition.logic:
        if jump.source == question.id and holds(jump.when, answer):
            return jump.target
    return None
