"""The stored insights of a survey, and their form in the API (contract 2.1, 4.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal

from msgspec import Struct

from deskwire.engine.core.clock import iso_or_none
from deskwire.engine.core.folding import fold

Source = Literal["keywords", "model", "api"]

PARTS: Final[Mapping[str, Any]] = MappingProxyType(
    {"themes": [], "summary": "", "drivers": [], "segments": [], "alerts": []}
)
"""The parts of insights, with the values that they have when nothing is stored yet."""

_TELLING_WORDS: Final = 4
_TELLING_CHARACTERS: Final = 24
"""The words or characters from which on a text is somebody's own, not a phrase."""


class Insights(Struct, frozen=True):
    """Stored insights: the parts as the API shows them, their source, and the time (ms) at which they were made."""

    parts: Mapping[str, Any]
    source: Source
    updated_at: int


def insights_view(insights: Insights | None, version: int | None) -> dict[str, Any]:
    """Return the insights as the API shows them; with `version` each theme counts that version's mentions alone.

    Everything else stays across all versions.
    """
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

    Quotes of them go; so do themes and alerts that have a whole one in them, and the summary becomes empty. A text of
    a few words that many write says nothing of anybody: it goes only where it is a quote by itself.
    """
    gone = [fold(text.strip()) for text in texts]
    long = [text for text in gone if _telling(text)]

    def repeats(quote: str) -> bool:
        plain = fold(quote.strip())
        if any(text.startswith(plain) for text in gone) or any(text in plain for text in long):
            return True
        return _telling(plain) and any(plain in text for text in gone)

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


def _telling(text: str) -> bool:
    """Tell whether a text is one that hardly two people write."""
    return len(text.split()) >= _TELLING_WORDS or len(text) >= _TELLING_CHARACTERS
