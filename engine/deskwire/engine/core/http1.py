"""A strict parser for plain HTTP/1.1 heads that every parser reads in the same way.

Requests are smuggled through heads that a proxy and a server parse differently (RFC 9112 11.2). This parser accepts a head
only if one regular expression, with one way to write each element, matches all of it. All other heads go to a complete
parser (ADR 7).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from msgspec import Struct

_PHRASES: Final = {
    413: "Request Entity Too Large",
    416: "Requested Range Not Satisfiable",
    422: "Unprocessable Entity",
}
"""Reason phrases that differ between Python versions, fixed here so that responses do not."""

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""The methods that logs and metrics show by name."""

Header = tuple[bytes, bytes]
"""A response header: the name in lower case, and the value."""

END: Final = b"\r\n\r\n"
"""The end of a head."""

HEAD_MAX: Final = 8 * 1024
"""The maximum size of a plain request's line and headers, in bytes."""

_NAME: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_VALUE: Final = r"(?:[!-~]++(?: ++[!-~]++)*+)?+"
_FIELDS: Final = rf"((?:{_NAME}: *+{_VALUE}\r\n)*+)\r\n"
"""The fields of a head (RFC 9110 5.5, 5.6.2): printable ASCII, without a blank at the end of a value.

The expressions never backtrack because each part matches in one way only. Their time is linear in the length of the head.
"""
_FIELD: Final = rf"({_NAME}): *+([^\r]*+)\r\n"

_REQUEST: Final = re.compile(
    r"(GET|POST|PUT|PATCH|DELETE) (/[A-Za-z0-9._~:@/-]*+)(?:\?([A-Za-z0-9._~:@,=&%+!'()*-]*+))?+ HTTP/1\.1\r\n"
    + _FIELDS
)
"""A request whose path has no percent-encoding. The query is parsed later, by the same code for all requests."""
_REQUEST_FIELD: Final = re.compile(_FIELD)
_REQUEST_LENGTH: Final = re.compile(r"0|[1-9][0-9]{0,11}")
_SPECIAL_REQUEST: Final = frozenset(
    {"transfer-encoding", "upgrade", "expect", "trailer", "te", "http2-settings"}
)
"""Headers that change how a request is framed or answered: chunked bodies, upgrades."""

_RESPONSE: Final = re.compile(rf"HTTP/1\.1 ([2-5][0-9]{{2}})(?: [ -~]*+)?+\r\n{_FIELDS}".encode())
_RESPONSE_FIELD: Final = re.compile(_FIELD.encode())
_RESPONSE_LENGTH: Final = re.compile(rb"0|[1-9][0-9]{0,5}")
_SPECIAL_RESPONSE: Final = frozenset({b"transfer-encoding", b"upgrade"})
_WITHOUT_CONTENT: Final = (204, 304)


class RequestHead(Struct, frozen=True):
    """A plain request without its body.

    Args:
        fields: the values of each header in order, by its name in lower case.
        length: length of the body in bytes, None without a body.
        last: whether the client asks to close the connection after the response.
    """

    method: str
    path: str
    query: str
    fields: Mapping[str, Sequence[str]]
    length: int | None
    last: bool


class ResponseHead(NamedTuple):
    """A plain response without its body."""

    status: int
    headers: Sequence[Header]


def plain_request(data: bytes) -> RequestHead | None:
    """Parse `data`, a request head with its blank line. Return None if it is not plain."""
    if len(data) > HEAD_MAX or not data.isascii():
        return None
    match = _REQUEST.fullmatch(data.decode())
    if match is None:
        return None
    method, path, query, lines = match.groups()
    fields: dict[str, list[str]] = {}
    for name, content in _REQUEST_FIELD.findall(lines):
        fields.setdefault(name.lower(), []).append(content)
    if len(fields.get("host", ())) != 1 or not _SPECIAL_REQUEST.isdisjoint(fields):
        return None
    lengths, connection = fields.get("content-length"), fields.get("connection")
    if lengths is not None and (len(lengths) > 1 or not _REQUEST_LENGTH.fullmatch(lengths[0])):
        return None
    option = "keep-alive" if connection is None else connection[0].lower()
    if (connection is not None and len(connection) > 1) or option not in ("keep-alive", "close"):
        return None
    length = None if lengths is None else int(lengths[0])
    return RequestHead(method, path, query or "", fields, length, option == "close")


def plain_response(data: bytes) -> tuple[ResponseHead, bytes] | None:
    """Parse `data` into the head and the body of a response.

    Return None if it is not exactly one plain response.

    The connection can be used for another request after a plain response.
    """
    end = data.find(END) + len(END)
    match = _RESPONSE.fullmatch(data, 0, end)  # no match if END is missing: `end` is then 3
    if match is None:
        return None
    status, headers, length = int(match[1]), list[Header](), None
    for field, content in _RESPONSE_FIELD.findall(match[2]):
        name = field.lower()
        headers.append((name, content))
        if name == b"content-length":
            if length is not None or not _RESPONSE_LENGTH.fullmatch(content):
                return None
            length = int(content)
        elif name in _SPECIAL_RESPONSE or (name == b"connection" and content.lower() != b"keep-alive"):
            return None
    if (length is None) != (status in _WITHOUT_CONTENT) or len(data) != end + (length or 0):
        return None
    return ResponseHead(status, headers), data[end:]


def phrase(status: int) -> str:
    """Return the reason phrase of a status, such as "Not Found". Raises ValueError for an undefined status."""
    return _PHRASES.get(status) or HTTPStatus(status).phrase
