"""The comments of one language as rows of numbers: small, and nothing that the garbage collector has to visit."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import Final

from msgspec import Struct

from deskwire.engine.surveys.insights.text_analysis.clauses import Clause, clauses
from deskwire.engine.surveys.insights.text_analysis.language import Language
from deskwire.engine.surveys.insights.text_analysis.stem_groups import stem_groups
from deskwire.engine.surveys.insights.text_analysis.yielding_thread import yielding

_STEMMED_MAX: Final = 30_000
"""The words that are brought to their stems, those of most comments; others are their own. A stem takes some 30 µs."""
_VOCABULARY_MAX: Final = 1_000
"""The stems, of those in most comments, that phrases are made of: it bounds the memory that pairs take."""
_FIELDS: Final = 4

WordPosition = tuple[int, int, int, int]
"""A word: the number of its clause, its place there, the number of content words of the clause, the number of its stem."""


class DocumentMatrix(Struct, frozen=True):
    """Comments of one language, by their position among all comments.

    Args:
        texts: of the comments, with `respondents`.
        keys: the stems that several comments have, the most frequent ones; a ! stands before one that is negated.
        names: the stem of each word that was stemmed.
        rows: the words of each comment that have one of `keys`, four numbers each.
    """

    language: Language
    texts: Mapping[int, str]
    respondents: Mapping[int, str]
    keys: Sequence[str]
    names: Mapping[str, str]
    rows: Mapping[int, array[int]]

    def words(self, index: int) -> Iterator[WordPosition]:
        """Yield the words of a comment, in their order."""
        row = self.rows[index]
        for at in range(0, len(row), _FIELDS):
            yield row[at], row[at + 1], row[at + 2], row[at + 3]

    def clause(self, index: int, number: int) -> Clause:
        """Return a clause of a comment."""
        return clauses(self.texts[index], self.language)[number]

    def name(self, form: str) -> str:
        """Return the stem by which a word is known among these comments, a ! before it if it is negated."""
        bare = form.removeprefix("!")
        return self.names.get(form) or form[: len(form) - len(bare)] + self.language.stem(bare)

    def people(self, indexes: Iterable[int]) -> int:
        """Count those who wrote these comments."""
        return len({self.respondents[index] for index in indexes})


def document_matrix(
    language: Language, texts: Mapping[int, str], respondents: Mapping[int, str]
) -> DocumentMatrix:
    """Read the comments of a language: their clauses' words, and which of these are the same."""
    forms: dict[str, int] = {}
    rows: dict[int, array[int]] = {}
    for index in yielding(texts):
        row = rows[index] = array("I")
        for number, clause in enumerate(clauses(texts[index], language)):
            for word in clause.words:
                form = forms.setdefault(word.form, len(forms))
                row.extend((number, word.place, len(clause.words), form))
    names = _names(forms, _frequent(rows, list(forms)), language)
    ids: dict[str, int] = {}
    stems = array("I", (ids.setdefault(names.get(form, form), len(ids)) for form in yielding(forms)))
    for index in yielding(rows):
        row = rows[index]
        row[_FIELDS - 1 :: _FIELDS] = array("I", (stems[form] for form in row[_FIELDS - 1 :: _FIELDS]))
    return _shared(DocumentMatrix(language, texts, respondents, list(ids), names, rows))


def _frequent(rows: Mapping[int, array[int]], forms: Sequence[str]) -> list[tuple[str, int]]:
    """Return the words in most comments, with the number of these."""
    counts = _comments(rows, len(forms))
    ranked = nlargest(_STEMMED_MAX, yielding(range(len(forms))), key=counts.__getitem__)
    return [(forms[form], counts[form]) for form in ranked]


def _comments(rows: Mapping[int, array[int]], size: int) -> array[int]:
    """Count the comments of each number that is in the last field of rows."""
    counts = array("I", bytes(size * 4))
    for index in yielding(rows):
        for number in set(rows[index][_FIELDS - 1 :: _FIELDS]):
            counts[number] += 1
    return counts


def _names(
    forms: Mapping[str, int], frequent: Sequence[tuple[str, int]], language: Language
) -> dict[str, str]:
    """Return the stem of each frequent word, one for stems that are one word."""
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for form, count in yielding(frequent):
        bare = form.removeprefix("!")
        names[form] = form[: len(form) - len(bare)] + language.stem(bare)
        counts[names[form]] += count
    joined = stem_groups(counts)
    return {form: joined.get(name, name) for form, name in names.items()}


def _shared(written: DocumentMatrix) -> DocumentMatrix:
    """Return the comments with those words alone that several comments have, at most _VOCABULARY_MAX of them."""
    counts = _comments(written.rows, len(written.keys))
    ranked = sorted(
        (key for key, count in enumerate(counts) if count > 1),
        key=lambda key: (-counts[key], written.keys[key]),
    )
    kept = {
        key: number
        for number, key in enumerate(sorted(ranked[:_VOCABULARY_MAX], key=lambda key: written.keys[key]))
    }
    rows = {
        index: array(
            "I",
            (number for *place, key in written.words(index) if key in kept for number in (*place, kept[key])),
        )
        for index in yielding(written.rows)
    }
    keys = [written.keys[key] for key in kept]
    return DocumentMatrix(written.language, written.texts, written.respondents, keys, written.names, rows)
