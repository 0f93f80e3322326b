"""Plain responses: the fast parser returns the same as h11 (ADR 7)."""

from __future__ import annotations

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deskwire.engine.core.http1 import ResponseHead, plain_response
from tests.support.properties import budget

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: a  b\r\n\r\nok"

FIRST = st.sampled_from(
    (
        b"HTTP/1.1 200 OK", b"HTTP/1.1 200", b"HTTP/1.1 200 ", b"HTTP/1.1 204 No Content", b"HTTP/1.1 304 Same",
        b"HTTP/1.1 100 Continue", b"HTTP/1.1 199 x", b"HTTP/1.1 599 x", b"HTTP/1.1 600 x", b"HTTP/1.1 503  Down  ",
        b"HTTP/1.0 200 OK", b"HTTP/1.2 200 OK", b"HTTP/2.0 200 OK", b"http/1.1 200 OK", b"HTTP/1.1  200 OK",
        b"HTTP/1.1 20 OK", b"HTTP/1.1 2000 OK", b"HTTP/1.1 200 \xff", b"HTTP/1.1 200 a\x00b", b"HTTP/1.1 +20 OK", b"",
    )
)  # fmt: skip
LINES = st.sampled_from(
    (
        b"Content-Length: 2", b"content-length:2", b"Content-Length: 2 ", b"Content-Length: 02", b"Content-Length: +2",
        b"Content-Length: 2, 2", b"Content-Length: 0", b"Content-Length: 9999999999999999999999", b"Content-Length: -1",
        b"Content-Length: \xb2", b"Content-Length:", b"Content-Length : 2", b"Content-Length: 0x2", b"Content_Length: 2",
        b"Transfer-Encoding: chunked", b"transfer-encoding:\x0bchunked", b"Transfer-Encoding: identity",
        b"Connection: close", b"Connection: keep-alive", b"Connection: Keep-Alive", b"Connection: keep-alive, close",
        b"connection:upgrade", b"Upgrade: h2c", b"Retry-After: 5", b"X: a", b"X:", b"X:  a  b", b"X:\ta", b"X: \xff",
        b"X: a\rb", b"X: a\nContent-Length: 3", b" folded", b"", b":", b"no colon", b"X y: z", b"X-\xc3\xa4: b",
    )
)  # fmt: skip
ENDS = st.sampled_from((b"\r\n", b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b"\r\r\n", b" \r\n"))


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    """Responses of all kinds, most of them with an error."""
    lines = [draw(FIRST), *draw(st.lists(LINES, max_size=4))]
    if draw(st.booleans()):
        lines.append(b"Content-Length: 2")
    head = b"".join(line + draw(ENDS) for line in lines) + b"\r\n"
    return head + draw(st.sampled_from((b"ok", b"", b"o", b"ok!", b"okHTTP/1.1 200 OK\r\n\r\n")))


def read_by_h11(data: bytes) -> tuple[int, list[tuple[bytes, bytes]], bytes, bool] | None:
    """Return h11's status, headers, body and reusability of the connection, or None."""
    client = h11.Connection(h11.CLIENT)
    client.send(
        h11.Request(method=b"POST", target=b"/", headers=[(b"Host", b"x"), (b"Content-Length", b"0")])
    )
    client.send(h11.EndOfMessage())
    client.receive_data(data)
    head, body = None, b""
    try:
        while (event := client.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            if isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            else:
                break
    except h11.RemoteProtocolError:
        return None
    if head is None:
        return None
    whole = isinstance(event, h11.EndOfMessage)
    goes_on = whole and client.their_state is h11.DONE and client.our_state is h11.DONE
    return head.status_code, list(head.headers), body, goes_on and not any(client.trailing_data)


@pytest.mark.thorough
@budget(1_500)
@given(answers())
@example(PLAIN)
def test_a_plain_response_is_the_same_to_a_strict_reader(data: bytes) -> None:
    plain = plain_response(data)
    if plain is None:
        return
    (status, headers), body = plain
    assert read_by_h11(data) == (status, list(headers), body, True), data


@pytest.mark.thorough
@budget(500)
@given(st.binary(max_size=200), st.integers(0, len(PLAIN)))
def test_no_bytes_make_the_reading_fail(noise: bytes, at: int) -> None:
    for data in (noise, PLAIN[:at] + noise + PLAIN[at:], PLAIN[:at]):
        assert plain_response(data) is None or read_by_h11(data) is not None


def test_an_ordinary_answer_is_plain() -> None:
    assert plain_response(PLAIN) == (ResponseHead(200, [(b"content-length", b"2"), (b"x", b"a  b")]), b"ok")
    assert plain_response(b"HTTP/1.1 204 No Content\r\n\r\n") == (ResponseHead(204, []), b"")


@pytest.mark.parametrize(
    "data",
    [
        PLAIN[:-1],
        PLAIN + b"!",
        PLAIN.replace(b"Content-Length: 2", b"Content-Length: 2\r\nContent-Length: 2"),
        PLAIN.replace(b"X: a  b", b"Connection: close"),
        PLAIN.replace(b"X: a  b", b"Transfer-Encoding: chunked"),
        PLAIN.replace(b"200 OK", b"100 Continue"),
        PLAIN.replace(b"200 OK", b"204 No Content"),
        PLAIN.replace(b"1.1", b"1.0"),
        b"HTTP/1.1 200 OK\r\n\r\n",
    ],
)
def test_an_unusual_response_is_parsed_by_h11(data: bytes) -> None:
    assert plain_response(data) is None
