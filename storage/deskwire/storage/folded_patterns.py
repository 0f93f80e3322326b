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
"""Characters of a class, and classes of a GLOB pattern: SQLite compares every character of a text with a whole class."""


class Inverse(Struct, frozen=True):
    """The characters that are folded to each character.

    Attributes:
        dropped: the characters that are folded to nothing, as ranges of a class of characters.
        same: those that are folded to one other character, by that one.
        expanded: those that are folded to several, with these.
        parts: every character that is in one of these.
    """

    dropped: str
    same: Mapping[str, str]
    expanded: Mapping[str, str]
    parts: frozenset[str]


@cache
def inverse() -> Inverse:
    """Return what each character stands for; made when it is first asked for, in a tenth of a second."""
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
    """The regular expression by which PostgreSQL finds a folded part of a text.

    Attributes:
        pattern: matches a text that has the part, but for a text with one of `expanded`.
        expands: matches a text with one of them; None if there are none.
        expanded: characters that stand for several, of which the part may have some.
        becomes: what each of them stands for.
    """

    pattern: str
    expands: str | None
    expanded: tuple[str, ...]
    becomes: tuple[str, ...]


@lru_cache(maxsize=256)
def regular_expression(part: str) -> RegularExpression:
    """Return what finds a folded part, which is not empty, as an advanced regular expression of PostgreSQL."""
    table = inverse()
    pieces = list(_pieces(part, table))
    found = {each: folded for each, folded in table.expanded.items() if _overlap(folded, part)}
    expands = f"[{''.join(found)}]" if found else None
    return RegularExpression(f"[{table.dropped}]*".join(pieces), expands, tuple(found), tuple(found.values()))


def _overlap(folded: str, part: str) -> bool:
    """Return whether a character that is folded so can be where the part is found."""
    if folded in part or part in folded:
        return True
    sizes = range(1, min(len(folded), len(part)))
    return any(folded.endswith(part[:size]) or part.endswith(folded[:size]) for size in sizes)


def _pieces(part: str, table: Inverse) -> Iterator[str]:
    """Yield the pattern of each character of the part, and of each syllable of Hangul that it has."""
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
    """Return how many characters from there on can be of one syllable; 1 for what is no Hangul."""
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
    """Return patterns for the written syllables in which these characters are found.

    Args:
        first: whether something of the syllable may stand in front of them: the part begins with them.
        last: whether something of it may follow, as the part ends with them.
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
    """Return a GLOB pattern of SQLite that fits every text with this folded part, and not many others.

    It has some characters of the part in their order, each with those that are folded to it.
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
    """Return a text folded; SQLite's function `fold_text`."""
    return None if text is None else fold(text)


def has_folded(text: str | None, part: str) -> bool:
    """Return whether a text has a folded part; SQLite's function of this name."""
    return text is not None and _rarest(part).search(text) is not None and part in fold(text)


_RARITY: Final = "qxzjkwvybpgfmcuhdlrsnioate"
"""Letters in the order in which texts of many languages have them, the rarest first."""


@lru_cache(maxsize=256)
def _rarest(part: str) -> re.Pattern[str]:
    """Return what finds the rarest character of a folded part in a text, in all forms: it is quicker than to fold the text."""
    rarest = min(part, key=lambda each: _RARITY.find(each) if each.isalnum() else len(_RARITY))
    table = inverse()
    several = "".join(each for each, folded in table.expanded.items() if rarest in folded)
    if _is_jamo(rarest, _LEADING, 256):
        return re.compile("")
    return re.compile(f"[{re.escape(rarest + table.same.get(rarest, '') + several)}]")


def contains(dialect: Dialect, column: str, text: str) -> tuple[str, tuple[Any, ...]]:
    """Return the condition that a column has a part of a text as folding compares it, with its values.

    A text that is folded to nothing, such as a lone joiner, is in no text.
    """
    part = fold(text)
    if not part:
        return "1 = 0", ()
    return (_sqlite if dialect is SQLITE else _postgres)(column, part)


def _sqlite(column: str, part: str) -> tuple[str, tuple[Any, ...]]:
    """Return the condition of SQLite: of texts in ASCII its own LIKE decides, which folds these, and of most others GLOB."""
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
"""A text with the characters of `RegularExpression.expanded` as what they stand for."""
