"""The path of a respondent through a survey, which follows from the answers so far (decisions 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deskwire.engine.surveys.conditions import holds
from deskwire.engine.surveys.definition import END, Question, SurveyDefinition


def questions_asked(definition: SurveyDefinition, answers: Mapping[str, Any]) -> Iterator[Question]:
    """Yield the questions in the order in which they are asked.

    From each question the first jump whose condition holds is taken; without one the next question follows.
    This ends, as valid jumps only lead forwards.
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
