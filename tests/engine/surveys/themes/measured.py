"""Figures of how good themes are, against comments whose labels are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from deskwire.engine.surveys.insights.comments import Sentiment
from deskwire.engine.surveys.insights.themes import Theme, theme_view
from tests.engine.surveys.themes.labelled import Labelled


@dataclass(frozen=True, slots=True)
class Figures:
    """Shares, from 0 to 1.

    Args:
        phrases: of the themes, those with two words or more in their title.
        purity: of the mentions, those whose comment has the label that most of the theme's comments have.
        coverage: of the comments with a label, those that a theme with that label as its most frequent one mentions.
        found: of the labels, those that are the most frequent one of some theme.
        apart: of the themes, those that are the only one with their label.
        sentiment: of the themes with a label, those with the sentiment of most comments that carry it.
        quotes: of the quotes, those whose comment carries the theme's label, felt as the theme says.
    """

    phrases: float
    purity: float
    coverage: float
    found: float
    apart: float
    sentiment: float
    quotes: float


def figures(themes: Sequence[Theme], known: Labelled) -> Figures:
    """Measure themes that were found in the comments of a set."""
    majority = {theme.id: _majority(theme, known) for theme in themes}
    mentions = [(theme, comment) for theme in themes for comment in theme.mentions]
    carried = [majority[theme.id] in known.labels[comment.text] for theme, comment in mentions]
    pairs = {(text, label) for text, labels in known.labels.items() for label in labels if not _none(label)}
    covered = {(comment.text, majority[theme.id]) for theme, comment in mentions} & pairs
    found = set(majority.values())
    quotes = [
        _fits(quote, theme, majority[theme.id], known)
        for theme in themes
        for quote in theme_view(theme)["quotes"]
    ]
    felt = [
        _felt(label, known) == theme.sentiment for theme in themes if not _none(label := majority[theme.id])
    ]
    return Figures(
        phrases=_share([len(theme.title.split()) > 1 for theme in themes]),
        purity=_share(carried),
        coverage=len(covered) / len(pairs),
        found=len({label for _, label in pairs} & found) / len({label for _, label in pairs}),
        apart=len(found) / max(len(themes), 1),
        sentiment=_share(felt),
        quotes=_share(quotes),
    )


def _share(verdicts: Sequence[bool]) -> float:
    return sum(verdicts) / max(len(verdicts), 1)


def _none(label: str) -> bool:
    return label.endswith(":none")


def _majority(theme: Theme, known: Labelled) -> str:
    """Return the label that most of the theme's comments carry; of equals the first by name."""
    counts = Counter(label for comment in theme.mentions for label in known.labels[comment.text])
    return min(counts, key=lambda label: (-counts[label], label))


def _felt(label: str, known: Labelled) -> Sentiment:
    return Counter(labels[label] for labels in known.labels.values() if label in labels).most_common(1)[0][0]


def _fits(quote: str, theme: Theme, label: str, known: Labelled) -> bool:
    return any(
        quote in text and known.labels[text].get(label) == theme.sentiment
        for text in (comment.text for comment in theme.mentions)
    )
