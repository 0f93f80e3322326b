"""A file is cut into parts that lose nothing, and a line that is too long costs no memory."""

from __future__ import annotations

import io

from hypothesis import given, settings
from hypothesis import strategies as st

from deskwire.commands.import_.run import LINE_BYTES_MAX, PART_BYTES, PART_LINES, parts


@given(
    st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=2 * PART_LINES + 3),
    st.booleans(),
)
@settings(max_examples=20)
def test_parts_together_are_the_file_and_have_their_first_line_number(
    lines: list[bytes], ended: bool
) -> None:
    content = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    found = list(parts(io.BytesIO(content)))
    together = b"".join(part.content for part in found)
    assert together in (content, content + b"\n")
    begun = 1
    for part in found:
        assert part.first == begun
        begun += part.content.count(b"\n")
    assert (found[-1].end if found else 0) == len(content)


def test_a_part_is_bounded_in_lines_and_in_bytes() -> None:
    short = list(parts(io.BytesIO(b"{}\n" * (PART_LINES + 1))))
    assert [part.content.count(b"\n") for part in short] == [PART_LINES, 1]
    long = list(parts(io.BytesIO((b"x" * 100_000 + b"\n") * 20)))
    assert [part.content.count(b"\n") for part in long] == [11, 9]
    assert max(len(part.content) for part in long) <= PART_BYTES + LINE_BYTES_MAX


def test_overlong_line_is_cut_off_and_later_lines_keep_their_numbers() -> None:
    content = b"one\n" + b"x" * (3 * LINE_BYTES_MAX) + b"\nthree"
    (part,) = parts(io.BytesIO(content))
    one, long, three, rest = part.content.split(b"\n")
    assert (one, len(long), three, rest) == (b"one", LINE_BYTES_MAX, b"three", b"")
    assert part.end == len(content)
