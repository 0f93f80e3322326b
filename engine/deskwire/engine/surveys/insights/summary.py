"""The summary that is written without a model: the figures in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from deskwire.engine.surveys.insights.scores import Score, scoring_of
from deskwire.engine.surveys.insights.themes import Theme

_SHOWN: Final = 3


def plain_summary(
    responses: int, scores: Sequence[Score], themes: Sequence[Theme], drivers: Sequence[Mapping[str, Any]]
) -> str:
    """Return sentences on the responses, the scores, the most mentioned themes and the strongest driver; in English."""
    said = [f"{responses:,} response{'' if responses == 1 else 's'}."]
    for each in scores:
        if each.score is not None:
            scoring = scoring_of(each.question)
            name = scoring.name[:1].upper() + scoring.name[1:]
            said.append(f"{name} {each.score:g}{scoring.unit} from {each.count:,}.")
    if themes:
        mentioned = ", ".join(f"{each.title} ({each.count:,}, {each.sentiment})" for each in themes[:_SHOWN])
        said.append(f"Mentioned most: {mentioned}.")
    if drivers:
        strongest = drivers[0]
        direction = "up" if strongest["impact"] > 0 else "down"
        said.append(f"The score goes {direction} with: {strongest['title']} ({strongest['impact']:+g}).")
    return " ".join(said)
