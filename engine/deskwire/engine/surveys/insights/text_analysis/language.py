"""Stop words, stems and judging words of a language."""

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
"""Names of the stemmers in the library, by language code."""
_STOP_WORDS_OF: Final = {"nb": "no", "nn": "no"}
_CACHED_MAX: Final = 50_000
"""Words in the caches of a language, which live as long as the process."""
_GERMAN_GE_MIN: Final = 6


class WordKind(Enum):
    """The role of a word in a clause: content, intensifier ("very"), negation ("not"), or stop word."""

    CONTENT, VERY, NOT, STOP = range(4)


class Language(Struct):
    """A language by its code without region. Stop words and stemmer may be missing in the libraries."""

    code: str
    stops: frozenset[str]
    lexicon: Lexicon
    stemmer: Any = None
    _stems: dict[str, str] = field(default_factory=dict)
    _kinds: dict[str, WordKind] = field(default_factory=dict)

    def stem(self, word: str) -> str:
        """Return the stem of a word, without accents.

        For words in the lexicon, the first of their synonyms, prefixed with = for judging words and ~ for others.
        """
        known = self._stems.get(word)
        if known is None:
            known = self._computed_stem(word)
            if len(self._stems) < _CACHED_MAX:
                self._stems[word] = known
        return known

    def _computed_stem(self, word: str) -> str:
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
        """Return whether a word is a judgement."""
        return self.stem(word)[0] == "="

    def negates(self, word: str) -> bool:
        """Return whether a word is a negation."""
        return word in self.lexicon.words("not") or (self.code == "en" and word.endswith("n't"))

    def kind(self, word: str) -> WordKind:
        """Return the role of a word, which is in lower case."""
        kind = self._kinds.get(word)
        if kind is None:
            kind = self._kind(word)
            if len(self._kinds) < _CACHED_MAX:
                self._kinds[word] = kind
        return kind

    def _kind(self, word: str) -> WordKind:
        if self.negates(word):
            return WordKind.NOT
        if word in self.stops or len(word) < 2 or any(map(str.isdigit, word)):
            return WordKind.STOP
        return WordKind.VERY if word in self.lexicon.words("very") else WordKind.CONTENT

    def generic(self, key: str) -> bool:
        """Return whether a stem is general praise or blame, such as "great"."""
        return key[:1] == "=" and key[1:] in self.lexicon.generic


@cache
def language(code: str) -> Language:
    """Return the language with this code, without region."""
    import stopwordsiso  # imported late: the start of the service must not wait for it

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
    """Return a word without accents, because people often omit them on phones."""
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
    """Return the first synonyms of judging words by stem, for inflected forms that are not in the lexicon."""
    words, stemmer = lexicon(code), _stemmer(code)
    stems: dict[str, str] = {}
    for word, idea in words.idea.items():
        stems.setdefault(folded(stemmer.stemWord(word)), idea)
    return stems


def _german(stem: str) -> str:
    """Return the stem of a German participle without its prefix and suffix: `liefer` for `geliefert`."""
    if stem.startswith("ge") and len(stem) >= _GERMAN_GE_MIN and stem.endswith("t"):
        return stem[2:].removesuffix("t").removesuffix("e")
    return stem
