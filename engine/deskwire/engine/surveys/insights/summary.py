"""The summary that is written without a model: the figures in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from deskwire.engine.surveys.insights.scores import QuestionScore, scoring_of
from deskwire.engine.surveys.insights.themes import Theme

_SHOWN: Final = 3


def plain_summary(
    responses: int,
    scores: Sequence[QuestionScore],
    themes: Sequence[Theme],
    drivers: Sequence[Mapping[str, Any]],
) -> str:
    """Return sentences on the responses, the scores, the most mentioned themes and the strongest driver; in English."""
    parts = [f"{responses:,} response{'' if responses == 1 else 's'}."]
    for score in scores:
        if score.score is not None:
            scoring = scoring_of(score.question)
            name = scoring.name[:1].upper() + scoring.name[1:]
            parts.append(f"{name} {score.score:g}{scoring.unit} from {score.count:,}.")
    if themes:
        mentioned = ", ".join(
            f"{theme.title} ({theme.count:,}, {theme.sentiment})" for theme in themes[:_SHOWN]
        )
        parts.append(f"Mentioned most: {mentioned}.")
    if drivers:
        strongest = drivers[0]
        direction = "up" if strongest["impact"] > 0 else "down"
        parts.append(f"The score goes {direction} with: {strongest['title']} ({strongest['impact']:+g}).")
    return " ".join(parts)
