"""Cursors: positions in lists as opaque texts (decisions 1)."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.errors import BadRequest
from deskwire.engine.events.log import NO_EVENT_ID
from deskwire.http.api.pagination import decode_cursor, decode_cursor_as_of, encode_cursor

INTEGERS_64 = st.integers(-(2**63) + 1, 2**63 - 1)


@given(st.lists(INTEGERS_64, max_size=4))
def test_a_cursor_gives_back_the_parts_it_was_made_of(parts: list[int]) -> None:
    cursor = encode_cursor(*parts)
    assert decode_cursor(cursor, len(parts)) == parts
    assert cursor.replace("-", "").replace("_", "").isalnum()  # goes into a URL as it is


def text(json: str) -> str:
    """Return a cursor that a hostile caller makes of this JSON."""
    return base64.urlsafe_b64encode(json.encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        pytest.param(encode_cursor(1), id="too few parts"),
        pytest.param(encode_cursor(1, 2, 3), id="too many parts"),
        pytest.param(text("[1,true]"), id="a boolean"),
        pytest.param(text("[1.0,2]"), id="a fraction"),
        pytest.param(text('[1,"2"]'), id="a text"),
        pytest.param(text(f"[1,{2**63}]"), id="a number beyond 64 bits"),
        pytest.param(text(f"[{-(2**63)},1]"), id="a number beyond 64 bits below"),
        pytest.param(text('{"a":1,"b":2}'), id="an object with as many members"),
        pytest.param(text("[1,2"), id="half a list"),
        pytest.param("", id="nothing"),
        pytest.param("A", id="not base 64"),
        pytest.param("ÄÖ", id="not ASCII"),
    ],
)
def test_text_that_no_list_issued_is_refused_as_cursor(cursor: str) -> None:
    with pytest.raises(BadRequest) as refused:
        decode_cursor(cursor, 2)
    assert [(problem.pointer, problem.code) for problem in refused.value.problems] == [
        ("?cursor", "bad_cursor")
    ]


@given(st.lists(INTEGERS_64, max_size=4))
def test_cursor_with_as_of_returns_its_parts(parts: list[int]) -> None:
    cursor = encode_cursor(*parts, as_of=NO_EVENT_ID)
    assert decode_cursor_as_of(cursor, len(parts)) == (parts, NO_EVENT_ID)


@pytest.mark.parametrize(
    "cursor",
    [
        pytest.param(encode_cursor(1, 2), id="no event"),
        pytest.param(encode_cursor(1, as_of=NO_EVENT_ID), id="too few numbers"),
        pytest.param(text('[1,2,"msg_00000000000000000000000000"]'), id="another kind of id"),
        pytest.param(text("[]"), id="an empty list"),
        pytest.param(text('"x"'), id="a text"),
    ],
)
def test_text_that_no_list_issued_is_refused_as_cursor_with_as_of(cursor: str) -> None:
    with pytest.raises(BadRequest, match="cursor"):
        decode_cursor_as_of(cursor, 2)
