"""Quotes of a theme: short, distinct, and with the theme's sentiment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

QUOTES_MAX: Final = 3
QUOTE_MAX: Final = 300
_SHORT, _LONG = 15, 160
"""Preferred characters of a quote; of longer comments only a sentence is quoted."""
_IDENTIFYING_WORDS_MIN: Final = 4
"""Minimum words of a sentence quoted from a longer text, so that an erasure of the text finds the quote (ADR 18)."""


class ThemeMention(NamedTuple):
    """A comment that mentions a theme.

    Args:
        text: of the comment.
        sentence: span of the sentence that mentions the theme.
        fits: whether its sentiment equals the theme's.
        respondent: its author.
    """

    text: str
    sentence: tuple[int, int]
    fits: bool
    respondent: str


def quotes(mentions: Iterable[ThemeMention]) -> list[str]:
    """Return up to three quotes, the newest of equally good ones; `mentions` are sorted by time, newest first."""
    ranked = sorted(
        (
            (not each.fits, _length(quote := quote_of(each)), number, quote, each.respondent)
            for number, each in enumerate(mentions)
        )
    )
    fitting = [each for each in ranked if not each[0]] or ranked
    chosen: dict[str, str] = {}
    people: set[str] = set()
    for _, _, _, quote, respondent in fitting:
        if len(chosen) < QUOTES_MAX and quote and respondent not in people and quote.casefold() not in chosen:
            chosen[quote.casefold()] = quote
            people.add(respondent)
    return list(chosen.values())


def quote_of(mention: ThemeMention) -> str:
    """Return the comment or, of a long one, the sentence; always a verbatim part of the text."""
    text = mention.text.strip()
    if len(text) <= _LONG:
        return text
    begins, ends = mention.sentence
    while ends < len(mention.text) and mention.text[ends] in ".!?…":
        ends += 1
    sentence = mention.text[begins:ends].strip()
    return cut(sentence if len(sentence.split()) >= _IDENTIFYING_WORDS_MIN else text)


def cut(text: str, size: int = QUOTE_MAX) -> str:
    """Truncate a text to `size` characters, at a word boundary if possible."""
    if len(text) <= size:
        return text
    head = text[: size + 1]
    return head.rsplit(None, 1)[0].strip() if any(each.isspace() for each in head[1:]) else text[:size]


def _length(quote: str) -> int:
    return 0 if _SHORT <= len(quote) <= _LONG else 1
