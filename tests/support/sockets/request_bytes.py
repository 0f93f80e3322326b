"""Requests as bytes, from well-formed ones to attacks (RFC 9112, section 11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from hypothesis import strategies as st

KEY: Final = b"$KEY"
"""Stands for the server key, so that an example does not depend on it."""


@dataclass(frozen=True)
class Draft:
    """A request before it is serialized.

    Args:
        lead: bytes before the request line.
        framing: the header lines that give the length of the body.
        end: the end of each line of the head.
        body: the body's bytes on the wire.
    """

    line: bytes
    headers: tuple[bytes, ...]
    framing: tuple[bytes, ...]
    body: bytes = b""
    lead: bytes = b""
    end: bytes = b"\r\n"

    def __bytes__(self) -> bytes:
        return self.lead + self.end.join((self.line, *self.headers, *self.framing, b"", b"")) + self.body


def started(user: str, *framing: bytes, body: bytes | None = None) -> Draft:
    """Return a request that starts a conversation."""
    content = b'{"contact":{"userId":"' + user.encode() + b'"}}' if body is None else body
    return Draft(
        b"POST /v3/s2s/conversations HTTP/1.1",
        (b"Host: x", b"Authorization: Bearer " + KEY, b"Content-Type: application/json"),
        framing or (b"Content-Length: %d" % len(content),),
        content,
    )


def fetched(path: bytes = b"/healthz") -> Draft:
    """Return a request without a body."""
    return Draft(b"GET " + path + b" HTTP/1.1", (b"Host: x", b"Authorization: Bearer " + KEY), ())


LAST: Final = replace(fetched(), headers=(b"Host: x", b"Connection: close"))
"""Ends a connection in an orderly way; its answer shows that everything before it was parsed as intended."""

CHUNKED: Final = b"Transfer-Encoding: chunked"


def chunked(content: bytes, sizes: Sequence[int], extension: bytes = b"", trailer: bytes = b"") -> bytes:
    """Return the content in chunks of these sizes, and the rest in one."""
    parts, at = [], 0
    for size in (*sizes, len(content)):
        if part := content[at : at + size]:
            parts.append(b"%x%s\r\n%s\r\n" % (len(part), extension, part))
        at += size
    return b"".join(parts) + b"0\r\n" + trailer + b"\r\n"


_SIZES: Final = st.lists(st.integers(1, 20), max_size=4)


@st.composite
def good(draw: st.DrawFn, user: str) -> Draft:
    """Draw a well-formed request, in any valid notation."""
    if draw(st.booleans()):
        path = draw(
            st.sampled_from([b"/healthz", b"/v3/s2s/project", b"/v3/s2s/events?limit=1", b"/%68ealthz"])
        )
        made = fetched(path)
    else:
        made = started(user)
        if draw(st.booleans()):
            extension = draw(st.sampled_from([b"", b";a", b";a=b", b';a="b c"']))
            trailer = draw(st.sampled_from([b"", b"X-Sum: 1\r\n"]))
            made = replace(
                made, framing=(CHUNKED,), body=chunked(made.body, draw(_SIZES), extension, trailer)
            )
    extra = draw(st.lists(st.sampled_from(_HARMLESS), max_size=3))
    headers = tuple(draw(st.permutations([*made.headers, *extra])))
    return replace(made, headers=headers)


_HARMLESS: Final = (
    b"X-Empty:",
    b"X-Spaces:  a b \t",
    b"x-lower: 1",
    b"X-Latin: \xe9\xff",
    b"Accept: */*",
    b"Cookie: a=b; c=d",
    b"X-Long: " + b"a" * 3_000,
    b"Connection: keep-alive",
    b"User-Agent: GET / HTTP/1.1",
)
_LINES: Final = (
    b"POST  /v3/s2s/conversations HTTP/1.1",
    b"POST\t/v3/s2s/conversations\tHTTP/1.1",
    b"POST /v3/s2s/conversations  HTTP/1.1",
    b"POST /v3/s2s/conversations HTTP/1.1 ",
    b" POST /v3/s2s/conversations HTTP/1.1",
    b"post /v3/s2s/conversations HTTP/1.1",
    b"POST /v3/s2s/conversations http/1.1",
    b"POST /v3/s2s/conversations HTTP/1.0",
    b"POST /v3/s2s/conversations HTTP/1.10",
    b"POST /v3/s2s/conversations HTTP/01.1",
    b"POST /v3/s2s/conversations HTTP/2.0",
    b"POST /v3/s2s/conversations HTTP/0.9",
    b"POST /v3/s2s/conversations",
    b"POST http://x/v3/s2s/conversations HTTP/1.1",
    b"POST //x/v3/s2s/conversations HTTP/1.1",
    b"POST /v3/s2s/conversations#a HTTP/1.1",
    b"POST /v3/s2s/conversations?\xff HTTP/1.1",
    b"POST /v3/s2s/conversations\x00 HTTP/1.1",
    b"POST /v3/s2s/conversations%00 HTTP/1.1",
    b"POST /v3/s2s%2fconversations HTTP/1.1",
    b"POST /v3/x/../s2s/conversations HTTP/1.1",
    b"POST v3/s2s/conversations HTTP/1.1",
    b"POST /v3/s2s/conversations?a=" + b"b" * 9_000 + b" HTTP/1.1",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1",
    b"GET http:///healthz HTTP/1.1",
    b"GET /%ZZ HTTP/1.1",
    b"GET /%c3%28/%ED%A0%80 HTTP/1.1",
    b"GET /healthz?%ff=%00&&&=;%F0 HTTP/1.1",
    b"CONNECT x:443 HTTP/1.1",
    b"OPTIONS * HTTP/1.1",
    b"TRACE / HTTP/1.1",
    b"HEAD /healthz HTTP/1.1",
    b"G(T /healthz HTTP/1.1",
    b"G\xc3\x89T /healthz HTTP/1.1",
    b"A" * 300 + b" /healthz HTTP/1.1",
    b"\x16\x03\x01\x02\x00\x01",
    b"GET",
    b"HTTP/1.1 200 OK",
)
_HEADERS: Final = (
    b"Host: y",
    b"Host: a@b:c/d",
    b"Host:",
    b"host: x",
    b"X : a",
    b"X\t: a",
    b"X y: a",
    b": a",
    b"nocolon",
    b"X: a\r\n folded",
    b"X: a\x00b",
    b"X: a\rb",
    b"X: a\nContent-Length: 0",
    b"X: a\x0bb\x7f",
    b"X\xe9: a",
    b"X(y): a",
    b"X: " + b"a" * 70_000,
    b"\r\n".join(b"X-%d: a" % number for number in range(2_000)),
    b"\r\n".join(b"Content-Type: application/json" for _ in range(50)),
    b"Connection: close",
    b"Connection: close, keep-alive",
    b"Connection: Content-Length, Transfer-Encoding",
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: a",
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk",
    b"Expect: 100-continue",
    b"Expect: 200-ok",
    b"TE: trailers",
    b"Keep-Alive: timeout=-1",
    b"X-HTTP-Method-Override: DELETE",
    b"Content-Encoding: gzip",
)
_FRAMINGS: Final = (
    b"Content-Length: +%d",
    b"Content-Length: -%d",
    b"Content-Length: 0%d",
    b"Content-Length: %d, %d",
    b"Content-Length: %d,1",
    b"Content-Length: %d\r\nContent-Length: %d",
    b"Content-Length: %d\r\nContent-Length: 1",
    b"Content-Length: %d\r\nContent-Length: 0",
    b"Content-Length: 0\r\nContent-Length: %d",
    b"Content-Length : %d",
    b"Content-Length:\r\n %d",
    b"Content-Length: %d\x00",
    b"Content-Length: %d ",
    b"Content-Length:\t%d\t",
    b"Content-Length: \x0b%d",
    b"Content-Length: 0x%d",
    b"Content-Length: %d.0",
    b"Content-Length: %d_0",
    b"Content-Length: %d 1",
    b"Content-Length: \xb2",
    b"Content-Length: 99999999999999999999999999",
    b"Content-Length: 18446744073709551617",
    b"Content-Length:",
    b"Content_Length: %d",
    b"Content-Length: %d\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nContent-Length: %d",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    b"Transfer-Encoding: identity\r\nContent-Length: %d",
    b"Transfer-Encoding: chunked, chunked",
    b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: chunked, gzip",
    b"Transfer-Encoding: CHUNKED",
    b"Transfer-Encoding: xchunked",
    b"Transfer-Encoding: chunked;a=b",
    b"Transfer-Encoding: \x0bchunked",
    b"Transfer-Encoding: chunked\x00",
    b"Transfer-Encoding:\tchunked\t",
    b"Transfer-Encoding:\r\n chunked",
    b"Transfer-Encoding : chunked",
    b"Transfer-Encoding: 'chunked'",
    b"Transfer_Encoding: chunked\r\nContent-Length: %d",
    b"Transfer-Encoding:\r\nContent-Length: %d",
    b"Transfer-Encoding: chunked",
    b"X: y",
)
_CHUNKS: Final[tuple[Callable[[bytes], bytes], ...]] = (
    lambda body: b"%X\r\n%s\r\n0\r\n\r\n" % (len(body), body),
    lambda body: b"0000%x\r\n%s\r\n0\r\n\r\n" % (len(body), body),
    lambda body: b"0x%x\r\n%s\r\n0\r\n\r\n" % (len(body), body),
    lambda body: b"+%x\r\n%s\r\n0\r\n\r\n" % (len(body), body),
    lambda body: b" %x\r\n%s\r\n0\r\n\r\n" % (len(body), body),
    lambda body: b"%x \t\r\n%s\r\n0\r\n\r\n" % (len(body), body),
    lambda body: b"%x\n%s\n0\n\n" % (len(body), body),
    lambda body: b"%x\r%s\r\n0\r\n\r\n" % (len(body), body),
    lambda body: b"%x;a=b\nX\r\n%s\r\n0\r\n\r\n" % (len(body), body),
    lambda body: b"%x;%s\r\n%s\r\n0\r\n\r\n" % (len(body), b"a" * 20_000, body),
    lambda body: b"%x\r\n%s0\r\n\r\n" % (len(body), body),
    lambda body: b"%x\r\n%sXX0\r\n\r\n" % (len(body), body),
    lambda body: b"%x\r\n%s\r\n0\r\n" % (len(body), body),
    lambda body: b"%x\r\n%s\r\n" % (len(body), body),
    lambda body: b"%x\r\n%s\r\n00000\r\n\r\n" % (len(body), body),
    lambda body: b"%x\r\n%s\r\n-0\r\n\r\n" % (len(body), body),
    lambda body: b"ffffffffffffffff%x\r\n%s\r\n0\r\n\r\n" % (len(body), body),
    lambda body: b"10000000000000000\r\n%s\r\n0\r\n\r\n" % body,
    lambda body: b"\r\n%s\r\n0\r\n\r\n" % body,
    lambda body: b"g\r\n%s\r\n0\r\n\r\n" % body,
    lambda body: b"%x\r\n%s\r\n0\r\nContent-Length: 5\r\n\r\n" % (len(body), body),
    lambda body: b"%x\r\n%s\r\n0\r\nX y\r\n\r\n" % (len(body), body),
    lambda body: b"%x\r\n%s\r\n0\r\nX: %s\r\n\r\n" % (len(body), body, b"a" * 70_000),
)


def _framed(made: Draft, framing: bytes) -> Draft:
    return replace(made, framing=(framing.replace(b"%d", b"%d" % len(made.body)),))


def _chunks(made: Draft, how: Callable[[bytes], bytes]) -> Draft:
    return replace(made, framing=(CHUNKED,), body=how(made.body))


def _inside(made: Draft, inner: Draft) -> Draft:
    """Return the draft with another request as its body, or after it."""
    return replace(made, body=made.body + bytes(inner))


Change = Callable[[Draft], Draft]

_CHANGES: Final[st.SearchStrategy[Change]] = st.one_of(
    st.sampled_from(_LINES).map(lambda line: lambda made: replace(made, line=line)),
    st.sampled_from(_HEADERS).map(lambda each: lambda made: replace(made, headers=(*made.headers, each))),
    st.sampled_from(_HEADERS).map(lambda each: lambda made: replace(made, headers=(each, *made.headers))),
    st.sampled_from(_FRAMINGS).map(lambda framing: lambda made: _framed(made, framing)),
    st.sampled_from(_FRAMINGS).map(lambda framing: lambda made: _framed(made, framing)),
    st.sampled_from(_CHUNKS).map(lambda how: lambda made: _chunks(made, how)),
    st.sampled_from(_CHUNKS).map(lambda how: lambda made: _chunks(made, how)),
    st.sampled_from([b"\n", b"\r", b"\r\r\n", b"\n\r", b" \r\n"]).map(
        lambda end: lambda made: replace(made, end=end)
    ),
    st.sampled_from([b"\r\n", b"\n", b"\r\n\r\n", b"\x00", b" ", b"\xef\xbb\xbf"]).map(
        lambda lead: lambda made: replace(made, lead=lead)
    ),
    st.sampled_from([b"\x00", b"0\r\n\r\n", b"\r\n", b"X" * 10]).map(
        lambda more: lambda made: replace(made, body=made.body + more)
    ),
    st.integers(1, 30).map(lambda less: lambda made: replace(made, body=made.body[:-less])),
    st.sampled_from([0, 1]).map(lambda at: lambda made: replace(made, headers=made.headers[at + 1 :])),
)


@st.composite
def bad(draw: st.DrawFn, user: str) -> bytes:
    """Draw a request with up to three errors, perhaps with another request inside."""
    made = draw(good(user)) if draw(st.integers(0, 3)) == 0 else started(user)
    if draw(st.integers(0, 2)) == 0:
        inner = started(f"in-{user}")
        made = replace(_inside(made, inner), framing=made.framing)
        if draw(st.booleans()):
            made = replace(made, framing=(b"Content-Length: %d" % len(made.body),))
    for change in draw(st.lists(_CHANGES, min_size=1, max_size=3)):
        made = change(made)
    return bytes(made)


@st.composite
def garbled(draw: st.DrawFn, user: str) -> bytes:
    """Draw a good request with some bytes replaced."""
    data = bytearray(bytes(draw(good(user))))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 1))] = draw(st.sampled_from(_BYTES))
    return bytes(data)


_BYTES: Final = (b"", *(bytes([each]) for each in b'\x00\t\n\r \x0b"(),/:;<=>?@[]{}0aA\x7f\x80\xff'))


def cut(data: bytes, marks: Sequence[int]) -> list[bytes]:
    """Return the bytes in pieces, cut at these positions in thousandths of the whole."""
    places = sorted({0, len(data), *(len(data) * mark // 1000 for mark in marks)})
    return [data[a:b] for a, b in pairwise(places)]


CUTS: Final = st.lists(st.integers(0, 1000), max_size=5)
