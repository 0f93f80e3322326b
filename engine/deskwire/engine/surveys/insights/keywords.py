"""Themes without a model: the phrases that YAKE finds in the comments, with their mentions (ADR 18).

R. Campos et al., YAKE! Keyword extraction from single documents using multiple local features, 2020.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import structlog
from yake_rust import Yake

from deskwire.engine.surveys.insights.comments import Comment
from deskwire.engine.surveys.insights.themes import THEMES_MAX, Theme, theme_of

log: Final = structlog.get_logger(__name__)

_LANGUAGES: Final = frozenset((
    "ar", "bg", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "hi", "hr", "hu", "hy", "id", "it", "ja", "lt",
    "lv", "nl", "no", "pl", "pt", "ro", "ru", "sk", "sl", "sv", "tr", "uk", "zh",
))  # fmt: skip
"""The languages whose stop words the library has. Asked for another one it panics."""
_OTHER_CODES: Final = {"cs": "cz", "nb": "no", "nn": "no"}
"""The library's codes for these languages."""

_WORDS_MAX: Final = 3
_CANDIDATES: Final = 80
_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")  # noqa: RUF001  # the apostrophe that phones type
_SENTENCE: Final = re.compile(r"[.!?;:\n\r…]+")
_WORD_MAX: Final = 40
"""Longer ones are no words; the library's tokenizer runs out of stack on very long ones."""
_CHARACTERS_MAX: Final = 200_000
"""The text that is given to the library at once; about half a second, outside the interpreter's lock."""
_LANGUAGES_MAX: Final = 5
_RESPONDENTS_MIN: Final = 2
"""A theme that one person alone speaks of is a quotation of that person."""
_OVERLAP: Final = 0.6


def keyword_themes(comments: Sequence[Comment]) -> list[Theme]:
    """Return the phrases that most comments share, at most THEMES_MAX, those with most mentions first."""
    phrases: set[tuple[str, ...]] = set()
    for language in _spoken(comments):
        texts = [comment.text for comment in comments if comment.language == language]
        phrases.update(keyphrases(texts, language))
    mentions = _mentions(comments, phrases)
    shared = {
        phrase: indexes
        for phrase, indexes in mentions.items()
        if _respondents(comments, indexes) >= _RESPONDENTS_MIN
    }
    ranked = sorted(
        shared, key=lambda phrase: (-len(shared[phrase]) * (1 + len(phrase)), -len(phrase), phrase)
    )
    chosen: list[tuple[str, ...]] = []
    for phrase in ranked:
        if len(chosen) < THEMES_MAX and not any(_same(shared, phrase, other) for other in chosen):
            chosen.append(phrase)
    themes = [theme_of(" ".join(phrase), [comments[index] for index in shared[phrase]]) for phrase in chosen]
    return sorted(themes, key=lambda theme: (-theme.count, theme.id))


def keyphrases(texts: Sequence[str], language: str) -> list[tuple[str, ...]]:
    """Return the phrases of up to three words, in lower case, that say most about the texts, the best first."""
    document: list[str] = []
    size = 0
    for text in texts:
        for words in sentences(text):
            sentence = f"{' '.join(words)}."
            size += len(sentence) + 1
            if size > _CHARACTERS_MAX:
                break
            document.append(sentence)
    scored = _best("\n".join(document), language)
    phrases = (
        tuple(_WORD.findall(phrase.lower()))
        for phrase, _ in sorted(scored, key=lambda result: (result[1], result[0]))
    )
    return [phrase for phrase in phrases if _telling(phrase)]


def _best(document: str, language: str) -> list[tuple[str, float]]:
    """Return what the library finds; nothing if it panics, which is no Exception and would end the program."""
    try:
        return _yake(language).get_n_best(document, n=_CANDIDATES)
    except BaseException as error:  # a Rust panic is no Exception, and its class can't be imported
        if type(error).__name__ != "PanicException":
            raise
        log.exception("insights.keywords_failed", language=language)
        return []


def _yake(language: str) -> Yake:
    """Return YAKE with the language's stop words; without any if it has none."""
    base = language.partition("-")[0].lower()
    if base in _LANGUAGES or base in _OTHER_CODES:
        return Yake(language=_OTHER_CODES.get(base, base), ngrams=_WORDS_MAX)
    return Yake(stopwords=set(), ngrams=_WORDS_MAX)


def sentences(text: str) -> Iterator[list[str]]:
    """Yield the words of each sentence: nothing but words, so that no text can upset the library's tokenizer."""
    for part in _SENTENCE.split(text):
        words = [word for word in _WORD.findall(part) if len(word) <= _WORD_MAX]
        if words:
            yield words


def _telling(phrase: tuple[str, ...]) -> bool:
    return 0 < len(phrase) <= _WORDS_MAX and any(len(word) > 2 and not word.isdigit() for word in phrase)


def _spoken(comments: Sequence[Comment]) -> list[str]:
    """Return the languages of most comments."""
    counts: dict[str, int] = {}
    for comment in comments:
        counts[comment.language] = counts.get(comment.language, 0) + 1
    return sorted(counts, key=lambda language: (-counts[language], language))[:_LANGUAGES_MAX]


def _mentions(comments: Sequence[Comment], phrases: set[tuple[str, ...]]) -> dict[tuple[str, ...], list[int]]:
    """Return the positions of the comments that have each phrase."""
    mentions: dict[tuple[str, ...], list[int]] = {}
    for index, comment in enumerate(comments):
        seen: set[tuple[str, ...]] = set()
        for words in sentences(comment.text.lower()):
            for start in range(len(words)):
                seen.update(tuple(words[start : start + size]) for size in range(1, _WORDS_MAX + 1))
        for phrase in seen & phrases:
            mentions.setdefault(phrase, []).append(index)
    return mentions


def _respondents(comments: Sequence[Comment], indexes: Sequence[int]) -> int:
    return len({comments[index].respondent for index in indexes})


def _same(
    mentions: Mapping[tuple[str, ...], Sequence[int]], phrase: tuple[str, ...], other: tuple[str, ...]
) -> bool:
    """Tell whether a phrase adds little to another one: a shared word, and mostly the same comments."""
    if not set(phrase) & set(other):
        return False
    common = len(set(mentions[phrase]) & set(mentions[other]))
    return common >= _OVERLAP * len(mentions[phrase])
