"""Requests that every reader of HTTP/1.1 understands in the same way, and nothing else.

What a proxy and a server may read differently is how requests are smuggled (RFC 9112 11.2). Here nothing is decided
in doubt: a head is plain if the expression below matches all of it, which allows one way to write each thing. One with
anything else in it is somebody else's, who knows all of the protocol.
"""

from __future__ import annotations

import re
from typing import Final

from deskwire.engine.core.record import value
from deskwire.http.api.input.headers import PlainFields

END: Final = b"\r\n\r\n"
HEAD_MAX: Final = 8 * 1024
"""Bytes of a plain request's line and headers."""

_NAME: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_VALUE: Final = r"(?:[!-~]++(?: ++[!-~]++)*+)?+"
_HEAD: Final = re.compile(
    r"(GET|POST|PUT|PATCH|DELETE) (/[A-Za-z0-9._~:@/-]*+)(?:\?([A-Za-z0-9._~:@,=&-]*+))?+ HTTP/1\.1\r\n"
    rf"((?:{_NAME}: *+{_VALUE}\r\n)*+)\r\n"
)
"""A target with nothing encoded, and fields (RFC 9110 5.5, 5.6.2) of printable ASCII, with no blank at their end.

Nothing in it can match in two ways, so it never goes back: its time grows with the head's length alone.
"""
_FIELD: Final = re.compile(rf"({_NAME}): *+([^\r]*+)\r\n")

_LENGTH: Final = re.compile(r"0|[1-9][0-9]{0,11}")
_ELSEWHERE: Final = frozenset(
    {"transfer-encoding", "upgrade", "expect", "trailer", "te", "http2-settings", "origin"}
)
"""Headers that change how a request is framed or answered: bodies in chunks, upgrades, pages of other origins."""


@value
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


def plain_head(data: bytes) -> Head | None:
    """The head that `data` is, blank line included; None if it is no plain one."""
    if len(data) > HEAD_MAX or not data.isascii():
        return None
    found = _HEAD.fullmatch(data.decode())
    if found is None:
        return None
    method, path, query, lines = found.groups()
    values: dict[str, list[str]] = {}
    for name, given in _FIELD.findall(lines):
        values.setdefault(name.lower(), []).append(given)
    if len(values.get("host", ())) != 1 or not _ELSEWHERE.isdisjoint(values):
        return None
    lengths, wishes = values.get("content-length"), values.get("connection")
    if lengths is not None and (len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0])):
        return None
    wish = "keep-alive" if wishes is None else wishes[0].lower()
    if (wishes is not None and len(wishes) > 1) or wish not in ("keep-alive", "close"):
        return None
    length = None if lengths is None else int(lengths[0])
    return Head(method, path, query or "", PlainFields(values), length, wish == "close")
