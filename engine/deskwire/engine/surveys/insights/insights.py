"""The stored insights of a survey, and their form in the API (contract 2.1, 4.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal

from msgspec import Struct

from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.folding import fold

Source = Literal["keywords", "model", "api"]

PARTS: Final[Mapping[str, Any]] = MappingProxyType(
    {"themes": [], "summary": "", "drivers": [], "segments": [], "alerts": []}
)
"""The parts of insights, with their values before the first refresh."""

_IDENTIFYING_WORDS_MIN: Final = 4
_IDENTIFYING_CHARACTERS_MIN: Final = 24
"""Minimum words or characters of a text that identifies its author, unlike a common phrase."""


class Insights(Struct, frozen=True):
    """Stored insights: the parts in the form of the API, their source, and the time (ms) of the refresh."""

    parts: Mapping[str, Any]
    source: Source
    updated_at: int


def insights_view(insights: Insights | None, version: int | None) -> dict[str, Any]:
    """Return the insights in the form of the API. With `version`, themes count the mentions of that version only."""
    parts = dict(PARTS if insights is None else insights.parts)
    shown = {**parts, "updatedAt": iso_or_none(None if insights is None else insights.updated_at)}
    if version is None:
        return shown
    counted = [{**theme, "count": theme["countsByVersion"].get(str(version), 0)} for theme in parts["themes"]]
    return {**shown, "themes": counted, "version": version}


def alert_times(insights: Insights | None) -> dict[str, str]:
    """Return the `createdAt` of each stored alert, by its id."""
    return {} if insights is None else {each["id"]: each["createdAt"] for each in insights.parts["alerts"]}


def theme_ids(insights: Insights | None) -> dict[str, str]:
    """Return the id of each stored theme, by its title."""
    return {} if insights is None else {each["title"]: each["id"] for each in insights.parts["themes"]}


def without_texts(parts: Mapping[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    """Return the insights without anything that repeats one of these texts.

    Quotes of the texts are removed, as are themes and alerts that contain a whole text, and the summary becomes empty.
    Short texts that many people write are removed only where they are a whole quote.
    """
    gone = [fold(text.strip()) for text in texts]
    long = [text for text in gone if _identifies(text)]

    def repeats(quote: str) -> bool:
        plain = fold(quote.strip())
        if any(text.startswith(plain) for text in gone) or any(text in plain for text in long):
            return True
        return _identifies(plain) and any(plain in text for text in gone)

    def has_one(shown: str) -> bool:
        return any(text in fold(shown) for text in long)

    return {
        **parts,
        "themes": [
            {**theme, "quotes": [quote for quote in theme["quotes"] if not repeats(quote)]}
            for theme in parts["themes"]
            if not has_one(theme["title"])
        ],
        "summary": "" if has_one(parts["summary"]) else parts["summary"],
        "alerts": [alert for alert in parts["alerts"] if not has_one(alert["message"])],
    }


def _identifies(text: str) -> bool:
    """Return whether a text is long enough to identify its author."""
    return len(text.split()) >= _IDENTIFYING_WORDS_MIN or len(text) >= _IDENTIFYING_CHARACTERS_MIN


RefreshStatus = Literal["running", "done", "failed"]


class Refresh(Struct, frozen=True):
    """A refresh that is running, done or failed. Times are in milliseconds.

    Args:
        progress: the completed share, 0 to 1.
        error: the reason of the failure.
        responses: the number of responses used.
        scores: in the form of `scores.scores_view`.
        source: of the themes.
    """

    status: RefreshStatus
    started_at: int
    progress: float = 0.0
    ended_at: int | None = None
    error: str | None = None
    responses: int | None = None
    scores: Sequence[Mapping[str, Any]] = ()
    source: Source | None = None


def refresh_view(refresh: Refresh) -> dict[str, Any]:
    """Return the refresh in the form of the API."""
    return {
        "status": refresh.status,
        "progress": round(refresh.progress, 2),
        "startedAt": iso(refresh.started_at),
        "endedAt": iso_or_none(refresh.ended_at),
        "error": refresh.error,
        "responses": refresh.responses,
        "scores": [dict(each) for each in refresh.scores],
        "source": refresh.source,
    }
