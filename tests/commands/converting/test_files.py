"""Files of any form give their records, and broken ones hold up no other."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.commands.convert import reading
from deskwire.commands.convert.reading import UnfitFileError, Unreadable, records

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(st.text(), VALUES, max_size=4), max_size=6)


def read(content: bytes) -> list[Any]:
    return list(records(io.BytesIO(content)))


@given(objects=OBJECTS, piece=st.integers(1, 40), escaped=st.booleans())
def test_lines_an_array_and_documents_in_a_row_give_the_same_records(
    objects: list[dict[str, Any]], piece: int, escaped: bool
) -> None:
    def dumped(value: object, indent: int | None = None) -> bytes:
        return json.dumps(value, indent=indent, ensure_ascii=escaped).encode("utf-8", "replace")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "PIECE", piece)
        told = [json.loads(dumped(each), parse_int=reading.integer) for each in objects]
        assert read(b"\n".join(dumped(each) for each in objects)) == told
        assert read(dumped(objects, 2)) == told
        assert read(b"\xef\xbb\xbf" + b"".join(dumped(each, 1) for each in objects)) == told


def test_a_broken_line_is_named_and_the_others_are_read() -> None:
    content = b'{"a": 1}\n{"a": 2,}\n{"a": "cut off\n{"a": 4}\nnonsense\n\n{"a": 5}\n{"a": 6'
    found = read(content)
    assert [each for each in found if isinstance(each, dict)] == [{"a": 1}, {"a": 4}, {"a": 5}]
    assert [each.line for each in found if isinstance(each, Unreadable)] == [2, 3, 5, 8]


def test_a_file_in_another_encoding_is_refused_with_the_place() -> None:
    with pytest.raises(UnfitFileError, match="byte 11 is not UTF-8"):
        read('{"name": "Grün"}'.encode("latin-1").replace(b"Gr", b""))


def test_a_record_that_never_ends_is_not_read_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "RECORD_MAX", 1000)
    monkeypatch.setattr(reading, "PIECE", 100)
    found = read(b'{"a": "' + b"x" * 5000 + b'"}\n{"a": 2}')
    assert isinstance(found[0], Unreadable)
    assert found[-1] == {"a": 2}


def test_too_deep_a_record_is_named() -> None:
    found = read(b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b'}\n{"b": 1}')
    assert isinstance(found[0], Unreadable)
    assert found[1:] == [{"b": 1}]
