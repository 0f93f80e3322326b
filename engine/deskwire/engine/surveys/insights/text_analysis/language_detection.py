"""The language that a comment is written in: the declared one, unless the text is plainly in another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from deskwire.engine.surveys.insights.text_analysis.language import base, language

_WORD: Final = re.compile(r"[^\W\d_]+")
_WORDS_MIN: Final = 3
"""Shorter texts are in the declared language: nobody could tell better."""
_LOOKED_AT: Final = 300
_OWN: Final = 0.3
"""The share of a language's stop words in a text from which on it needs no further look."""
_LEAD: Final = 0.1
"""The lead of another language's score over the declared one's that makes it the text's."""


def detect_language(text: str, declared: str) -> str:
    """Return the code, without region, of the language that a text is in; `declared` is what the client said."""
    said = base(declared)
    words = _WORD.findall(text[:_LOOKED_AT].lower())
    if len(words) < _WORDS_MIN or _has_stop_words(words, said):
        return said
    found = _detector().detect(text[:_LOOKED_AT])
    if found.language is None or not found.is_reliable():
        return said
    scores: dict[str, float] = found.scores()
    return found.language if scores[found.language] > scores.get(said, 0.0) + _LEAD else said


def _has_stop_words(words: Sequence[str], code: str) -> bool:
    stops = language(code).stops
    return sum(word in stops for word in words) >= _OWN * len(words)


@cache
def _detector() -> Any:
    from eld import LanguageDetector  # 50 MB that most processes never need

    return LanguageDetector()
