"""What a scale's answers come to: NPS, CSAT, CES, ratings (decisions 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from deskwire.engine.surveys.definition import Question, localized
from deskwire.engine.surveys.insights.sample import Sample

_PROMOTER: Final = 9
_DETRACTOR: Final = 6
_SATISFIED: Final = 4
_LOW: Final = 0.4
_HIGH: Final = 0.6


@dataclass(frozen=True, slots=True)
class Score:
    """What the answers to a question come to, None without any."""

    question: Question
    score: float | None
    count: int


def score_of(question: Question, answers: Sequence[int]) -> float | None:
    """The score of a scale's answers, None if there are none.

    NPS is the percentage of 9 and 10 less that of 0 to 6, from -100 to 100; CSAT is the percentage of 4 and 5;
    CES and ratings are means. Percentages have one digit behind the point, means two.
    """
    if not answers:
        return None
    if question.type == "nps":
        promoters = sum(answer >= _PROMOTER for answer in answers)
        detractors = sum(answer <= _DETRACTOR for answer in answers)
        return round(100 * (promoters - detractors) / len(answers), 1)
    if question.type == "csat":
        return round(100 * sum(answer >= _SATISFIED for answer in answers) / len(answers), 1)
    return round(sum(answers) / len(answers), 2)


def feeling(question: Question, answer: int) -> int:
    """Whether an answer speaks of a good (1), a mixed (0) or a bad (-1) experience."""
    if question.type == "nps":
        return 1 if answer >= _PROMOTER else -1 if answer <= _DETRACTOR else 0
    assert question.scale is not None, "only scales are scored"
    low, high = question.scale
    share = (answer - low) / (high - low)
    return 1 if share > _HIGH else -1 if share < _LOW else 0


def scores(sample: Sample) -> list[Score]:
    """The score of each scale of the published version."""
    found: list[Score] = []
    for question in sample.definition.questions:
        if question.scale is not None:
            given = [answer for answer in sample.answers(question) if answer is not None]
            found.append(Score(question, score_of(question, given), len(given)))
    return found


def scores_view(found: Sequence[Score], language: str) -> list[dict[str, Any]]:
    """The scores as the API shows them."""
    return [
        {
            "questionId": each.question.id,
            "title": localized(each.question.title, language),
            "type": each.question.type,
            "score": each.score,
            "count": each.count,
        }
        for each in found
    ]
