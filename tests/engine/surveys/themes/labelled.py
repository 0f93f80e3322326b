"""Labelled comments: lines of `label+, label- | text`, by language and by the set that they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deskwire.engine.surveys.insights.comments import Comment, Sentiment
from tests.support.builders import NOON

LANGUAGES: Final = ("en", "de", "fr")
_SIGNS: Final[dict[str, Sentiment]] = {"+": "positive", "0": "neutral", "-": "negative"}
_HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Labelled:
    """Comments with their labels, by text: each label with the sentiment that its writer has about it."""

    comments: list[Comment]
    labels: dict[str, dict[str, Sentiment]]


def labelled(folder: str, languages: tuple[str, ...] = LANGUAGES) -> Labelled:
    """Read the comments of a set, `tuning` or `heldout`, each by a respondent of its own and without a score."""
    comments: list[Comment] = []
    labels: dict[str, dict[str, Sentiment]] = {}
    for language in languages:
        for line in (_HERE / folder / f"{language}.txt").read_text(encoding="utf-8").splitlines():
            marks, _, text = line.partition(" | ")
            names = [f"{language}:{mark.strip()}" for mark in marks.split(",")]
            labels[text] = {name[:-1]: _SIGNS[name[-1]] for name in names}
            comments.append(Comment(text, 1, language, f"r{len(comments)}", None, NOON))
    return Labelled(comments, labels)
