"""Sentiment of a text: VADER for English, and its rules with our lexicons for other languages (ADR 18)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import sqrt
from typing import Final

from deskwire.engine.surveys.insights.text_analysis.language import Language, language
from deskwire.engine.surveys.insights.text_analysis.vader import compound, vader_lexicon

_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")  # noqa: RUF001  # the apostrophe that phones type
_ELISION: Final = re.compile(r"^(?:qu|[ldjmtscn])['’]")  # noqa: RUF001
_SMILES: Final = frozenset("👍😀😃😄😁😊🙂😍🥰🤩❤♥💚💙🎉👏💯🙏🚀")
_FROWNS: Final = frozenset("👎😡😠🤬😤😞😢😭💔🙁☹😒🤮😩😫")
_EMOJI_VALENCE: Final = 1.5
_ANALYSED_CHARACTERS_MAX: Final = 500
_NEAR: Final = 3
"""Maximum distance of a negation or intensifier, in words."""
_NEGATED: Final = -0.74
_STRONGER, _WEAKER = 1.3, 0.7
_NEGATION_VALENCE: Final = -1.0
"""Valence of a negation without a judging word, as in "did not arrive"."""
_ALPHA: Final = 15.0
"""VADER's normalization constant, which maps a sum of valences to -1 to 1."""
_MARGIN: Final = 0.15


def sentiment_of(text: str, code: str) -> int:
    """Return 1 for a positive text, -1 for a negative one, and 0 if neither is clear."""
    start = text[:_ANALYSED_CHARACTERS_MAX]
    spoken = language(code)
    if code == "en":
        sum_ = compound(start, english_lexicon()) or _scaled(_emoji_valence(start))
    else:
        sum_ = _scaled(_sum(_words(start, code), spoken) + _emoji_valence(start))
    if abs(sum_) < _MARGIN and any(spoken.negates(word) for word in _words(start, code)):
        return -1
    return (sum_ >= _MARGIN) - (sum_ <= -_MARGIN)


@cache
def english_lexicon() -> Mapping[str, float]:
    """Return VADER's lexicon with the words of customer support."""
    words = language("en").lexicon
    return {**vader_lexicon(), **words.valence, **dict.fromkeys(words.words("neutral"), 0.0)}


def _words(text: str, code: str) -> list[str]:
    found = [word.replace("’", "'") for word in _WORD.findall(text.lower())]  # noqa: RUF001
    return [_ELISION.sub("", word) for word in found] if code == "fr" else found


def _sum(words: Sequence[str], spoken: Language) -> float:
    lexicon = spoken.lexicon
    total, denied, used = 0.0, 0, 0
    for place, word in enumerate(words):
        if spoken.negates(word):
            denied += 1
            continue
        stem = spoken.stem(word)
        if stem[0] != "=" or word in lexicon.words("not"):
            continue
        following = words[place + 1] if place + 1 < len(words) else ""
        if word in lexicon.words("very") and following in lexicon.valence:
            continue
        worth = lexicon.valence.get(word, lexicon.valence[stem[1:]])
        near = words[max(0, place - _NEAR) : place]
        worth *= _STRONGER if not lexicon.words("very").isdisjoint(near[-1:]) else 1.0
        worth *= _WEAKER if not lexicon.words("less").isdisjoint(near[-1:]) else 1.0
        after = words[place + 1 : place + 2] if spoken.code == "de" else []
        if any(spoken.negates(each) for each in (*near, *after)):
            worth, used = worth * _NEGATED, used + 1
        total += worth
    return total + _NEGATION_VALENCE * (denied > 0 and not used)


def _scaled(total: float) -> float:
    return total / sqrt(total * total + _ALPHA)


def _emoji_valence(text: str) -> float:
    """Return the valence of the emoji in a text; VADER knows few of them."""
    return _EMOJI_VALENCE * (sum(each in _SMILES for each in text) - sum(each in _FROWNS for each in text))
