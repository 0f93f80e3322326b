"""Splits texts into clauses of content words, at punctuation and at words such as "but"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from deskwire.engine.surveys.insights.text_analysis.language import Language, WordKind

_PART: Final = re.compile(r"[.!?;:,()\[\]\"“”„«»\n\r…|/]+|\s[-–—]+\s|[^\W_]+(?:['’-][^\W_]+)*")  # noqa: RUF001  # as phones type
_ENDS: Final = frozenset(".!?;\n\r…")
_ELISION: Final = re.compile(r"(?:qu|jusqu|lorsqu|puisqu|[ldjmtscn])['’](?=\w)")  # noqa: RUF001
_ELIDING: Final = frozenset({"fr", "it", "ca"})
_WORD_MAX: Final = 40
"""Longer sequences are not words."""
_NEGATING_AFTER: Final = frozenset({"de", "nl"})
"""Languages in which "not" follows the negated word."""
_NEGATES: Final = 4
"""Maximum distance of a negation from the negated word, in words."""


class Word(NamedTuple):
    """A content word of a clause.

    Args:
        place: its index among all words of the clause.
        start, end: its span in the text.
        form: the word in lower case, prefixed with ! if it is negated.
        opens: the start of a title with this word: the word, or the "not" or "too" before it.
    """

    place: int
    start: int
    end: int
    form: str
    opens: int


class Clause(NamedTuple):
    """A clause with content words: the words, its span in the text, and the span of its sentence."""

    words: list[Word]
    start: int
    end: int
    sentence: tuple[int, int]


_Token = tuple[int, int, str]
"""The span of a word in the text, and the word in lower case."""


def clauses(text: str, language: Language) -> list[Clause]:
    """Return the clauses of a text that have content words."""
    found: list[Clause] = []
    for sentence in _sentences(text, language):
        spanned = [tokens for tokens in sentence if tokens]
        if spanned:
            whole = (spanned[0][0][0], spanned[-1][-1][1])
            for tokens in spanned:
                if words := _content(tokens, language):
                    found.append(Clause(words, tokens[0][0], tokens[-1][1], whole))
    return found


def _sentences(text: str, language: Language) -> Iterator[list[list[_Token]]]:
    """Yield the sentences of a text, each as the tokens of its clauses."""
    but, elides = language.lexicon.words("but"), language.code in _ELIDING
    sentence: list[list[_Token]] = [[]]
    for match in _PART.finditer(text):
        part = match[0]
        if not part[0].isalnum():
            if _ENDS.isdisjoint(part):
                sentence.append([])
            else:
                yield sentence
                sentence = [[]]
        elif len(part) <= _WORD_MAX:
            start, end = match.span()
            lower = part.lower().replace("’", "'")  # noqa: RUF001
            if elides and "'" in lower and (elided := _ELISION.match(lower)):
                start, lower = start + elided.end(), lower[elided.end() :]
            if lower in but:
                sentence.append([])
            sentence[-1].append((start, end, lower))
    yield sentence


def _content(tokens: list[_Token], language: Language) -> list[Word]:
    """Return the content words of a clause. A negation applies to the first one after it, in German to the last before."""
    words: list[Word] = []
    negation = None
    for place, (start, end, lower) in enumerate(tokens):
        kind = language.kind(lower)
        if kind is WordKind.STOP:
            continue
        following = tokens[place + 1][2] if place + 1 < len(tokens) else ""
        if kind is WordKind.NOT:
            negation = None if following in language.lexicon.words("not-only") else (place, start, end)
        elif kind is not WordKind.VERY or following not in language.lexicon.valence:
            opens, form = _opens(place, tokens, language), lower
            if negation is not None and place - negation[0] <= _NEGATES:
                opens, form, negation = negation[1], f"!{lower}", None
            words.append(Word(place, start, end, form, opens))
    if negation is not None and words and language.code in _NEGATING_AFTER and words[-1].form[0] != "!":
        words[-1] = words[-1]._replace(form=f"!{words[-1].form}", end=negation[2])
    return words


def _opens(place: int, tokens: list[_Token], language: Language) -> int:
    """Return the start of a word, or of the "too" before a judging word."""
    if place and tokens[place - 1][2] in language.lexicon.words("too") and language.judges(tokens[place][2]):
        return tokens[place - 1][0]
    return tokens[place][0]
