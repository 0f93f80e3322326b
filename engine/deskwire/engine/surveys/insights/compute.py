"""Computes insights from a sample: figures in a thread, themes and summary by text analysis or by a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import trio
from msgspec import Struct

from deskwire.engine.llm.chat import ChatModel
from deskwire.engine.surveys.insights.alerts import alerts
from deskwire.engine.surveys.insights.by_model import model_summary, model_themes
from deskwire.engine.surveys.insights.comments import Comment, comments
from deskwire.engine.surveys.insights.drivers import drivers, segments
from deskwire.engine.surveys.insights.insights import Source
from deskwire.engine.surveys.insights.keywords import keyword_themes
from deskwire.engine.surveys.insights.sample import Sample
from deskwire.engine.surveys.insights.scores import QuestionScore, scores, scores_view, scoring_of
from deskwire.engine.surveys.insights.themes import Theme, theme_view

T = TypeVar("T")
_FIGURED, _THEMED = 0.3, 0.9
"""Progress after the figures, and after the themes."""


class Computed(Struct, frozen=True):
    """Computed insights: their parts, the scores, and the source of the themes."""

    parts: Mapping[str, Any]
    scores: Sequence[Mapping[str, Any]]
    source: Source


class _Figures(Struct, frozen=True):
    scores: Sequence[QuestionScore]
    drivers: Sequence[Mapping[str, Any]]
    segments: Sequence[Mapping[str, Any]]
    comments: Sequence[Comment]


async def compute(
    sample: Sample,
    model: ChatModel | None,
    alerted: Mapping[str, str],
    themed: Mapping[str, str],
    now: int,
    *,
    threads: trio.CapacityLimiter,
    progress: Callable[[float], None],
) -> Computed:
    """Compute the insights of a sample at `now` (ms).

    Args:
        alerted: the `createdAt` of stored alerts, by id.
        themed: the ids of stored themes, by title.
        threads: limits the threads.
        progress: called with the completed share, 0 to 1.

    Raises ModelError. Cancellation: a running thread is abandoned; it has no side effects.
    """

    async def in_thread(job: Callable[[], T]) -> T:
        return await trio.to_thread.run_sync(job, limiter=threads, abandon_on_cancel=True)

    figures = await in_thread(partial(_figures, sample))
    progress(_FIGURED)
    if model is None:
        themes = await in_thread(partial(keyword_themes, figures.comments, themed))
    else:
        themes = await model_themes(
            model, figures.comments, lambda share: progress(_FIGURED + share * (_THEMED - _FIGURED))
        )
    progress(_THEMED)
    raised = await in_thread(partial(alerts, sample, themes, figures.comments, alerted, now))
    language = sample.definition.primary_language
    shown = scores_view(figures.scores, language)
    if model is None:
        summary = plain_summary(len(sample.responses), figures.scores, themes, figures.drivers)
    else:
        summary = await model_summary(
            model, language, _figures_for_model(sample, shown, figures, themes, raised)
        )
    parts = {
        "themes": [theme_view(theme) for theme in themes],
        "summary": summary,
        "drivers": figures.drivers,
        "segments": figures.segments,
        "alerts": raised,
    }
    return Computed(parts, shown, "keywords" if model is None else "model")


def _figures(sample: Sample) -> _Figures:
    return _Figures(scores(sample), drivers(sample), segments(sample), comments(sample))


def _figures_for_model(
    sample: Sample,
    shown: Sequence[Mapping[str, Any]],
    figures: _Figures,
    themes: Sequence[Theme],
    raised: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the input of the model for its summary: figures and the titles of themes, without comments."""
    return {
        "survey": sample.definition.title,
        "responses": len(sample.responses),
        "scores": shown,
        "themes": [
            {"title": theme.title, "mentions": theme.count, "sentiment": theme.sentiment} for theme in themes
        ],
        "drivers": figures.drivers,
        "segments": figures.segments,
        "alerts": [alert["message"] for alert in raised],
    }


_SHOWN: Final = 3


def plain_summary(
    responses: int,
    scores: Sequence[QuestionScore],
    themes: Sequence[Theme],
    drivers: Sequence[Mapping[str, Any]],
) -> str:
    """Return English sentences on responses, scores, the most mentioned themes and the strongest driver."""
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
