"""Detects the language of a comment: the declared one, unless the text is clearly in another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from deskwire.engine.surveys.insights.text_analysis.language import base, language

_WORD: Final = re.compile(r"[^\W\d_]+")
_WORDS_MIN: Final = 3
"""For shorter texts the declared language is used, because detection is unreliable."""
_ANALYSED_CHARACTERS_MAX: Final = 300
_STOP_WORD_SHARE: Final = 0.3
"""The share of the declared language's stop words from which the text is in that language."""
_LEAD_MIN: Final = 0.1
"""The lead of another language's score over the declared one's that decides for the other language."""


def detect_language(text: str, declared: str) -> str:
    """Return the code, without region, of a text's language. `declared` comes from the client."""
    declared_base = base(declared)
    words = _WORD.findall(text[:_ANALYSED_CHARACTERS_MAX].lower())
    if len(words) < _WORDS_MIN or _has_stop_words(words, declared_base):
        return declared_base
    found = _detector().detect(text[:_ANALYSED_CHARACTERS_MAX])
    if found.language is None or not found.is_reliable():
        return declared_base
    scores: dict[str, float] = found.scores()
    return (
        found.language
        if scores[found.language] > scores.get(declared_base, 0.0) + _LEAD_MIN
        else declared_base
    )


def _has_stop_words(words: Sequence[str], code: str) -> bool:
    stops = language(code).stops
    return sum(word in stops for word in words) >= _STOP_WORD_SHARE * len(words)


@cache
def _detector() -> Any:
    from eld import LanguageDetector  # imported late: 50 MB that most processes never need

    return LanguageDetector()
