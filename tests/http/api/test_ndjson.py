"""A body is cut into the same lines however it comes, and no line is held beyond the bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deskwire.http.api.input.ndjson import NdjsonLine, NdjsonReader

LIMIT = 8


def cut(body: bytes, pieces: list[int]) -> list[NdjsonLine]:
    """The lines of a body that comes in pieces of these sizes, and then the rest."""
    lines, found = NdjsonReader(LIMIT), list[NdjsonLine]()
    for size in pieces:
        piece, body = body[:size], body[size:]
        found += lines.feed(piece)
    return [*found, *lines.feed(body), *lines.end()]


def expected(body: bytes) -> list[NdjsonLine]:
    whole = body.split(b"\n")
    whole[0] = whole[0].removeprefix(b"\xef\xbb\xbf")
    return [
        NdjsonLine(number, None if len(content) > LIMIT else content)
        for number, content in enumerate(whole, 1)
        if content.strip()
    ]


PIECES = [b" ", b"a", b"bcd", b"123456789", b"\xef\xbb\xbf"]
FIRST_LINES = st.lists(st.sampled_from(PIECES)).map(lambda parts: b"".join(parts)[:LIMIT])
OTHER_LINES = st.lists(st.sampled_from([b"\n", b"\r\n", *PIECES])).map(b"".join)
BODIES = FIRST_LINES | st.tuples(FIRST_LINES, OTHER_LINES).map(b"\n".join)


@given(BODIES, st.lists(st.integers(0, 12)))
def test_lines_do_not_depend_on_the_chunks(body: bytes, pieces: list[int]) -> None:
    found = [line for line in cut(body, pieces) if line.content is None or line.content.strip()]
    assert [line for line in found if line.content is not None] == [
        line for line in expected(body) if line.content is not None
    ]
    too_long = {line.number for line in expected(body) if line.content is None}
    assert too_long <= {line.number for line in found if line.content is None}


def test_line_above_the_limit_is_skipped_and_the_next_one_read() -> None:
    lines = NdjsonReader(LIMIT)
    assert lines.feed(b"one\n" + b"x" * 100) == [NdjsonLine(1, b"one")]
    for _ in range(1_000):
        assert lines.feed(b"x" * 100) == []
    assert lines.feed(b"x\nthree\n") == [NdjsonLine(2, None), NdjsonLine(3, b"three")]
    assert lines.feed(b"y" * 9) == []
    assert lines.end() == [NdjsonLine(4, None)]
