"""The comments of one language as rows of numbers, which are compact and not tracked by the garbage collector."""

from __future__ import annotations

import time
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import Final, TypeVar

from msgspec import Struct

from deskwire.engine.surveys.insights.text_analysis.clauses import Clause, clauses
from deskwire.engine.surveys.insights.text_analysis.language import Language
from deskwire.engine.surveys.insights.text_analysis.stem_groups import stem_groups

_STEMMED_MAX: Final = 30_000
"""Most frequent words that are stemmed, at about 30 µs each; others are used as they are."""
_VOCABULARY_MAX: Final = 1_000
"""Most frequent stems from which phrases are built; bounds the memory of pairs."""
_FIELDS: Final = 4

WordPosition = tuple[int, int, int, int]
"""A word: clause number, position in the clause, number of content words in the clause, stem number."""


class DocumentMatrix(Struct, frozen=True):
    """Comments of one language, by their index among all comments.

    Args:
        texts, respondents: of the comments.
        keys: the most frequent stems that several comments share; negated ones start with !.
        names: the stem of each stemmed word.
        rows: the words of each comment whose stem is in `keys`, four numbers each.
    """

    language: Language
    texts: Mapping[int, str]
    respondents: Mapping[int, str]
    keys: Sequence[str]
    names: Mapping[str, str]
    rows: Mapping[int, array[int]]

    def words(self, index: int) -> Iterator[WordPosition]:
        """Yield the words of a comment in order."""
        row = self.rows[index]
        for at in range(0, len(row), _FIELDS):
            yield row[at], row[at + 1], row[at + 2], row[at + 3]

    def clause(self, index: int, number: int) -> Clause:
        """Return a clause of a comment."""
        return clauses(self.texts[index], self.language)[number]

    def name(self, form: str) -> str:
        """Return the stem of a word in these comments, with a ! prefix if it is negated."""
        bare = form.removeprefix("!")
        return self.names.get(form) or form[: len(form) - len(bare)] + self.language.stem(bare)

    def people(self, indexes: Iterable[int]) -> int:
        """Count the respondents of these comments."""
        return len({self.respondents[index] for index in indexes})


def document_matrix(
    language: Language, texts: Mapping[int, str], respondents: Mapping[int, str]
) -> DocumentMatrix:
    """Build the matrix from the comments of a language."""
    forms: dict[str, int] = {}
    rows: dict[int, array[int]] = {}
    for index in yielding(texts):
        row = rows[index] = array("I")
        for number, clause in enumerate(clauses(texts[index], language)):
            for word in clause.words:
                form = forms.setdefault(word.form, len(forms))
                row.extend((number, word.place, len(clause.words), form))
    names = _names(_frequent(rows, list(forms)), language)
    ids: dict[str, int] = {}
    stems = array("I", (ids.setdefault(names.get(form, form), len(ids)) for form in yielding(forms)))
    for index in yielding(rows):
        row = rows[index]
        row[_FIELDS - 1 :: _FIELDS] = array("I", (stems[form] for form in row[_FIELDS - 1 :: _FIELDS]))
    return _shared(DocumentMatrix(language, texts, respondents, list(ids), names, rows))


def _frequent(rows: Mapping[int, array[int]], forms: Sequence[str]) -> list[tuple[str, int]]:
    """Return the most frequent words, with the number of comments of each."""
    counts = _comments(rows, len(forms))
    ranked = nlargest(_STEMMED_MAX, yielding(range(len(forms))), key=counts.__getitem__)
    return [(forms[form], counts[form]) for form in ranked]


def _comments(rows: Mapping[int, array[int]], size: int) -> array[int]:
    """Count the comments for each number in the last field of rows."""
    counts = array("I", bytes(size * 4))
    for index in yielding(rows):
        for number in set(rows[index][_FIELDS - 1 :: _FIELDS]):
            counts[number] += 1
    return counts


def _names(frequent: Sequence[tuple[str, int]], language: Language) -> dict[str, str]:
    """Return the stem of each frequent word, after grouping of stems."""
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for form, count in yielding(frequent):
        bare = form.removeprefix("!")
        names[form] = form[: len(form) - len(bare)] + language.stem(bare)
        counts[names[form]] += count
    joined = stem_groups(counts)
    return {form: joined.get(name, name) for form, name in names.items()}


def _shared(matrix: DocumentMatrix) -> DocumentMatrix:
    """Return the matrix reduced to words that several comments share, at most _VOCABULARY_MAX."""
    counts = _comments(matrix.rows, len(matrix.keys))
    ranked = sorted(
        (key for key, count in enumerate(counts) if count > 1),
        key=lambda key: (-counts[key], matrix.keys[key]),
    )
    kept = {
        key: number
        for number, key in enumerate(sorted(ranked[:_VOCABULARY_MAX], key=lambda key: matrix.keys[key]))
    }
    rows = {
        index: array(
            "I",
            (number for *place, key in matrix.words(index) if key in kept for number in (*place, kept[key])),
        )
        for index in yielding(matrix.rows)
    }
    keys = [matrix.keys[key] for key in kept]
    return DocumentMatrix(matrix.language, matrix.texts, matrix.respondents, keys, matrix.names, rows)


T = TypeVar("T")
_EVERY: Final = 16
"""Items between two releases of the GIL. A comment takes tens of microseconds, a long one up to two milliseconds."""


def yielding(items: Iterable[T]) -> Iterator[T]:
    """Yield the items, and let other threads run after every few of them instead of at the switch interval."""
    for number, item in enumerate(items):
        if number % _EVERY == 0:
            time.sleep(0)
        yield item
