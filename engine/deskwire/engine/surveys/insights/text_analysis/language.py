"""The knowledge of a language: its stop words, stems, and judging words."""

from __future__ import annotations

import unicodedata
from enum import Enum
from functools import cache
from typing import Any, Final

from msgspec import Struct, field

from deskwire.engine.surveys.insights.text_analysis.lexicon import Lexicon, lexicon

_STEMMERS: Final = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish",
    "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian",
    "it": "italian", "lt": "lithuanian", "nb": "norwegian", "ne": "nepali", "nl": "dutch", "nn": "norwegian",
    "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
"""The library's names of the languages that it has a stemmer for."""
_STOP_WORDS_OF: Final = {"nb": "no", "nn": "no"}
_REMEMBERED_MAX: Final = 50_000
"""Words of a language that are remembered for as long as the process lives, with what is known of each."""
_GERMAN_GE_MIN: Final = 6


class WordKind(Enum):
    """The part of a word in a clause: content; a "very" if a judging word follows; a "not"; or nothing by itself."""

    CONTENT, VERY, NOT, STOP = range(4)


class Language(Struct):
    """A language, by its code without region; without stop words or stems where the libraries have none."""

    code: str
    stops: frozenset[str]
    lexicon: Lexicon
    stemmer: Any = None
    _stems: dict[str, str] = field(default_factory=dict)
    _kinds: dict[str, WordKind] = field(default_factory=dict)

    def stem(self, word: str) -> str:
        """Return what the forms of a word have in common: a stem without accents.

        Of words that the lexicon has it is the first of those that mean the same, after a = for judging words, else a ~.
        """
        known = self._stems.get(word)
        if known is None:
            known = self._found(word)
            if len(self._stems) < _REMEMBERED_MAX:
                self._stems[word] = known
        return known

    def _found(self, word: str) -> str:
        idea = self.lexicon.idea.get(word)
        if idea is not None:
            return f"={idea}"
        if word in self.lexicon.same:
            return f"~{self.lexicon.same[word]}"
        if self.stemmer is None:
            return word
        stem = folded(self.stemmer.stemWord(word))
        judging = _judging_stems(self.code).get(stem)
        if judging is not None:
            return f"={judging}"
        return _german(stem) if self.code == "de" else stem

    def judges(self, word: str) -> bool:
        """Tell whether a word judges."""
        return self.stem(word)[0] == "="

    def negates(self, word: str) -> bool:
        """Tell whether a word is a "not"."""
        return word in self.lexicon.words("not") or (self.code == "en" and word.endswith("n't"))

    def kind(self, word: str) -> WordKind:
        """Return what a word in lower case is."""
        kind = self._kinds.get(word)
        if kind is None:
            kind = self._kind(word)
            if len(self._kinds) < _REMEMBERED_MAX:
                self._kinds[word] = kind
        return kind

    def _kind(self, word: str) -> WordKind:
        if self.negates(word):
            return WordKind.NOT
        if word in self.stops or len(word) < 2 or any(map(str.isdigit, word)):
            return WordKind.STOP
        return WordKind.VERY if word in self.lexicon.words("very") else WordKind.CONTENT

    def generic(self, key: str) -> bool:
        """Tell whether a stem is of praise or blame that says nothing of what it is about."""
        return key[:1] == "=" and key[1:] in self.lexicon.generic


@cache
def language(code: str) -> Language:
    """Return the language of a code without region."""
    import stopwordsiso  # only where comments are read: the start of the service is not to wait for it

    words = lexicon(code)
    known = _STOP_WORDS_OF.get(code, code)
    listed = frozenset(stopwordsiso.stopwords(known)) if stopwordsiso.has_lang(known) else frozenset()
    always = (
        words.words("not")
        | words.words("less")
        | words.words("but")
        | (words.words("very") - words.valence.keys())
    )
    stops = (
        (listed - words.words("keep") - words.valence.keys() - words.same.keys())
        | always
        | words.words("drop")
    )
    return Language(code, stops, words, _stemmer(code))


def base(code: str) -> str:
    """Return the code of a language without its region: `de` for `de-AT`."""
    return code.partition("-")[0].lower()


def folded(word: str) -> str:
    """Return a word without accents, which phones leave out."""
    if word.isascii():
        return word
    split = unicodedata.normalize("NFKD", word)
    return "".join(each for each in split if not unicodedata.combining(each)) or word


def _stemmer(code: str) -> Any:
    import snowballstemmer

    name = _STEMMERS.get(code)
    return None if name is None else snowballstemmer.stemmer(name)


@cache
def _judging_stems(code: str) -> dict[str, str]:
    """Return the ideas of judging words by their stems, so that forms which are not listed have them too."""
    words, stemmer = lexicon(code), _stemmer(code)
    stems: dict[str, str] = {}
    for word, idea in words.idea.items():
        stems.setdefault(folded(stemmer.stemWord(word)), idea)
    return stems


def _german(stem: str) -> str:
    """Return the stem of a participle without what it begins and ends with: `liefer` for `geliefert`."""
    if stem.startswith("ge") and len(stem) >= _GERMAN_GE_MIN and stem.endswith("t"):
        return stem[2:].removesuffix("t").removesuffix("e")
    return stem
