"""Scores of questions with a scale: NPS, CSAT, CES, ratings (decisions 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from deskwire.engine.surveys.definition import Question, localized
from deskwire.engine.surveys.insights.sample import Sample
from deskwire.engine.surveys.question_types import TYPES
from deskwire.engine.surveys.scoring import Scale, Scoring


class QuestionScore(Struct, frozen=True):
    """The score of a question, None without answers."""

    question: Question
    score: float | None
    count: int


def score_of(question: Question, answers: Sequence[int]) -> float | None:
    """Return the score of a scale's answers, None without answers."""
    return scoring_of(question).score(answers) if answers else None


def feeling(question: Question, answer: int) -> int:
    """Return 1 for an answer that means a good experience, 0 for a mixed one, -1 for a bad one."""
    return scoring_of(question).feeling(answer, _scale(question))


def drop_threshold(question: Question) -> float:
    """Return the fall of the score that raises an alert."""
    return scoring_of(question).drop_of(_scale(question))


def _scale(question: Question) -> Scale:
    scale = TYPES[question.type].scale(question)
    assert scale is not None, "only scales are scored"
    return scale


def scoring_of(question: Question) -> Scoring:
    """Return the scoring method of a scale."""
    scoring = TYPES[question.type].scoring
    assert scoring is not None, "only scales are scored"
    return scoring


def scores(sample: Sample) -> list[QuestionScore]:
    """Return the score of each scale of the published version."""
    results: list[QuestionScore] = []
    for question in sample.definition.questions:
        if TYPES[question.type].scoring is not None:
            answers = [answer for answer in sample.answers(question) if answer is not None]
            results.append(QuestionScore(question, score_of(question, answers), len(answers)))
    return results


def scores_view(results: Sequence[QuestionScore], language: str) -> list[dict[str, Any]]:
    """Return the scores in the form of the API."""
    return [
        {
            "questionId": score.question.id,
            "title": localized(score.question.title, language),
            "type": score.question.type,
            "score": score.score,
            "count": score.count,
        }
        for score in results
    ]
