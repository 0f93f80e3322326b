"""Lexicons of judging words in a few languages: valence and synonyms (ADR 18).

The files in `lexicon/` explain their format at the top.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct, field

_FOLDER: Final = Path(__file__).parent / "lexicon"


class Lexicon(Struct, frozen=True):
    """The judging words of a language, in lower case; empty for a language without a file.

    Args:
        valence: valence of judging words, from -4 to 4.
        idea: first synonym of judging words.
        same: first synonym of other words.
        generic: general praise and blame, such as "great".
        lists: other words by role: `not`, `very`, `less`, `but`, `keep`, `drop`, `too`, `particles`, `not-only`,
            `neutral`.
    """

    valence: Mapping[str, float] = field(default_factory=dict)
    idea: Mapping[str, str] = field(default_factory=dict)
    same: Mapping[str, str] = field(default_factory=dict)
    generic: frozenset[str] = frozenset()
    lists: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def words(self, part: str) -> frozenset[str]:
        """Return the words with a role, none if the language has no such list."""
        return self.lists.get(part, frozenset())


@cache
def lexicon(language: str) -> Lexicon:
    """Return the lexicon of a language, by its code without region."""
    path = _FOLDER / f"{language}.txt"
    if not language.isalpha() or not path.is_file():
        return Lexicon()
    valence: dict[str, float] = {}
    idea: dict[str, str] = {}
    same: dict[str, str] = {}
    generic: set[str] = set()
    lists: dict[str, frozenset[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if line.startswith("#") or not words:
            continue
        if name == "same":
            same.update(dict.fromkeys(words, words[0]))
            continue
        if name[0] not in "+-":
            lists[name] = frozenset(words)
            continue
        for word in words:
            valence.setdefault(word, float(name.rstrip("*")))
            idea.setdefault(word, words[0])
        if name.endswith("*"):
            generic.update(words)
    return Lexicon(valence, idea, same, frozenset(generic), lists)
