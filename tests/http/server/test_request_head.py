"""A request that the fast path takes as plain is read in the same way by h11, which is strict (ADR 7)."""

from __future__ import annotations

import h11
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deskwire.engine.core.http1 import HEAD_MAX, plain_request

PLAIN = b"POST /v3/s2s/conversations?limit=5 HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\nX: a  b\r\n\r\n"

LINES = st.sampled_from(
    (
        b"Host: x", b"host:y", b"Host : x", b"HOST:\tx", b"Host:", b"Content-Length: 5", b"content-length:5",
        b"Content-Length: +5", b"Content-Length: 5, 5", b"Content-Length: 0x5", b"Content-Length: 05",
        b"Content-Length: 5 ", b"Content-Length: 1_0", b"Content-Length: \xb2", b"Content-Length:",
        b"Content-Length: 99999999999999999999", b"Content-Length: -1", b"Content_Length: 7",
        b"Transfer-Encoding: chunked", b"transfer-encoding:\x0bchunked", b"Transfer-Encoding : chunked",
        b"Transfer-Encoding: identity", b"Connection: close", b"Connection: keep-alive", b"Connection: upgrade",
        b"connection: Close, Content-Length", b"Upgrade: h2c", b"Expect: 100-continue", b"TE: trailers",
        b"X: a", b"X:", b"X:  a  ", b"X: \xff", b"X: a\x00b", b"X: a\rb", b"X: a\nContent-Length: 3", b" folded",
        b"\tfolded", b"", b":", b"no colon", b"X y: z", b"X\x00: z", b"Authorization: Bearer sk_live_x", b"X-\xc3\xa4: b",
    )
)  # fmt: skip
TARGETS = st.sampled_from(
    (
        b"/", b"/v3/x", b"/v3/x?a=b&c", b"/a%2fb", b"//x", b"/a/../b", b"http://x/y", b"*", b"x", b"/a b", b"/\xff",
        b"/a#b", b"/a?b?c", b"/a;b", b"/\x00", b"/a\\b", b"/a?b=%00", b"/" + b"a" * 200,
    )
)  # fmt: skip
METHODS = st.sampled_from((b"GET", b"POST", b"PUT", b"DELETE", b"PATCH", b"HEAD", b"get", b"PRI", b"G\xffT", b"", b"CONNECT"))  # fmt: skip
VERSIONS = st.sampled_from(
    (b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"HTTP/1.2", b"http/1.1", b"HTTP/1.1 ", b"")
)
ENDS = st.sampled_from((b"\r\n", b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b"\r\r\n", b" \r\n"))


@st.composite
def heads(draw: st.DrawFn) -> bytes:
    """Heads of all kinds, most of them with something wrong."""
    first = b" ".join((draw(METHODS), draw(TARGETS), draw(VERSIONS)))
    lines = draw(st.lists(LINES, max_size=6))
    if draw(st.booleans()):
        lines.insert(0, b"Host: x")
    return b"".join(line + draw(ENDS) for line in (first, *lines)) + b"\r\n"


def judged(data: bytes) -> h11.Request | None:
    """The request that h11 reads, None if it reads none."""
    server = h11.Connection(h11.SERVER)
    server.receive_data(data)
    try:
        event = server.next_event()
    except h11.RemoteProtocolError:
        return None
    return event if isinstance(event, h11.Request) else None


@pytest.mark.thorough
@settings(max_examples=1_500)
@given(heads())
@example(PLAIN)
def test_a_plain_head_is_the_same_to_a_strict_reader(data: bytes) -> None:
    head = plain_request(data)
    if head is None:
        return
    request = judged(data)
    assert request is not None, data
    target = head.path + (f"?{head.query}" if head.query or request.target.endswith(b"?") else "")
    assert (head.method.encode(), target.encode()) == (request.method, request.target)
    for name in {name for name, _ in request.headers}:
        theirs = [value.decode() for key, value in request.headers if key == name]
        assert list(head.fields[name.decode().lower()]) == theirs, data
    lengths = [value for name, value in request.headers if name == b"content-length"]
    assert lengths == ([] if head.length is None else [b"%d" % head.length])
    assert b"transfer-encoding" not in {name for name, _ in request.headers}


@settings(max_examples=500)
@given(st.binary(max_size=300), st.integers(0, len(PLAIN)))
def test_no_bytes_make_the_reading_fail(noise: bytes, at: int) -> None:
    for data in (noise, PLAIN[:at] + noise + PLAIN[at:], PLAIN[:at]):
        assert plain_request(data) is None or judged(data) is not None


def test_an_ordinary_request_is_plain() -> None:
    head = plain_request(PLAIN)
    assert head is not None
    assert (head.method, head.path, head.query, head.length, head.last) == (
        "POST",
        "/v3/s2s/conversations",
        "limit=5",
        12,
        False,
    )
    assert dict(head.fields) == {"host": ["x"], "content-length": ["12"], "x": ["a  b"]}


@pytest.mark.parametrize(
    "line",
    [
        b"Transfer-Encoding: chunked",
        b"Expect: 100-continue",
        b"Upgrade: websocket",
        b"Connection: Upgrade",
        b"Content-Length: 12",
        b"Content-Length: 13",
        b"Host: y",
        b"X: \xc3\xa4",
        b"X:\ta",
        b"X: a\r\n b",
        b"X: " + b"a" * HEAD_MAX,
    ],
)
def test_one_unusual_line_makes_a_head_not_plain(line: bytes) -> None:
    assert plain_request(PLAIN.replace(b"X: a  b", line)) is None
