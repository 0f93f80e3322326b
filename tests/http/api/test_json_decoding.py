"""JSON is read with no number lost unseen, and what is not read is refused in clear words (ADR 5)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.http.api.input.validation import DEPTH_MAX, MalformedJson, decode_json, large_integers
from deskwire.http.api.input.validation_messages import pointer_token

LEAST, MOST = -(2**63), 2**64 - 1
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.sampled_from([LEAST, LEAST - 1, MOST, MOST + 1, 10**300]),
    st.floats(allow_nan=False, allow_infinity=False),
)
TEXTS = st.text(max_size=6) | st.sampled_from(['"', "\\", '\\"', "9" * 30, "/~", "{[,:]}", "ü"])
VALUES = st.recursive(
    NUMBERS | TEXTS | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def large(value: Any, pointer: str = "") -> list[str]:
    """Where the integers are that orjson would make doubles of."""
    if isinstance(value, dict):
        return [at for name, each in value.items() for at in large(each, f"{pointer}/{pointer_token(name)}")]
    if isinstance(value, list):
        return [at for index, each in enumerate(value) for at in large(each, f"{pointer}/{index}")]
    beyond = isinstance(value, int) and not LEAST <= value <= MOST
    return [pointer] if beyond else []


@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_every_integer_that_is_lost_is_named_and_nothing_else(
    value: Any, indent: int | None, ascii_only: bool
) -> None:
    try:
        raw = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    except UnicodeEncodeError:
        return  # half a character: no JSON
    try:
        read = decode_json(raw)
    except MalformedJson:
        assert "\\ud" in raw.decode().lower()
        return
    assert large_integers(raw, read) == (large(value), 0)
    if not large(value):
        assert read == value


@pytest.mark.parametrize(
    "text", ["1e20", "1E308", "-1e19", "1.8446744073709552e19", "[1.5, 1e300]", "0.1e21"]
)
def test_a_double_is_no_integer_however_large(text: str) -> None:
    assert large_integers(text.encode(), decode_json(text.encode())).pointers == []


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "it is empty"),
        (b" \r\n\t", "it is empty"),
        (b'{"a": NaN}', "NaN and Infinity are no numbers in JSON (line 1, column 7)"),
        (b"NaN", "NaN and Infinity are no numbers in JSON"),
        (b"[\n-Infinity]", "NaN and Infinity are no numbers in JSON (line 2"),
        ('{"ü": Infinity}'.encode(), "NaN and Infinity are no numbers in JSON"),
        (b'{"a": 1e309}', "a number in it is too large; the largest is about 1.8e308"),
        (b"-1e309", "a number in it is too large"),
        (b"9" * 400, "a number in it is too large"),
        (b"[" * 1_025 + b"]" * 1_025, "it is nested more than 1,024 levels deep"),
        (b'{"a":' * 5_000, "it is nested more than 1,024 levels deep"),
        (b"\xef\xbb\xbf{}", "it begins with a byte order mark"),
        ("{}".encode("utf-16"), "it is not in UTF-8"),
        (b'"\xff"', "it is not in UTF-8"),
        (b'"\xed\xa0\x80"', "it is not in UTF-8"),
        (rb'"\ud800"', "half a character"),
        (rb'"\udc00"', "half a character"),
        (b'{"a": 1,}', "trailing comma"),
        (b'{"a": 1} {}', "unexpected content after document (line 1, column 10)"),
    ],
)
def test_malformed_json_is_explained(raw: bytes, words: str) -> None:
    with pytest.raises(MalformedJson) as told:
        decode_json(raw)
    assert words in str(told.value)


def test_deepest_allowed_nesting_is_read() -> None:
    raw = b"[" * DEPTH_MAX + b"18446744073709551616" + b"]" * DEPTH_MAX
    assert large_integers(raw, decode_json(raw)) == (["/0" * DEPTH_MAX], 0)


@given(st.binary(max_size=40))
def test_no_bytes_cause_another_error(raw: bytes) -> None:
    try:
        value = decode_json(raw)
    except MalformedJson:
        return
    assert all(pointer == "" or pointer[0] == "/" for pointer in large_integers(raw, value).pointers)
