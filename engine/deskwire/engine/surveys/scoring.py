"""Scores of the answers to a scale: NPS, CSAT, and means for CES and ratings (decisions 7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

_PROMOTER: Final = 9
_DETRACTOR: Final = 6
_SATISFIED: Final = 4
_LOW: Final = 0.4
_HIGH: Final = 0.6
_DROP_SHARE: Final = 0.1
"""The fall of a mean that raises an alert, as a share of the scale's length."""

Scale = tuple[int, int]
"""The lowest and the highest answer of a scale."""


def leaning(answer: int, scale: Scale) -> int:
    """Return 1 for an answer in the upper part of a scale, -1 in the lower part, and 0 in between."""
    low, high = scale
    share = (answer - low) / (high - low)
    return 1 if share > _HIGH else -1 if share < _LOW else 0


class Scoring(Struct, frozen=True):
    """A method to score the answers to a scale.

    Args:
        name: the name of the score within a sentence.
        score: computes the score of one or more answers.
        feeling: tells a good (1), a mixed (0) and a bad (-1) experience apart by one answer.
        unit: follows the score in a sentence.
        drop: the fall of the score that raises an alert; None for a tenth of the scale's length.
    """

    name: str
    score: Callable[[Sequence[int]], float]
    feeling: Callable[[int, Scale], int] = leaning
    unit: str = ""
    drop: float | None = None

    def drop_of(self, scale: Scale) -> float:
        """Return the fall of the score that raises an alert, for a question with this scale."""
        low, high = scale
        return (high - low) * _DROP_SHARE if self.drop is None else self.drop


def mean(answers: Sequence[int]) -> float:
    """Return the mean, rounded to two decimal places."""
    return round(sum(answers) / len(answers), 2)


def _nps(answers: Sequence[int]) -> float:
    """Return the percentage of 9 and 10 minus that of 0 to 6, from -100 to 100."""
    promoters = sum(answer >= _PROMOTER for answer in answers)
    detractors = sum(answer <= _DETRACTOR for answer in answers)
    return round(100 * (promoters - detractors) / len(answers), 1)


def _nps_feeling(answer: int, scale: Scale) -> int:
    return 1 if answer >= _PROMOTER else -1 if answer <= _DETRACTOR else 0


def _csat(answers: Sequence[int]) -> float:
    """Return the percentage of 4 and 5."""
    return round(100 * sum(answer >= _SATISFIED for answer in answers) / len(answers), 1)


NPS: Final = Scoring("NPS", _nps, _nps_feeling, drop=10.0)
CSAT: Final = Scoring("CSAT", _csat, unit=" %", drop=10.0)
CES: Final = Scoring("CES", mean)
RATING: Final = Scoring("rating", mean)
