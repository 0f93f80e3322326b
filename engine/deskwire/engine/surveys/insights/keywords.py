"""Themes without a model: phrases that comments of a language share, with sentiment and quotes (ADR 18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from deskwire.engine.surveys.insights.comments import Comment, leaning
from deskwire.engine.surveys.insights.text_analysis.clauses import clauses
from deskwire.engine.surveys.insights.text_analysis.document_matrix import (
    DocumentMatrix,
    document_matrix,
    yielding,
)
from deskwire.engine.surveys.insights.text_analysis.language import language
from deskwire.engine.surveys.insights.text_analysis.language_detection import detect_language
from deskwire.engine.surveys.insights.text_analysis.phrases import Phrase, Spot, phrases
from deskwire.engine.surveys.insights.text_analysis.quotes import ThemeMention, quotes
from deskwire.engine.surveys.insights.text_analysis.sentiment import sentiment_of
from deskwire.engine.surveys.insights.text_analysis.titles import title
from deskwire.engine.surveys.insights.themes import THEMES_MAX, Theme, theme_of

_LANGUAGES_MAX: Final = 5
"""Languages that are searched for themes, those with the most comments."""
_ANALYSED_MAX: Final = 300
"""Newest comments of a theme that are analysed for sentiment, as a sample of all."""
_SCORE_WEIGHT: Final = 0.5
"""Weight of a response's score beside the words (1): the score rates everything, the words are about the theme."""


class _Analysed(Struct, frozen=True):
    """A comment of a theme, with the span of its sentence about the theme and the sentiment, -1 to 1."""

    comment: Comment
    sentence: tuple[int, int]
    feeling: float


def keyword_themes(comments: Sequence[Comment], known: Mapping[str, str] | None = None) -> list[Theme]:
    """Return the phrases that most comments share, at most THEMES_MAX, most mentions first.

    Args:
        known: ids of stored themes by title; a theme with the same words keeps its id.
    """
    themes: dict[str, Theme] = {}
    worth: dict[str, float] = {}
    for matrix in _by_language(comments):
        ids = _known_ids(known or {}, matrix)
        for phrase in phrases(matrix, THEMES_MAX):
            theme = _theme(phrase, matrix, comments, ids)
            themes[theme.id] = theme if theme.id not in themes else _joined(themes[theme.id], theme)
            worth[theme.id] = worth.get(theme.id, 0.0) + phrase.weight
    best = sorted(themes.values(), key=lambda theme: (-worth[theme.id], theme.id))[:THEMES_MAX]
    return sorted(best, key=lambda theme: (-theme.count, theme.id))


def _by_language(comments: Sequence[Comment]) -> list[DocumentMatrix]:
    """Return the comments by language, the most frequent language first."""
    indexes: dict[str, list[int]] = {}
    for index in yielding(range(len(comments))):
        code = detect_language(comments[index].text, comments[index].language)
        indexes.setdefault(code, []).append(index)
    codes = sorted(indexes, key=lambda code: (-len(indexes[code]), code))[:_LANGUAGES_MAX]
    return [
        document_matrix(
            language(code),
            {index: comments[index].text for index in indexes[code]},
            {index: comments[index].respondent for index in indexes[code]},
        )
        for code in codes
    ]


def _known_ids(known: Mapping[str, str], matrix: DocumentMatrix) -> dict[tuple[str, ...], str]:
    """Return the ids of stored themes, by the stems of their titles."""
    ids: dict[tuple[str, ...], str] = {}
    for shown, id_ in sorted(known.items()):
        words = [word.form for clause in clauses(shown, matrix.language) for word in clause.words]
        ids.setdefault(tuple(sorted({matrix.name(form) for form in words})), id_)
    return ids


def _theme(
    phrase: Phrase, matrix: DocumentMatrix, comments: Sequence[Comment], ids: Mapping[tuple[str, ...], str]
) -> Theme:
    analysed = [_analysed(spot, matrix, comments) for spot in yielding(phrase.spots[:_ANALYSED_MAX])]
    felt = leaning([each.feeling for each in analysed])
    quotable = [
        ThemeMention(
            each.comment.text, each.sentence, leaning([each.feeling]) == felt, each.comment.respondent
        )
        for each in analysed
    ]
    mentions = [comments[spot[0]] for spot in phrase.spots]
    return theme_of(title(phrase, matrix), mentions, felt, quotes(quotable), ids.get(phrase.keys))


def _analysed(spot: Spot, matrix: DocumentMatrix, comments: Sequence[Comment]) -> _Analysed:
    """Return the sentiment of the clause with the phrase, or of the whole sentence if the clause is neutral."""
    comment, clause, code = comments[spot[0]], matrix.clause(spot[0], spot[1]), matrix.language.code
    begins, ends = clause.sentence
    sounds = sentiment_of(comment.text[clause.start : clause.end], code)
    sounds = sounds or sentiment_of(comment.text[begins:ends], code)
    if comment.feeling is None:
        return _Analysed(comment, clause.sentence, float(sounds))
    scored = (
        (sounds + _SCORE_WEIGHT * comment.feeling) / (1 + _SCORE_WEIGHT) if sounds else float(comment.feeling)
    )
    return _Analysed(comment, clause.sentence, scored)


def _joined(theme: Theme, other: Theme) -> Theme:
    """Merge two themes that have the same title in two languages."""
    larger = max(theme, other, key=lambda each: each.count)
    return Theme(theme.id, larger.title, larger.sentiment, [*theme.mentions, *other.mentions], larger.quotes)
