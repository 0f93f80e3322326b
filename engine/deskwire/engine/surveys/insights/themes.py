"""A theme: something that several comments speak of (contract 2.1, decisions 7)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deskwire.engine.surveys.insights.comments import Comment, Sentiment, counts_by_version, quotes, sentiment

THEMES_MAX: Final = 20
_ID_MAX: Final = 80


@dataclass(frozen=True, slots=True)
class Theme:
    """A theme with the comments that mention it; `count` is how many they are."""

    id: str
    title: str
    sentiment: Sentiment
    mentions: Sequence[Comment]

    @property
    def count(self) -> int:
        """How many comments mention it."""
        return len(self.mentions)


def theme_of(title: str, mentions: Sequence[Comment], felt: Sentiment | None = None) -> Theme:
    """The theme of this title; its sentiment is that of the mentions' scores unless it is known better."""
    shown = title[:1].upper() + title[1:]
    return Theme(theme_id(title), shown, felt or sentiment(mentions), mentions)


def theme_id(title: str) -> str:
    """An id that stays the same as long as the title does."""
    return "-".join(re.findall(r"\w+", title.lower()))[:_ID_MAX] or "theme"


def theme_view(theme: Theme) -> Mapping[str, Any]:
    """The theme as it is stored and shown."""
    return {
        "id": theme.id,
        "title": theme.title,
        "sentiment": theme.sentiment,
        "count": theme.count,
        "countsByVersion": counts_by_version(theme.mentions),
        "quotes": quotes(theme.mentions),
    }
