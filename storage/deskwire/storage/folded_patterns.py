"""Patterns that find a part of a text as folding compares it, in texts that are stored as they were written.

No database folds as `engine.core.folding` does, and a folded copy of every message would double the file. So SQLite asks the
folding itself, for those texts alone that its own operators can't rule out, and PostgreSQL gets a regular
expression that matches a text exactly if the folded text has the folded part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final

from msgspec import Struct

from deskwire.engine.core.folding import FOLDING, fold
from deskwire.storage.dialect import SQLITE, Dialect

_FOLDED_RANGES: Final = (
    (0x80, 0x3400), (0xA000, 0xAC00), (0xD7A4, 0xD800), (0xF900, 0x12000), (0x16000, 0x17000), (0x18D00, 0x20000),
    (0x2F800, 0x2FA20), (0xE0000, 0xE1000),
)  # fmt: skip
"""All characters that are folded to something else, but for the syllables of Hangul, which are computed."""

_SYLLABLE: Final = 0xAC00
_LEADING, _VOWEL, _TRAILING = 0x1100, 0x1161, 0x11A7
_LEADINGS, _VOWELS, _TRAILINGS = 19, 21, 28
"""Hangul (The Unicode Standard, 3.12): a syllable is a leading consonant, a vowel, and perhaps a trailing consonant."""

_GLOB_CLASS_MAX: Final = 24
_GLOB_CLASSES_MAX: Final = 12
"""Limits of a GLOB pattern: characters in a class, and classes. SQLite compares each character with the whole class."""


class Inverse(Struct, frozen=True):
    """The inverse of folding.

    Attributes:
        dropped: characters that fold to nothing, as ranges of a character class.
        same: characters that fold to a single other character, by that one.
        expanded: characters that fold to several, with their folded forms.
        parts: all characters in these folded forms.
    """

    dropped: str
    same: Mapping[str, str]
    expanded: Mapping[str, str]
    parts: frozenset[str]


@cache
def inverse() -> Inverse:
    """Return the inverse of folding; computed on the first call, in a tenth of a second."""
    dropped: list[int] = []
    same: dict[str, str] = {chr(code): chr(code - 32) for code in range(ord("a"), ord("z") + 1)}
    expanded: dict[str, str] = {}
    for code in (code for first, end in _FOLDED_RANGES for code in range(first, end)):
        character, folded = chr(code), FOLDING[code]
        if not folded:
            dropped.append(code)
        elif len(folded) > 1:
            expanded[character] = folded
        elif folded != character:
            same[folded] = same.get(folded, "") + character
    return Inverse(_ranges(dropped), same, expanded, frozenset("".join(expanded.values())))


def _ranges(codes: Iterable[int]) -> str:
    found: list[list[int]] = []
    for code in codes:
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in found)


class RegularExpression(Struct, frozen=True):
    """A regular expression of PostgreSQL that matches texts with a folded substring.

    Attributes:
        pattern: matches texts with the substring, except for texts with a character of `expanded`.
        expands: matches texts with a character of `expanded`; None if there is none.
        expanded: characters that fold to several, some of which may be in the substring.
        becomes: the folded form of each.
    """

    pattern: str
    expands: str | None
    expanded: tuple[str, ...]
    becomes: tuple[str, ...]


@lru_cache(maxsize=256)
def regular_expression(part: str) -> RegularExpression:
    """Return the advanced regular expression of PostgreSQL for a folded, non-empty substring."""
    table = inverse()
    pieces = list(_pieces(part, table))
    found = {each: folded for each, folded in table.expanded.items() if _overlap(folded, part)}
    expands = f"[{''.join(found)}]" if found else None
    return RegularExpression(f"[{table.dropped}]*".join(pieces), expands, tuple(found), tuple(found.values()))


def _overlap(folded: str, part: str) -> bool:
    """Return whether a character with this folded form can overlap a match of the substring."""
    if folded in part or part in folded:
        return True
    sizes = range(1, min(len(folded), len(part)))
    return any(folded.endswith(part[:size]) or part.endswith(folded[:size]) for size in sizes)


def _pieces(part: str, table: Inverse) -> Iterator[str]:
    """Yield the pattern of each character of the substring, and of each Hangul syllable in it."""
    at = 0
    while at < len(part):
        size = _syllable_size(part, at)
        one_by_one = f"[{table.dropped}]*".join(_class(each, table) for each in part[at : at + size])
        syllables = _syllables(part[at : at + size], first=at == 0, last=at + size == len(part))
        yield "(?:" + "|".join((one_by_one, *syllables)) + ")" if syllables else one_by_one
        at += size


def _class(character: str, table: Inverse) -> str:
    others = table.same.get(character, "")
    own = re.sub(r"([^\w\s])", r"\\\1", character) if character.isascii() else character
    return f"[{own}{others}]" if others or own != character else own


def _is_jamo(character: str, first: int, count: int) -> bool:
    return first <= ord(character) < first + count


def _syllable_size(part: str, at: int) -> int:
    """Return the number of characters from this index on that can form one Hangul syllable; 1 for other scripts."""
    kinds = ((_LEADING, _LEADINGS), (_VOWEL, _VOWELS), (_TRAILING + 1, _TRAILINGS - 1))
    start = next((kind for kind, each in enumerate(kinds) if _is_jamo(part[at], *each)), None)
    if start is None:
        return 1
    size = 1
    for kind in kinds[start + 1 :]:
        if at + size == len(part) or not _is_jamo(part[at + size], *kind):
            break
        size += 1
    return size


def _syllables(jamo: str, *, first: bool, last: bool) -> Sequence[str]:
    """Return patterns for the composed syllables that contain these characters.

    Args:
        first: the substring begins with them, so other characters of the syllable may come before.
        last: the substring ends with them, so other characters of the syllable may follow.
    """
    leading = _number(jamo[0], _LEADING, _LEADINGS)
    rest = jamo if leading is None else jamo[1:]
    vowel = _number(rest[:1], _VOWEL, _VOWELS)
    rest = rest if vowel is None else rest[1:]
    trailing = _number(rest[:1], _TRAILING + 1, _TRAILINGS - 1)
    if leading is None and vowel is None and trailing is None:
        return ()
    if (leading is None and not first) or (vowel is None and leading is not None and not last):
        return ()
    leadings = range(_LEADINGS) if leading is None else (leading,)
    if vowel is None:
        vowels = range(_VOWELS)
    else:
        vowels = range(vowel, vowel + 1)
    written = "".join(
        _written(each, other, None if trailing is None else trailing + 1, open_end=last)
        for each in leadings
        for other in vowels
    )
    whole = [f"[{written}]"]
    if trailing is not None and vowel is not None:
        open_ones = "".join(chr(_code(each, vowel)) for each in leadings)
        whole.append(f"[{open_ones}][{inverse().dropped}]*{_class(rest, inverse())}")
    return whole


def _number(character: str, first: int, count: int) -> int | None:
    return ord(character) - first if character and _is_jamo(character, first, count) else None


def _code(leading: int, vowel: int) -> int:
    return _SYLLABLE + (leading * _VOWELS + vowel) * _TRAILINGS


def _written(leading: int, vowel: int, trailing: int | None, *, open_end: bool) -> str:
    code = _code(leading, vowel)
    if trailing is not None:
        return chr(code + trailing)
    return f"{chr(code)}-{chr(code + _TRAILINGS - 1)}" if open_end else chr(code)


@lru_cache(maxsize=256)
def glob(part: str) -> str:
    """Return a GLOB pattern of SQLite that matches every text with this folded substring, and few others.

    It consists of some characters of the substring in order, each as a class of the characters that fold to it.
    """
    table = inverse()
    letters = (
        f"{each}{table.same.get(each, '')}"
        for each in part
        if not each.isascii()
        and each.isalpha()
        and each not in table.parts
        and not _is_jamo(each, 0x1100, 256)
    )
    classes = [each for each in letters if len(each) <= _GLOB_CLASS_MAX][:_GLOB_CLASSES_MAX]
    return "".join(f"*[{each}]" for each in classes) + "*"


def folded_text(text: str | None) -> str | None:
    """Return the folded text; the SQL function `fold_text`."""
    return None if text is None else fold(text)


def has_folded(text: str | None, part: str) -> bool:
    """Return whether a text has a folded substring; the SQL function `has_folded`."""
    return text is not None and _rarest(part).search(text) is not None and part in fold(text)


_RARITY: Final = "qxzjkwvybpgfmcuhdlrsnioate"
"""Letters by frequency in texts of many languages, the rarest first."""


@lru_cache(maxsize=256)
def _rarest(part: str) -> re.Pattern[str]:
    """Return a pattern for all forms of the rarest character of a folded substring. Searching is faster than folding."""
    rarest = min(part, key=lambda each: _RARITY.find(each) if each.isalnum() else len(_RARITY))
    table = inverse()
    several = "".join(each for each, folded in table.expanded.items() if rarest in folded)
    if _is_jamo(rarest, _LEADING, 256):
        return re.compile("")
    return re.compile(f"[{re.escape(rarest + table.same.get(rarest, '') + several)}]")


def contains(dialect: Dialect, column: str, text: str) -> tuple[str, tuple[Any, ...]]:
    """Return the condition that a column contains a text after folding, with its values.

    A text that folds to nothing, such as a lone joiner, is contained in no text.
    """
    part = fold(text)
    if not part:
        return "1 = 0", ()
    return (_sqlite if dialect is SQLITE else _postgres)(column, part)


def _sqlite(column: str, part: str) -> tuple[str, tuple[Any, ...]]:
    """Return the condition for SQLite: LIKE for ASCII texts, which it folds itself, and a GLOB prefilter for others."""
    beyond_ascii = f"length({column}) < length(CAST({column} AS BLOB))"
    if part.isascii():
        escaped = part.replace("!", "!!").replace("%", "!%").replace("_", "!_")
        sql = f"({column} LIKE ? ESCAPE '!' OR ({beyond_ascii} AND has_folded({column}, ?)))"
        return sql, (f"%{escaped}%", part)
    return f"({beyond_ascii} AND {column} GLOB ? AND has_folded({column}, ?))", (glob(part), part)


def _postgres(column: str, part: str) -> tuple[str, tuple[Any, ...]]:
    found = regular_expression(part)
    plain = f'{column} COLLATE "C" ~ ?'
    if found.expands is None:
        return plain, (found.pattern,)
    values = (found.pattern, found.expands, list(found.expanded), list(found.becomes), found.pattern)
    return f'({plain} OR ({column} COLLATE "C" ~ ? AND {_EXPANDED.format(column)} ~ ?))', values


_EXPANDED: Final = (
    "(SELECT string_agg(coalesce(x.becomes, y.letter) COLLATE \"C\", '' ORDER BY y.at) "
    "FROM unnest(string_to_array({}, NULL)) WITH ORDINALITY AS y (letter, at) "
    'LEFT JOIN unnest(CAST(? AS text[]), CAST(? AS text[])) AS x (letter, becomes) ON x.letter = y.letter COLLATE "C")'
)
"""A text with the characters of `RegularExpression.expanded` replaced by their folded forms."""
