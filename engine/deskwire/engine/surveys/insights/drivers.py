"""Drivers (correlations of answers with the score) and segments (scores of groups of respondents)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any, Final

from msgspec import Struct

from deskwire.engine.surveys.insights.sample import Sample
from deskwire.engine.surveys.insights.scores import score_of
from deskwire.engine.surveys.question_types import TYPES

SAMPLE_MIN: Final = 10
"""Minimum responses of a correlation."""
GROUP_MIN: Final = 5
"""Minimum respondents in a group, and outside it."""
IMPACT_MIN: Final = 0.1
"""Weaker correlations are noise."""
DRIVERS_MAX: Final = 20
SEGMENTS_MAX: Final = 50


class _Feature(Struct, frozen=True):
    """A feature of the respondents: a value for each, None if unknown."""

    id: str
    title: str
    values: Sequence[float | None]
    is_group: bool


def correlation(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Return Pearson's correlation of the pairs, from -1 to 1; None if either does not vary."""
    count = len(xs)
    if not count:
        return None
    mean_x, mean_y = sum(xs) / count, sum(ys) / count
    spread_x = sum((x - mean_x) ** 2 for x in xs)
    spread_y = sum((y - mean_y) ** 2 for y in ys)
    spread = sqrt(spread_x) * sqrt(spread_y)
    if not spread:
        return None
    both = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return max(-1.0, min(1.0, both / spread))


def drivers(sample: Sample) -> list[dict[str, Any]]:
    """Return the drivers of the score, the strongest first: `{id, title, impact, count}`.

    `impact` is the correlation of a scale, number, yes/no or choice with the score, over the `count` responses that
    have both.
    """
    question = sample.score_question
    if question is None:
        return []
    score = sample.answers(question)
    ranked: list[dict[str, Any]] = []
    for feature in _features(sample):
        if feature.id == question.id:
            continue
        pairs = [
            (x, y) for x, y in zip(feature.values, score, strict=True) if x is not None and y is not None
        ]
        if len(pairs) < SAMPLE_MIN or (feature.is_group and not _both_sides(pairs)):
            continue
        impact = correlation([x for x, _ in pairs], [y for _, y in pairs])
        if impact is not None and abs(impact) >= IMPACT_MIN:
            ranked.append(
                {"id": feature.id, "title": feature.title, "impact": round(impact, 2), "count": len(pairs)}
            )
    return sorted(ranked, key=lambda driver: (-abs(driver["impact"]), driver["id"]))[:DRIVERS_MAX]


def segments(sample: Sample) -> list[dict[str, Any]]:
    """Return groups of respondents by choice, yes/no and language, the largest first: `{id, title, size, score}`.

    `score` is the survey's score in the group; `size` counts the respondents who gave one.
    """
    question = sample.score_question
    if question is None:
        return []
    score = sample.answers(question)
    ranked: list[dict[str, Any]] = []
    for feature in (*_features(sample), *_languages(sample)):
        if feature.is_group:
            group = [y for x, y in zip(feature.values, score, strict=True) if x and y is not None]
            if len(group) >= GROUP_MIN:
                title, value = feature.title, score_of(question, group)
                ranked.append({"id": feature.id, "title": title, "size": len(group), "score": value})
    return sorted(ranked, key=lambda segment: (-segment["size"], segment["id"]))[:SEGMENTS_MAX]


def _both_sides(pairs: Sequence[tuple[float, float]]) -> bool:
    inside = sum(1 for x, _ in pairs if x)
    return GROUP_MIN <= inside <= len(pairs) - GROUP_MIN


def _features(sample: Sample) -> Iterator[_Feature]:
    language = sample.definition.primary_language
    for question in sample.definition.questions:
        answers = sample.answers(question)
        for feature in TYPES[question.type].features(question, language):
            values = [None if answer is None else feature.read(answer) for answer in answers]
            yield _Feature(feature.id, feature.title, values, feature.is_group)


def _languages(sample: Sample) -> Iterator[_Feature]:
    languages = sample.definition.languages
    if len(languages) < 2:  # a single group
        return
    for language in languages:
        spoken = [float(response.language == language) for response in sample.responses]
        yield _Feature(f"language:{language}", f"Language {language}", spoken, True)
