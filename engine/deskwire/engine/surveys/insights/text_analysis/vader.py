"""VADER, the rules and the lexicon for the sentiment of an English text; gives the scores of vaderSentiment 3.3.2.

C. Hutto, E. Gilbert, VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social Media Text, 2014.
The rules are written after vaderSentiment (MIT, `vader_lexicon/LICENSE`), the lexicon is a copy. Rules that surprise
are those of vaderSentiment: stored insights were computed with them, and the package has had no release since 2020.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Final

from msgspec import Struct

_FOLDER: Final = Path(__file__).parent / "vader_lexicon"

_INTENSITY: Final = 0.293
_CAPITALS: Final = 0.733
_NEGATED: Final = -0.74
_NEVER_SO: Final = 1.25
_EXCLAMATION: Final = 0.292
_EXCLAMATIONS_MAX: Final = 4
_QUESTION: Final = 0.18
_QUESTIONS: Final = 0.96  # four and more
_NORMALIZATION: Final = 15.0
_BEFORE_BUT, _AFTER_BUT = 0.5, 1.5
_NEARNESS: Final = (1.0, 0.95, 0.9)
"""Share of an intensifier's effect, by its distance in words from 1."""

_NEGATIONS: Final = frozenset((
    "aint", "arent", "cannot", "cant", "couldnt", "darent", "didnt", "doesnt", "ain't", "aren't",
    "can't", "couldn't", "daren't", "didn't", "doesn't", "dont", "hadnt", "hasnt", "havent", "isnt",
    "mightnt", "mustnt", "neither", "don't", "hadn't", "hasn't", "haven't", "isn't", "mightn't",
    "mustn't", "neednt", "needn't", "never", "none", "nope", "nor", "not", "nothing", "nowhere",
    "oughtnt", "shant", "shouldnt", "uhuh", "wasnt", "werent", "oughtn't", "shan't", "shouldn't",
    "uh-uh", "wasn't", "weren't", "without", "wont", "wouldnt", "won't", "wouldn't", "rarely", "seldom",
    "despite",
))  # fmt: skip
_STRONGER: Final = (
    "absolutely", "amazingly", "awfully", "completely", "considerable", "considerably", "decidedly",
    "deeply", "effing", "enormous", "enormously", "entirely", "especially", "exceptional",
    "exceptionally", "extreme", "extremely", "fabulously", "flipping", "flippin", "frackin", "fracking",
    "fricking", "frickin", "frigging", "friggin", "fully", "fuckin", "fucking", "fuggin", "fugging",
    "greatly", "hella", "highly", "hugely", "incredible", "incredibly", "intensely", "major", "majorly",
    "more", "most", "particularly", "purely", "quite", "really", "remarkably", "so", "substantially",
    "thoroughly", "total", "totally", "tremendous", "tremendously", "uber", "unbelievably", "unusually",
    "utter", "utterly", "very",
)  # fmt: skip
_WEAKER: Final = (
    "almost", "barely", "hardly", "kinda", "kindof", "kind-of", "less", "little", "marginal",
    "marginally", "occasional", "occasionally", "partly", "scarce", "scarcely", "slight", "slightly",
    "somewhat", "sorta", "sortof", "sort-of",
)  # fmt: skip
_INTENSIFIERS: Final = {
    **dict.fromkeys(_STRONGER, _INTENSITY),
    **dict.fromkeys([*_WEAKER, "just enough", "kind of", "sort of"], -_INTENSITY),
}
_IDIOMS: Final = {
    "the shit": 3.0, "the bomb": 3.0, "bad ass": 1.5, "bus stop": 0.0, "yeah right": -2.0, "kiss of death": -1.5,
    "to die for": 3.0, "beating heart": 3.5,
}  # fmt: skip


class Words(Struct, frozen=True):
    """The words and emoticons of a text, without punctuation around them.

    Args:
        written: as in the text.
        lower: in lower case.
        shouts: True if some of the words, but not all, are in capitals.
    """

    written: list[str]
    lower: list[str]
    shouts: bool


def compound(text: str, lexicon: Mapping[str, float]) -> float:
    """Return the sentiment of an English text, from -1 to 1 with four digits; 0 without words of the lexicon."""
    text = _with_names_of_emoji(text).strip()
    words = _words(text)
    total = float(
        sum(_weighed_around_but(words, [_valence(words, at, lexicon) for at in range(len(words.lower))]))
    )
    emphasis = _emphasis(text)
    if total:
        total += emphasis if total > 0 else -emphasis
    return round(total / sqrt(total * total + _NORMALIZATION), 4)


@cache
def vader_lexicon() -> Mapping[str, float]:
    """Return the valence of VADER's words and emoticons, from -4 to 4."""
    return {word: float(valence) for word, valence in _rows("words.tsv")}


@cache
def _names_of_emoji() -> Mapping[str, str]:
    return dict(_rows("emoji.tsv"))


def _rows(file: str) -> list[list[str]]:
    lines = (_FOLDER / file).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


def _with_names_of_emoji(text: str) -> str:
    """Return the text with a name in place of each emoji; a word directly after an emoji is joined to its name."""
    names, written, spaced = _names_of_emoji(), "", True
    for each in text:
        name = names.get(each)
        written += each if name is None else name if spaced else f" {name}"
        spaced = each == " "
    return written


def _words(text: str) -> Words:
    written = [_bare(each) for each in text.split()]
    loud = sum(map(str.isupper, written))
    return Words(written, [each.lower() for each in written], 0 < loud < len(written))


def _bare(token: str) -> str:
    """Return a token without punctuation around it. A token that is hardly more than that is an emoticon."""
    bare = token.strip(string.punctuation)
    return bare if len(bare) > 2 else token


def _valence(words: Words, at: int, lexicon: Mapping[str, float]) -> float:
    """Return the valence of one word among the others; 0 for a word without one, and for an intensifier."""
    lower = words.lower
    word = lower[at]
    if word not in lexicon or word in _INTENSIFIERS or lower[at : at + 2] == ["kind", "of"]:
        return 0.0
    valence = _with_no(lower, at, lexicon)
    if words.written[at].isupper() and words.shouts:
        valence += _CAPITALS if valence > 0 else -_CAPITALS
    for distance in range(1, min(at, 3) + 1):
        if lower[at - distance] in lexicon:
            continue
        valence += _NEARNESS[distance - 1] * _intensity(words, at - distance, valence)
        valence *= _negation(lower, at, distance)
        if distance == 3:
            valence = _with_idioms(lower, at, valence)
    return valence * _least(lower, at, lexicon)


def _with_no(lower: list[str], at: int, lexicon: Mapping[str, float]) -> float:
    """Return the valence of a word after "no", which as an answer has a valence of its own."""
    near = lower[max(0, at - 3) : at]
    if "no" in near[-2:] or (near[:1] == ["no"] and near[-1] in ("or", "nor")):
        return lexicon[lower[at]] * _NEGATED
    denies = lower[at] == "no" and at + 1 < len(lower) and lower[at + 1] in lexicon
    return 0.0 if denies else lexicon[lower[at]]


def _intensity(words: Words, at: int, valence: float) -> float:
    """Return the effect of the word at a place on a valence: away from 0 for an intensifier, else none."""
    effect = _INTENSIFIERS.get(words.lower[at], 0.0)
    if not effect:
        return 0.0
    capitals = _CAPITALS if words.written[at].isupper() and words.shouts else 0.0
    return (effect if valence >= 0 else -effect) + (capitals if valence > 0 else -capitals)


def _negation(lower: list[str], at: int, distance: int) -> float:
    """Return the factor for a negation at a distance of 1 to 3 words before a word."""
    word, between = lower[at - distance], lower[at - distance + 1 : at]
    if word == "never" and between[:1] in (["so"], ["this"]):
        return _NEVER_SO
    if distance == 3 and between[1] in ("so", "this"):  # with or without a "never"
        return _NEVER_SO
    if word == "without" and "doubt" in between:
        return 1.0
    return _NEGATED if word in _NEGATIONS or "n't" in word else 1.0


def _with_idioms(lower: list[str], at: int, valence: float) -> float:
    """Return the valence of an idiom that the word is part of or follows, else its own; "sort of" weakens both."""
    spans = ((1, 0), (2, 0), (2, 1), (3, 1), (3, 2))
    before = [" ".join(lower[at - first : at - last + 1]) for first, last in spans]
    after = [" ".join(lower[at : at + length]) for length in (2, 3)]
    found = [each for each in before if each in _IDIOMS][:1] + [each for each in after if each in _IDIOMS]
    if found:
        valence = _IDIOMS[found[-1]]
    for each in (before[4], before[2]):
        valence += _INTENSIFIERS.get(each, 0.0)
    return valence


def _least(lower: list[str], at: int, lexicon: Mapping[str, float]) -> float:
    """Return the factor for "least" directly before a word, but not for "at least" and "very least"."""
    if not at or lower[at - 1] != "least" or "least" in lexicon:
        return 1.0
    return 1.0 if at > 1 and lower[at - 2] in ("at", "very") else _NEGATED


def _weighed_around_but(words: Words, valences: list[float]) -> list[float]:
    """Return the valences with less weight before the first "but" and more after it."""
    if "but" not in words.lower:
        return valences
    but = words.lower.index("but")
    for place in range(len(valences)):
        first = valences.index(valences[place])  # of several equal valences vaderSentiment weighs the first
        if first != but:
            valences[first] *= _BEFORE_BUT if first < but else _AFTER_BUT
    return valences


def _emphasis(text: str) -> float:
    questions = text.count("?")
    doubt = 0.0 if questions < 2 else questions * _QUESTION if questions <= 3 else _QUESTIONS
    return min(text.count("!"), _EXCLAMATIONS_MAX) * _EXCLAMATION + doubt
