"""Statements and values in PostgreSQL's form, and rows in Python's.

Values are sent without a type: PostgreSQL infers it from the statement. Results are binary, which is faster
to decode.

PostgreSQL refuses U+0000 in a text. It is stored as U+E000 followed by a `0`, and U+E000 itself as two of
them.

Merged statements take a column of values as a binary array, which takes a third of the time of psycopg's own
lists.

The shared statements have placeholders of the forms `?`, `?1` and `:name`, and PostgreSQL's have `$1`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from struct import Struct, pack
from typing import Any, Final

from psycopg import InterfaceError, pq
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Loader, Transformer
from psycopg.types.numeric import (
    Float4BinaryLoader,
    Float8BinaryLoader,
    Int2BinaryLoader,
    Int4BinaryLoader,
    Int8BinaryLoader,
    OidBinaryLoader,
)
from psycopg.types.string import ByteaBinaryLoader, TextBinaryLoader

from deskwire.storage.postgres.driver.errors import SESSION_OVER, ConnectionLost, DatabaseError

_BINARY: Final = pq.Format.BINARY
_TEXT: Final = pq.Format.TEXT
_MARK: Final = "\ue000"
_MARKED: Final = re.compile(f"{_MARK}(.)", re.DOTALL)
_TEXTS: Final = frozenset({18, 19, 25, 705, 1042, 1043})  # Type OIDs of texts
_NUMERIC: Final = Struct(">HhHH")
_NEGATIVE: Final = 0x4000


def encode_text(text: str) -> bytes:
    """Return a text in its stored form."""
    if "\0" in text or _MARK in text:
        text = text.replace(_MARK, _MARK * 2).replace("\0", f"{_MARK}0")
    return text.encode()


def decode_text(stored: str) -> str:
    """Return the text of a stored form."""
    if _MARK in stored:
        return _MARKED.sub(lambda found: "\0" if found[1] == "0" else _MARK, stored)
    return stored


def encode_value(value: Any) -> bytes | None:
    """Return a value as it is sent: bytes for a `bytea` unchanged, all others as text."""
    kind = type(value)
    if kind is str:
        return encode_text(value)
    if value is None:
        return None
    if kind is int:
        return b"%d" % value
    if kind is bytes:
        return value  # type: ignore[no-any-return]  # mypy does not narrow by `kind`
    if isinstance(value, int):  # bool as well: columns of yes and no are small integers
        return b"%d" % value
    if isinstance(value, str):
        return encode_text(value)
    if isinstance(value, float):
        return repr(value).encode()
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, list | tuple):
        return b"{%b}" % b",".join([_member(each) for each in value])
    raise TypeError(f"{kind.__name__} is not stored")


def _member(value: int | str) -> bytes:
    """Return a value as a member of an array in text form."""
    raw = encode_value(value)
    assert raw is not None
    return raw if isinstance(value, int) else b'"%b"' % _QUOTED.sub(rb"\\\g<0>", raw)


_QUOTED: Final = re.compile(rb'[\\"]')


def formats(values: Sequence[Any]) -> list[pq.Format]:
    """Return the format that `encode_value` uses for each value."""
    return [_BINARY if isinstance(value, _BYTES) else _TEXT for value in values]


_BYTES: Final = (bytes, bytearray, memoryview)


class _Bool(Loader):
    """A bool as an integer, as in SQLite."""

    format = _BINARY

    def load(self, data: Buffer) -> int:
        return bytes(data)[0]


class _Numeric(Loader):
    """A numeric, which is the type of averages and of sums of large integers."""

    format = _BINARY

    def load(self, data: Buffer) -> int | float:
        raw = bytes(data)
        count, weight, sign, scale = _NUMERIC.unpack_from(raw)
        digits = [int.from_bytes(raw[at : at + 2]) for at in range(8, 8 + 2 * count, 2)]
        whole = 0
        for place in range(weight + 1):
            whole = whole * 10_000 + (digits[place] if place < count else 0)
        number: int | float = whole
        if scale:
            number = whole + sum(
                digit * 10_000.0 ** (weight - place) for place, digit in enumerate(digits) if place > weight
            )
        return -number if sign == _NEGATIVE else number


class _Json(Loader):
    """A JSON value as its text."""

    format = _BINARY

    def load(self, data: Buffer) -> str:
        return bytes(data).decode()


class _Jsonb(Loader):
    """A JSON value as its text, after the version of the binary form."""

    format = _BINARY

    def load(self, data: Buffer) -> str:
        return bytes(data)[1:].decode()


class _Void(Loader):
    """The result of a function without one."""

    format = _BINARY

    def load(self, data: Buffer) -> None:
        return None


# By type OID. A query casts values of other types. psycopg decodes the common ones in C, in a tenth of the time.
_LOADERS: Final[Mapping[int, type[Loader]]] = {
    16: _Bool,
    17: ByteaBinaryLoader,
    **dict.fromkeys(_TEXTS, TextBinaryLoader),
    20: Int8BinaryLoader,
    21: Int2BinaryLoader,
    23: Int4BinaryLoader,
    26: OidBinaryLoader,
    28: OidBinaryLoader,
    114: _Json,
    700: Float4BinaryLoader,
    701: Float8BinaryLoader,
    1700: _Numeric,
    2278: _Void,
    3802: _Jsonb,
}


def _adapters() -> AdaptersMap:
    adapters = AdaptersMap()
    for oid, loader in _LOADERS.items():
        adapters.register_loader(oid, loader)
    return adapters


_ADAPTERS: Final = _adapters()


def rows_of(result: pq.abc.PGresult) -> list[tuple[Any, ...]]:
    """Return the rows of a result. Raises TypeError for a column of a type that is not read."""
    count = result.ntuples
    if not count:
        return []
    types = [result.ftype(column) for column in range(result.nfields)]
    transformer = Transformer(_ADAPTERS)
    try:
        transformer.set_pgresult(result, format=_BINARY)
    except InterfaceError:
        unknown = min(set(types) - _LOADERS.keys())
        raise TypeError(f"a result of type {unknown} is not read: cast it") from None
    rows = transformer.load_rows(0, count, tuple)
    texts = [column for column, kind in enumerate(types) if kind in _TEXTS]
    return [_decoded(row, texts) for row in rows] if _has_mark(rows, texts) else rows


def _has_mark(rows: Sequence[tuple[Any, ...]], texts: Collection[int]) -> bool:
    for row in rows:
        for column in texts:
            text = row[column]
            if text is not None and not text.isascii() and _MARK in text:
                return True
    return False


def _decoded(row: tuple[Any, ...], texts: Collection[int]) -> tuple[Any, ...]:
    return tuple(
        decode_text(value) if column in texts and value is not None else value
        for column, value in enumerate(row)
    )


class QueryResult:
    """The rows of a statement, and the number of rows that it changed; `connection.Rows`."""

    __slots__ = ("_next", "_rows", "rowcount")

    def __init__(self, rows: list[tuple[Any, ...]], rowcount: int) -> None:
        self._rows = rows
        self._next = 0
        self.rowcount = rowcount

    def fetchone(self) -> Any:
        """See `Rows.fetchone`."""
        if self._next >= len(self._rows):
            return None
        self._next += 1
        return self._rows[self._next - 1]

    def fetchall(self) -> list[Any]:
        """See `Rows.fetchall`."""
        rest, self._next = self._rows[self._next :], len(self._rows)
        return rest

    def __iter__(self) -> Iterator[Any]:
        """Yield the remaining rows."""
        return iter(self.fetchall())


def result_of(answer: pq.abc.PGresult) -> QueryResult:
    """Return the result of a successful statement."""
    return QueryResult(rows_of(answer), answer.command_tuples or 0)


_HEAD: Final = Struct(">iiIii")
_LENGTH: Final = Struct(">i").pack
_NULL: Final = _LENGTH(-1)

BOOL, BYTEA, INT8, INT2, INT4, TEXT, FLOAT8 = 16, 17, 20, 21, 23, 25, 701  # Type OIDs of the columns

# Type OIDs of arrays, by the type of their members
ARRAY_OF: Final = {BOOL: 1000, BYTEA: 1001, INT8: 1016, INT2: 1005, INT4: 1007, TEXT: 1009, FLOAT8: 1022}

_WIDTHS: Final = {INT8: (8, "q"), INT2: (2, "h"), INT4: (4, "i"), FLOAT8: (8, "d"), BOOL: (1, "?")}


def array_of(kind: int, values: Sequence[Any]) -> bytes:
    """Return the values of one column as an array of a type.

    Raises KeyError for an unknown type.
    """
    head = _HEAD.pack(1, 1, kind, len(values), 1)
    width = _WIDTHS.get(kind)
    if width is None:
        return head + b"".join(_WITHOUT_WIDTH[kind](values))
    size, code = width
    if None in values:
        one = Struct(f">i{code}").pack
        return head + b"".join([_NULL if each is None else one(size, each) for each in values])
    pairs: list[Any] = [size] * (2 * len(values))
    pairs[1::2] = values
    return head + pack(">" + f"i{code}" * len(values), *pairs)


def _texts(values: Sequence[str | None]) -> list[bytes]:
    parts: list[bytes] = []
    for each in values:
        raw = encode_value(each)
        if raw is None:
            parts.append(_NULL)
        else:
            parts += (_LENGTH(len(raw)), raw)
    return parts


def _bytes(values: Sequence[bytes | None]) -> list[bytes]:
    parts: list[bytes] = []
    for each in values:
        if each is None:
            parts.append(_NULL)
        else:
            parts += (_LENGTH(len(each)), each)
    return parts


_WITHOUT_WIDTH: Final[dict[int, Callable[[Sequence[Any]], list[bytes]]]] = {TEXT: _texts, BYTEA: _bytes}

_PLACEHOLDER: Final = re.compile(
    r"""'(?:[^']|'')*'      # a text
    | "(?:[^"]|"")*"        # a name
    | ::                    # a cast
    | \?(?P<number>\d+)? | :(?P<name>[a-z_]\w*)""",
    re.VERBOSE | re.IGNORECASE,
)


@lru_cache(maxsize=2_048)
def translate_placeholders(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return the statement with `$1` for its values, and the names of the values in order."""
    names: dict[str, int] = {}
    count = 0

    def numbered(found: re.Match[str]) -> str:
        nonlocal count
        if found["name"] is not None:
            return f"${names.setdefault(found['name'], len(names) + 1)}"
        if found[0][0] != "?":
            return found[0]
        if found["number"] is not None:
            return f"${found['number']}"
        count += 1
        return f"${count}"

    text = _PLACEHOLDER.sub(numbered, sql)
    return text, tuple(names)


def ordered_values(names: tuple[str, ...], values: Sequence[Any] | Mapping[str, Any]) -> Sequence[Any]:
    """Return the values in the order of their placeholders."""
    if isinstance(values, Mapping):
        return [values[name] for name in names]
    return values


def error_of(result: pq.abc.PGresult) -> DatabaseError:
    """Return the exception for a failed statement."""
    state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    text = (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message).decode(
        errors="replace"
    )
    text = text.strip()
    if not state or state in SESSION_OVER or state.startswith("08"):
        return ConnectionLost(text or "the connection was lost")
    return DatabaseError(state, text)
