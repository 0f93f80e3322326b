"""Requests that every reader of HTTP/1.1 understands in the same way, and nothing else.

What a proxy and a server may read differently is how requests are smuggled (RFC 9112 11.2). Here nothing is decided
in doubt: a head with anything unusual in it is no plain one, and somebody stricter reads it. llhttp takes the head
apart; what it would forgive is sorted out beforehand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from deskwire.http.fields import PlainFields

END: Final = b"\r\n\r\n"
HEAD_MAX: Final = 8 * 1024
"""Bytes of a plain request's line and headers."""

_CONTROLS: Final = bytes((*range(0x0A), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F))

_TARGET: Final = re.compile(rb"(/[A-Za-z0-9._~:@/-]*)(?:\?([A-Za-z0-9._~:@,=&-]*))?")
"""A path and a query in which nothing is encoded and nothing has two readings."""

_LENGTH: Final = re.compile(r"0|[1-9][0-9]{0,11}")
_METHODS: Final = frozenset({b"GET", b"POST", b"PUT", b"PATCH", b"DELETE"})
_ELSEWHERE: Final = (
    "transfer-encoding",
    "upgrade",
    "expect",
    "trailer",
    "te",
    "http2-settings",
    "origin",
)
"""Headers that change how a request is framed or answered: bodies in chunks, upgrades, pages of other origins."""


@dataclass(frozen=True, slots=True)
class Head:
    """A plain request without its body.

    Args:
        length: of the body, in bytes; None if the request has none.
        last: whether the client wants the connection closed afterwards.
    """

    method: str
    path: str
    query: str
    headers: PlainFields
    length: int | None
    last: bool


class _Reading:
    """What the parser has found."""

    __slots__ = ("complete", "pairs", "target")

    def __init__(self) -> None:
        self.complete = False
        self.target = b""
        self.pairs: list[tuple[str, str]] = []

    def on_url(self, part: bytes) -> None:
        self.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self.pairs.append((name.decode("ascii").lower(), value.decode("ascii")))

    def on_headers_complete(self) -> None:
        self.complete = True


def plain_head(data: bytes) -> Head | None:
    """The head that `data` is, blank line included; None if it is no plain one."""
    if len(data) > HEAD_MAX or _odd(data):
        return None
    reading = _Reading()
    parser = HttpRequestParser(reading)
    try:
        parser.feed_data(data)
    except (HttpParserError, HttpParserUpgrade):
        return None
    target, method = _TARGET.fullmatch(reading.target), parser.get_method()
    if not reading.complete or target is None or method not in _METHODS:
        return None
    if not data.startswith(_line(method, reading.target)):  # llhttp takes several blanks for one
        return None
    headers = PlainFields(reading.pairs)
    if len(headers.getlist("host")) != 1 or any(headers.getlist(name) for name in _ELSEWHERE):
        return None
    lengths, wishes = headers.getlist("content-length"), headers.getlist("connection")
    wish = wishes[0].lower() if wishes else "keep-alive"
    if len(lengths) > 1 or len(wishes) > 1 or wish not in ("keep-alive", "close"):
        return None
    if lengths and not _LENGTH.fullmatch(lengths[0]):
        return None
    path, query = target.groups()
    return Head(
        method.decode(),
        path.decode(),
        query.decode() if query else "",
        headers,
        int(lengths[0]) if lengths else None,
        wish == "close",
    )


def _line(method: bytes, target: bytes) -> bytes:
    return b"%s %s HTTP/1.1\r\n" % (method, target)


def _odd(data: bytes) -> bool:
    """Whether there are controls, line ends by halves, folded lines, blanks at a line's end, or no ASCII."""
    lines = data.count(b"\r\n")
    return (
        not data.isascii()
        or data.count(b"\n") != lines
        or data.count(b"\r") != lines
        or b"\r\n " in data
        or b" \r\n" in data
        or data.startswith(b"\r")
        or len(data.translate(None, _CONTROLS)) != len(data)
    )
