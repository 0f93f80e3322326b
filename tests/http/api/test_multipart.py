"""The file of a multipart form, with any content in any chunks."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.errors import BadRequest, Invalid
from deskwire.http.api.input.multipart import read_file

BOUNDARY = b"boundary"
HEAD = b'--boundary\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
LIMIT = 10_000_000


async def pieces_of(form: bytes, cuts: list[int]) -> AsyncGenerator[bytes, None]:
    places = [0, *sorted(cut % (len(form) + 1) for cut in cuts), len(form)]
    for start, end in pairwise(places):
        yield form[start:end]


async def received(form: bytes, cuts: list[int]) -> tuple[str, bytes]:
    """The file's name and bytes of a form that comes in pieces."""
    content = bytearray()

    async def write(data: bytes) -> None:
        content.extend(data)

    async with aclosing(pieces_of(form, cuts)) as pieces:
        name = await read_file(pieces, BOUNDARY, LIMIT, write)
    return name, bytes(content)


@given(
    st.binary(max_size=500) | st.text("\r\n-b").map(str.encode), st.lists(st.integers(0, 1000), max_size=6)
)
async def test_the_bytes_come_through_however_they_are_cut(content: bytes, cuts: list[int]) -> None:
    if b"--boundary" not in content:
        form = HEAD + content + b"\r\n--boundary--\r\n"
        assert await received(form, cuts) == ("a.bin", content)


async def test_the_bytes_come_through_cut_at_any_one_place() -> None:
    for content in (b"", b"\r", b"\r\n", b"x\r\n--bound", b"--", b"\n\r\n-"):
        form = HEAD + content + b"\r\n--boundary--\r\n"
        for cut in range(len(form)):
            assert await received(form, [cut, cut + 1]) == ("a.bin", content), (content, cut)


@given(
    st.lists(
        st.sampled_from([HEAD, b"\r\n", b"--boundary", b"--", b"x", b"\0\xff", b"\r\n--boundary--\r\n"]),
        max_size=12,
    )
)
async def test_any_bytes_are_a_file_or_a_refusal(parts: list[bytes]) -> None:
    name = "a.bin"
    with suppress(BadRequest, Invalid):
        name, _ = await received(b"".join(parts), [])
    assert name == "a.bin"


async def test_many_small_parts_are_refused() -> None:
    form = b"".join(
        b'--boundary\r\nContent-Disposition: form-data; name="x"\r\n\r\ny\r\n' for _ in range(1000)
    )
    with pytest.raises(BadRequest, match="too many parts"):
        await received(form + b"--boundary--\r\n", [])
