"""The comments of respondents: free-text answers with the sentiment of the respondent's score (decisions 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from deskwire.engine.surveys.insights.sample import Sample
from deskwire.engine.surveys.insights.scores import feeling
from deskwire.engine.surveys.insights.text_analysis.quotes import cut
from deskwire.engine.surveys.question_types import TYPES

COMMENTS_MAX: Final = 20_000
CHARACTERS_MAX: Final = 2_000
"""Characters analysed of one comment."""
TOTAL_MAX: Final = 4_000_000
"""Characters analysed of all comments together, the newest first."""
_LEANING: Final = 0.25

Sentiment = Literal["positive", "neutral", "negative"]


class Comment(Struct, frozen=True):
    """A free-text answer.

    Args:
        respondent: equal in all comments of a known contact.
        feeling: the sentiment of the response's score (`scores.feeling`), None without a score.
    """

    text: str
    version: int
    language: str
    respondent: str
    feeling: int | None
    at: int


def comments(sample: Sample) -> list[Comment]:
    """Return free-text answers, newest first, up to the limits."""
    score = sample.score_question
    felt = [None] * len(sample.responses) if score is None else sample.answers(score)
    texts = {
        number: [question.id for question in definition.questions if TYPES[question.type].is_comment]
        for number, definition in sample.definitions.items()
    }
    newest: list[Comment] = []
    total = 0
    for response, answer in zip(sample.responses, felt, strict=True):
        who = f"r{response.rowid}" if response.contact is None else f"c{response.contact}"
        how = None if answer is None or score is None else feeling(score, answer)
        for question_id in texts[response.version]:
            text = cut(str(response.answers.get(question_id, "")), CHARACTERS_MAX)
            total += len(text)
            if total > TOTAL_MAX or len(newest) == COMMENTS_MAX:
                return newest
            if text:
                newest.append(
                    Comment(text, response.version, response.language, who, how, response.created_at)
                )
    return newest


def leaning(feelings: Sequence[float]) -> Sentiment:
    """Return the sentiment of the mean of values from -1 to 1; neutral without values."""
    mean = sum(feelings) / len(feelings) if feelings else 0.0
    return "positive" if mean > _LEANING else "negative" if mean < -_LEANING else "neutral"


def counts_by_version(mentions: Sequence[Comment]) -> dict[str, int]:
    """Count the comments of each version, by its number as a string."""
    counts: dict[str, int] = {}
    for comment in mentions:
        counts[str(comment.version)] = counts.get(str(comment.version), 0) + 1
    return counts
