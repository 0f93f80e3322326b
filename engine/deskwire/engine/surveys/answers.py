"""Validation of a respondent's answers against the survey definition (decisions 7)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from deskwire.engine.core.errors import Problem
from deskwire.engine.definitions.checks import escaped
from deskwire.engine.surveys.definition import SurveyDefinition
from deskwire.engine.surveys.logic import questions_asked
from deskwire.engine.surveys.question_types import TYPES


def answer_problems(definition: SurveyDefinition, answers: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of the answers; pointers begin with `/answers`.

    An answer to a question that the logic skips is refused, because the respondent never saw the question. The path is
    known up to the first invalid answer; later answers are checked without it.
    """
    known = {question.id for question in definition.questions}
    wrong = {
        question.id: list(
            TYPES[question.type].problems(question, answers[question.id], _pointer(question.id))
        )
        for question in definition.questions
        if question.id in answers
    }
    problems = [
        Problem(_pointer(name), "unknown_question", "The survey has no question with this id.")
        for name in answers
        if name not in known
    ]
    seen: set[str] = set()
    for question in questions_asked(definition, answers):
        seen.add(question.id)
        if question.id not in answers and question.required:
            problems.append(Problem(_pointer(question.id), "required", "This question must be answered."))
            break
        if wrong.get(question.id):
            break
    else:
        problems += [
            Problem(_pointer(name), "not_asked", "With the other answers this question is not asked.")
            for name in wrong
            if name not in seen
        ]
    return [*problems, *chain.from_iterable(wrong.values())]


def _pointer(question_id: str) -> str:
    return f"/answers/{escaped(question_id)}"
