"""Themes without a model: the phrases that comments of a language share, how they sound, and what to quote (ADR 18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from deskwire.engine.surveys.insights.comments import Comment, leaning
from deskwire.engine.surveys.insights.text_analysis.clauses import clauses
from deskwire.engine.surveys.insights.text_analysis.document_matrix import DocumentMatrix, document_matrix
from deskwire.engine.surveys.insights.text_analysis.language import language
from deskwire.engine.surveys.insights.text_analysis.language_detection import detect_language
from deskwire.engine.surveys.insights.text_analysis.phrases import Phrase, Spot, phrases
from deskwire.engine.surveys.insights.text_analysis.quotes import Mention, quotes
from deskwire.engine.surveys.insights.text_analysis.sentiment import sentiment_of
from deskwire.engine.surveys.insights.text_analysis.titles import title
from deskwire.engine.surveys.insights.text_analysis.yielding_thread import yielding
from deskwire.engine.surveys.insights.themes import THEMES_MAX, Theme, theme_of

_LANGUAGES_MAX: Final = 5
"""The languages, of those of most comments, that themes are looked for in."""
_HEARD_MAX: Final = 300
"""Comments of a theme that are listened to, the newest: a sample that large says what all of them do."""
_SCORE: Final = 0.5
"""The weight of the score of a response beside the words, which weigh 1: it is of everything, they are of the theme."""


class _Heard(Struct, frozen=True):
    """A comment of a theme, with where its sentence about it stands, and how that sounds: from -1 to 1."""

    comment: Comment
    sentence: tuple[int, int]
    feeling: float


def keyword_themes(comments: Sequence[Comment], known: Mapping[str, str] | None = None) -> list[Theme]:
    """Return the phrases that most comments share, at most THEMES_MAX, those with most mentions first.

    Args:
        known: ids of themes that are stored, by their titles: a theme of the same words keeps its id.
    """
    themes: dict[str, Theme] = {}
    worth: dict[str, float] = {}
    for written in _by_language(comments):
        ids = _known_ids(known or {}, written)
        for phrase in phrases(written, THEMES_MAX):
            theme = _theme(phrase, written, comments, ids)
            themes[theme.id] = theme if theme.id not in themes else _joined(themes[theme.id], theme)
            worth[theme.id] = worth.get(theme.id, 0.0) + phrase.weight
    best = sorted(themes.values(), key=lambda theme: (-worth[theme.id], theme.id))[:THEMES_MAX]
    return sorted(best, key=lambda theme: (-theme.count, theme.id))


def _by_language(comments: Sequence[Comment]) -> list[DocumentMatrix]:
    """Return the comments of each language, those of most comments first."""
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


def _known_ids(known: Mapping[str, str], written: DocumentMatrix) -> dict[tuple[str, ...], str]:
    """Return the ids of stored themes by the stems of their titles."""
    ids: dict[tuple[str, ...], str] = {}
    for shown, id_ in sorted(known.items()):
        words = [word.form for clause in clauses(shown, written.language) for word in clause.words]
        ids.setdefault(tuple(sorted({written.name(form) for form in words})), id_)
    return ids


def _theme(
    phrase: Phrase, written: DocumentMatrix, comments: Sequence[Comment], ids: Mapping[tuple[str, ...], str]
) -> Theme:
    heard = [_heard(spot, written, comments) for spot in yielding(phrase.spots[:_HEARD_MAX])]
    felt = leaning([each.feeling for each in heard])
    said = [
        Mention(each.comment.text, each.sentence, leaning([each.feeling]) == felt, each.comment.respondent)
        for each in heard
    ]
    mentions = [comments[spot[0]] for spot in phrase.spots]
    return theme_of(title(phrase, written), mentions, felt, quotes(said), ids.get(phrase.keys))


def _heard(spot: Spot, written: DocumentMatrix, comments: Sequence[Comment]) -> _Heard:
    """Listen to the clause that has a phrase, and to its whole sentence where that sounds of nothing."""
    comment, clause, code = comments[spot[0]], written.clause(spot[0], spot[1]), written.language.code
    begins, ends = clause.sentence
    sounds = sentiment_of(comment.text[clause.start : clause.end], code)
    sounds = sounds or sentiment_of(comment.text[begins:ends], code)
    if comment.feeling is None:
        return _Heard(comment, clause.sentence, float(sounds))
    scored = (sounds + _SCORE * comment.feeling) / (1 + _SCORE) if sounds else float(comment.feeling)
    return _Heard(comment, clause.sentence, scored)


def _joined(theme: Theme, other: Theme) -> Theme:
    """Return the theme that has one title in two languages."""
    larger = max(theme, other, key=lambda each: each.count)
    return Theme(theme.id, larger.title, larger.sentiment, [*theme.mentions, *other.mentions], larger.quotes)
