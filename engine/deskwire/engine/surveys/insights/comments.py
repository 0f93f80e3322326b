"""The comments of respondents: answers in their own words, bounded, with how they felt (decisions 7)."""

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
"""Characters of one comment that are looked at."""
TOTAL_MAX: Final = 4_000_000
"""Characters of all comments together that are looked at, the newest first."""
_LEANING: Final = 0.25

Sentiment = Literal["positive", "neutral", "negative"]


class Comment(Struct, frozen=True):
    """One answer in words. `feeling` is that of the response's score (`scores.feeling`), None without one.

    `respondent` is the same in all comments of one person, as far as that is known.
    """

    text: str
    version: int
    language: str
    respondent: str
    feeling: int | None
    at: int


def comments(sample: Sample) -> list[Comment]:
    """Return the answers in the respondents' own words, newest first, up to the bounds."""
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
    """Return what feelings from -1 to 1 lean to in the mean, neutral without any."""
    mean = sum(feelings) / len(feelings) if feelings else 0.0
    return "positive" if mean > _LEANING else "negative" if mean < -_LEANING else "neutral"


def counts_by_version(mentions: Sequence[Comment]) -> dict[str, int]:
    """Count the comments of each version, by its number as a text."""
    counts: dict[str, int] = {}
    for comment in mentions:
        counts[str(comment.version)] = counts.get(str(comment.version), 0) + 1
    return counts
