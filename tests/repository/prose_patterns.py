"""Patterns of wording that make a sentence hard to read, with the wording to prefer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_FINITE: Final = (
    "is|are|was|were|has|have|had|can|could|may|might|will|must|cannot|needs?|never|(?:do|does|did|would) not"
)
_RELATIVE: Final = "that|which|who|whose|where|when|there|if|of"
_CLAUSE: Final = rf"(?:(?!(?:{_RELATIVE})\b)[\w'/-]+ ){{1,6}}(?:{_FINITE})\b(?! ?[.,;:)]| ?$)"
"""Up to six words and a finite verb that the clause goes on after: no noun with a relative clause, and no comparison
("as the API does")."""

_END: Final = r"(?= ?[.,;:)!?]| ?$| (?:and|or|but|because|when|while|if|after|by|in|on|for|from|at)\b)"
"""The end of a clause, or a word that goes on with another one: an adverb stands here, and no noun follows."""

_COMPARISON: Final = (
    r"(?:it|they|that|those) (?:is|are|was|were|does|do|did|has|have|had)"
    r"(?: (?:now|before|today|already|elsewhere))?(?= ?[.,;:)]| ?$)"
)


class Pattern(NamedTuple):
    """A pattern of wording: its name, the wording to prefer, words that every match contains, and its expression."""

    name: str
    better: str
    words: tuple[str, ...]
    expression: re.Pattern[str]


def _pattern(name: str, better: str, words: str, expression: str) -> Pattern:
    """Return a pattern whose expression may cross the ends of lines wherever it has a space."""
    spaced = expression.replace(" ?", r"\s?").replace(" ", r"\s+")
    return Pattern(name, better, tuple(words.split("|")), re.compile(spaced))


_START: Final = r"(?:\A|(?<=[.;:!?]\s))\s*(?:(?:[-*|>(#]+|\d+[.)]) ?)*"

_MARKS: Final = "-*|>(#.0123456789) \t\n"

PATTERNS: Final = (
    _pattern(
        "clause without a noun",
        "name the noun: 'the value that …', 'the caller that …'",
        "what|who",
        rf"{_START}(?:whoever|whatever|whose|who|what)\b(?! (?:is|are) (?:the|an?)\b)(?! you\b)(?!') \w+(?![^.;:]*\?)"
        r"|\b(?:of|to|for|by|with|that|from) (?:whatever|whoever|what)\b(?!')",
    ),
    _pattern(
        "told",
        "notify, publish, receive, log, return",
        "told|tell|say nothing",
        r"\b(?:is|are|be|was|were|been|being) (?:not |never |also |then )?told\b|\btold of\b|\btell(?:s|ing)? of\b|\bsay nothing of\b",
    ),
    _pattern(
        "tell whether",
        "return whether, check whether, or 'True if …' for a property",
        "whether",
        r"\btell(?:s|ing)? whether\b",
    ),
    _pattern(
        "as for because",
        "because",
        "as",
        rf", as (?!{_COMPARISON})(?:(?:it|they|that|there|no|nobody|he|what|nothing)\b"
        rf"|(?:the|its|each|one|an?|most|all|those|such|these|this|every|their) {_CLAUSE})",
    ),
    _pattern(
        "for for because",
        "because",
        "for",
        rf", for (?:(?:it|they|that|there) (?:\w+ ){{0,3}}?(?:{_FINITE})\b|(?:no|the|each|its|every) {_CLAUSE})",
    ),
    _pattern(
        "antique adverb",
        "again, no longer, forever",
        "anew|once more|no more|any more|for ever",
        r"\banew\b|(?<!at\s)\bonce more\b(?! than| \w+ (?:is|are|has|have)\b)"
        rf"|\b(?:no|any) more\b(?! than){_END}|\bfor ever\b",
    ),
    _pattern(
        "meanwhile, behind",
        "in the meantime, before, after",
        "meanwhile|beforehand|behind",
        r"\bmeanwhile\b|\bbeforehand\b"
        r"|\bbehind (?:it|that|them|what|one|its|each|this|the)\b(?! (?:\w+ )?(?:proxy|proxies|balancer|ingress|gateway|router)\b)",
    ),
    _pattern(
        "inverted condition",
        "if",
        "should|were",
        r"(?:\A|(?<=[.;:,]\s))\s*(?:should|were) (?:it|one|they|that|there|nothing|anything|the|this)\b(?![^.;:]*\?)",
    ),
    _pattern(
        "nobody for code",
        "name them: no client, no task, another node, the caller",
        "nobody|somebody|everybody|whoever",
        r"\b(?:nobody|somebody|everybody|whoever)\b",
    ),
    _pattern(
        "be it, by itself",
        "whether … or; automatically, alone, by default",
        "be it|be they|by itself|by themselves",
        r"(?:\A|(?<=[,;:(]\s)|(?<=\())be (?:it|they)\b|\bby (?:itself|themselves)\b",
    ),
    _pattern(
        "let go",
        "release, drop, evict, disconnect",
        "go",
        r"\blet(?:s|ting)? (?:[\w']+ ){0,5}?go\b(?! (?:on|to|out|through|ahead|first)\b)",
    ),
    _pattern(
        "so many",
        "that many; at most, at least",
        "so many|at the most|at the least",
        r"\bso many\b(?! (?:\w+ ){0,4}that\b)|\bat the (?:most|least)\b",
    ),
)
"""The twelve patterns; texts are given to them in lower case, without code."""


def matches(text: str) -> Iterator[tuple[Pattern, int, int]]:
    """Yield each match of a pattern in a text of three words and more: the pattern, where it begins, where it ends."""
    lowered = text.lower()
    if len(lowered.split(None, 3)) < 3:
        return
    for pattern in PATTERNS:
        if any(word in lowered for word in pattern.words):
            for found in pattern.expression.finditer(lowered):
                yield pattern, found.end() - len(found.group().lstrip(_MARKS)), found.end()
