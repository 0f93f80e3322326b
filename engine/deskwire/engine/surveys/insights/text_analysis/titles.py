"""Titles of phrases, in their most common form."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from deskwire.engine.surveys.insights.text_analysis.clauses import Clause
from deskwire.engine.surveys.insights.text_analysis.document_matrix import DocumentMatrix, yielding
from deskwire.engine.surveys.insights.text_analysis.language import Language, folded
from deskwire.engine.surveys.insights.text_analysis.phrases import Phrase, Spot

_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")  # noqa: RUF001  # the apostrophe that phones type
_FOREIGN: Final = 0.3
"""Weight of a form with other content words between its own."""
_BETWEEN: Final = (1.0, 0.7, 0.5, 0.3)
"""Weight of a form by the number of stop words between its content words."""
_LONGER: Final = 0.6
"""The share of comments with the same word next to a phrase from which the title includes the word."""
_READ: Final = 500
"""Spots from which the title is chosen, the first ones."""
_TITLE_WORDS_MAX: Final = 6
_PARTICLE_WITHIN: Final = 2
_RARELY: Final = 0.05
"""Weight of the bare words of a phrase if every form in the comments is too long."""
Form = tuple[str, ...]


def title(phrase: Phrase, matrix: DocumentMatrix) -> str:
    """Return the most common readable form of a phrase, with the most common spelling of its words."""
    forms: Counter[Form] = Counter()
    weights: dict[Form, float] = {}
    spellings: dict[str, Counter[str]] = {}
    spots = phrase.spots[:_READ]
    for spot in yielding(spots):
        text, clause = matrix.texts[spot[0]], matrix.clause(spot[0], spot[1])
        for form, weight in _forms(spot, text, clause, matrix.language):
            forms[form] += 1
            weights[form] = max(weight, weights.get(form, 0.0))
        for plain, word in _spellings(text, clause, matrix.language):
            spellings.setdefault(plain, Counter())[word] += 1
    best = min(forms, key=lambda form: (-forms[form] * weights[form], len(form), form))
    return " ".join(_spelt(_longer(best, forms, weights, len(spots)), spellings))


def _forms(spot: Spot, text: str, clause: Clause, language: Language) -> Iterator[tuple[Form, float]]:
    """Yield the form of a phrase at a spot, and longer forms with the content word before or after it."""
    places = [word.place for word in clause.words]
    low, high = places.index(spot[2]), places.index(spot[3])
    words = clause.words[low : high + 1]
    form = _form(text, min(word.opens for word in words), _end(text, clause, words[-1].end, language))
    inner = len(words) - min(2, len(words))
    small = max(0, len(form) - len(words))
    weight = _BETWEEN[min(small, len(_BETWEEN) - 1)] * (_FOREIGN if inner else 1.0)
    if len(form) > _TITLE_WORDS_MAX:
        form = _form(text, words[0].start, words[0].end) + _form(text, words[-1].start, words[-1].end)
        weight = _RARELY
    yield form, weight
    if len(words) == 2 and weight == 1.0:
        for first, last in ((low - 1, high), (low, high + 1)):
            if first >= 0 and last < len(places) and places[last] - places[first] == 2:
                yield _form(text, clause.words[first].start, clause.words[last].end), 0.0


def _form(text: str, start: int, end: int) -> Form:
    """Return the words of a piece of text, without case and accents."""
    return tuple(folded(word) for word in _WORD.findall(text[start:end].lower()))


def _end(text: str, clause: Clause, end: int, language: Language) -> int:
    """Return the end of a form, including a separable German verb particle at the end of the clause."""
    particles = language.lexicon.words("particles")
    if particles:
        rest = list(_WORD.finditer(text, end, clause.end))
        if 0 < len(rest) <= _PARTICLE_WITHIN and rest[-1][0].lower() in particles:
            return rest[-1].end()
    return end


def _longer(
    best: Form,
    forms: Mapping[Form, int],
    weights: Mapping[Form, float],
    spots: int,
) -> Form:
    """Return the longer form if most spots have it, else the form itself."""
    wider = [form for form in forms if not weights[form] and set(best) < set(form)]
    wide = min(wider, key=lambda form: (-forms[form], form), default=best)
    return wide if wider and forms[wide] >= max(2, _LONGER * spots) else best


def _spellings(text: str, clause: Clause, language: Language) -> Iterator[tuple[str, str]]:
    """Yield the words of a clause without accents and case, each with its spelling inside a sentence."""
    shouted = text.isupper()
    for match in _WORD.finditer(text, clause.start, clause.end):
        word, plain = match[0], match[0].lower()
        if shouted or match.start() == clause.sentence[0]:
            word = _initial(plain, language)
        yield folded(plain), word


def _initial(plain: str, language: Language) -> str:
    """Return the probable spelling, inside a sentence, of a word from a capitalized place: most German ones are nouns."""
    is_noun = language.code == "de" and not language.judges(plain) and plain not in language.stops
    return plain[:1].upper() + plain[1:] if is_noun else plain


def _spelt(form: Form, spellings: Mapping[str, Counter[str]]) -> Iterator[str]:
    for place, plain in enumerate(form):
        seen = spellings.get(plain, Counter({plain: 1}))
        word = min(seen, key=lambda each: (-seen[each], each.isascii(), each))
        yield word[:1].upper() + word[1:] if place == 0 else word
