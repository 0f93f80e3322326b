"""Insights: what is stored about a survey's answers, and how it is shown (contract 2.1, 4.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

from deskwire.engine.clock import iso_or_none

Source = Literal["keywords", "model", "api"]

PARTS: Final[Mapping[str, Any]] = MappingProxyType(
    {"themes": [], "summary": "", "drivers": [], "segments": [], "alerts": []}
)
"""What insights consist of, as they are when nothing is stored yet."""

_TELLING: Final = 4
"""Characters from which on a text that stands in another one is taken for a quotation."""


@dataclass(frozen=True, slots=True)
class Insights:
    """Stored insights: the parts as the API shows them, when (ms) and by what they were made."""

    parts: Mapping[str, Any]
    source: Source
    updated_at: int


def insights_view(insights: Insights | None, version: int | None) -> dict[str, Any]:
    """The insights; with `version` each theme counts that version's mentions alone.

    Everything else stays across all versions.
    """
    parts = dict(PARTS if insights is None else insights.parts)
    shown = {**parts, "updatedAt": iso_or_none(None if insights is None else insights.updated_at)}
    if version is None:
        return shown
    counted = [{**theme, "count": theme["countsByVersion"].get(str(version), 0)} for theme in parts["themes"]]
    return {**shown, "themes": counted, "version": version}


def alert_times(insights: Insights | None) -> dict[str, str]:
    """Since when each stored alert is there, by its id."""
    return {} if insights is None else {each["id"]: each["createdAt"] for each in insights.parts["alerts"]}


def without_texts(parts: Mapping[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    """The insights without anything that repeats one of these texts, or that one of them contains.

    Quotes go, themes that are called so go, and a summary or message with such a text in it becomes empty.
    """
    forbidden = [text.strip().casefold() for text in texts if len(text.strip()) >= _TELLING]

    def repeats(shown: str) -> bool:
        plain = shown.strip().casefold()
        return any(text in plain or (len(plain) >= _TELLING and plain in text) for text in forbidden)

    def quotes(shown: str) -> bool:
        return any(text in shown.casefold() for text in forbidden)

    return {
        **parts,
        "themes": [
            {**theme, "quotes": [quote for quote in theme["quotes"] if not repeats(quote)]}
            for theme in parts["themes"]
            if not quotes(theme["title"])
        ],
        "summary": "" if quotes(parts["summary"]) else parts["summary"],
        "alerts": [
            {**each, "message": "" if quotes(each["message"]) else each["message"]}
            for each in parts["alerts"]
        ],
    }
