"""A theme: a subject of several comments (contract 2.1, decisions 7)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from deskwire.engine.surveys.insights.comments import Comment, Sentiment, counts_by_version

THEMES_MAX: Final = 20
_ID_MAX: Final = 80


class Theme(Struct, frozen=True):
    """A theme with the comments that mention it."""

    id: str
    title: str
    sentiment: Sentiment
    mentions: Sequence[Comment]
    quotes: Sequence[str]

    @property
    def count(self) -> int:
        """The number of comments that mention it."""
        return len(self.mentions)


def theme_of(
    title: str,
    mentions: Sequence[Comment],
    felt: Sentiment,
    quoted: Sequence[str],
    id_: str | None = None,
) -> Theme:
    """Return the theme with this title, and with its stored id or a new one derived from the title."""
    shown = title[:1].upper() + title[1:]
    return Theme(id_ or theme_id(title), shown, felt, mentions, quoted)


def theme_id(title: str) -> str:
    """Return an id derived from the title."""
    return "-".join(re.findall(r"\w+", title.lower()))[:_ID_MAX] or "theme"


def theme_view(theme: Theme) -> Mapping[str, Any]:
    """Return the theme in its stored form, which is also that of the API."""
    return {
        "id": theme.id,
        "title": theme.title,
        "sentiment": theme.sentiment,
        "count": theme.count,
        "countsByVersion": counts_by_version(theme.mentions),
        "quotes": list(theme.quotes),
    }
