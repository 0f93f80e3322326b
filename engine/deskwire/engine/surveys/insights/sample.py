"""The responses from which insights are computed, with their definitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from deskwire.engine.surveys.definition import Question, SurveyDefinition
from deskwire.engine.surveys.question_types import TYPES
from deskwire.engine.surveys.survey import SurveyResponse


class Sample(Struct, frozen=True):
    """Responses, newest first, and the definition of every version; `published` is the newest version."""

    definitions: Mapping[int, SurveyDefinition]
    published: int
    responses: Sequence[SurveyResponse]

    @property
    def definition(self) -> SurveyDefinition:
        """The published definition."""
        return self.definitions[self.published]

    @property
    def score_question(self) -> Question | None:
        """The question whose score is the survey's: the first NPS, else CSAT, else CES, else rating."""
        scored = [kind for kind, rules in TYPES.items() if rules.scoring is not None]
        for kind in scored:
            for question in self.definition.questions:
                if question.type == kind:
                    return question
        return None

    def answers(self, question: Question) -> list[Any]:
        """Return the answer of each response to a question, None without one.

        A version counts only if its question with the same id has the same type and scale; otherwise the answers are
        not comparable.
        """
        same = {
            number
            for number, definition in self.definitions.items()
            if (other := definition.question(question.id)) is not None
            and other.type == question.type
            and TYPES[other.type].scale(other) == TYPES[question.type].scale(question)
        }
        return [
            response.answers.get(question.id) if response.version in same else None
            for response in self.responses
        ]
