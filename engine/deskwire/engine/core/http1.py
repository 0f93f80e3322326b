"""The plain heads of HTTP/1.1: requests and responses that every reader understands in the same way.

What a proxy and a server may read differently is how requests are smuggled (RFC 9112 11.2). Here nothing is decided
in doubt: a head is plain if one expression matches all of it, which allows one way to write each thing. Anything else
is left to a reader that knows all of the protocol (ADR 7).
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
"""The phrases that Python 3.13 writes as RFC 9110 does; here they are the same with every version of Python."""

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""The methods of requests that are logged and counted by their names."""

Header = tuple[bytes, bytes]
"""A header of a response: its name in small letters, and its value."""

END: Final = b"\r\n\r\n"
"""The end of a head."""

HEAD_MAX: Final = 8 * 1024
"""The bytes that a plain request's line and headers have at most."""

_NAME: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_VALUE: Final = r"(?:[!-~]++(?: ++[!-~]++)*+)?+"
_FIELDS: Final = rf"((?:{_NAME}: *+{_VALUE}\r\n)*+)\r\n"
"""The fields of a head (RFC 9110 5.5, 5.6.2): printable ASCII, with no blank at the end of a value.

Nothing in the expressions can match in two ways, so they never go back: their time grows with the head's length alone.
"""
_FIELD: Final = rf"({_NAME}): *+([^\r]*+)\r\n"

_REQUEST: Final = re.compile(
    r"(GET|POST|PUT|PATCH|DELETE) (/[A-Za-z0-9._~:@/-]*+)(?:\?([A-Za-z0-9._~:@,=&%+!'()*-]*+))?+ HTTP/1\.1\r\n"
    + _FIELDS
)
"""A request whose path has nothing encoded in it. A query is read behind this, in one way for all."""
_REQUEST_FIELD: Final = re.compile(_FIELD)
_REQUEST_LENGTH: Final = re.compile(r"0|[1-9][0-9]{0,11}")
_SPECIAL_REQUEST: Final = frozenset(
    {"transfer-encoding", "upgrade", "expect", "trailer", "te", "http2-settings"}
)
"""Headers that change how a request is framed or answered: bodies in chunks, upgrades."""

_RESPONSE: Final = re.compile(rf"HTTP/1\.1 ([2-5][0-9]{{2}})(?: [ -~]*+)?+\r\n{_FIELDS}".encode())
_RESPONSE_FIELD: Final = re.compile(_FIELD.encode())
_RESPONSE_LENGTH: Final = re.compile(rb"0|[1-9][0-9]{0,5}")
_SPECIAL_RESPONSE: Final = frozenset({b"transfer-encoding", b"upgrade"})
_WITHOUT_CONTENT: Final = (204, 304)


class RequestHead(Struct, frozen=True):
    """A plain request without its body.

    Args:
        fields: the values of each header, in their order, by its name in small letters.
        length: of the body, in bytes; None if the request has none.
        last: whether the client wants the connection closed afterwards.
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
    """Return the request's head that `data` is, blank line included; None if it is not a plain one."""
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
    """Return the head and the body of the response that `data` is; None if it is not plain, or not just one.

    After a plain one the connection may have another request.
    """
    end = data.find(END) + len(END)
    match = _RESPONSE.fullmatch(data, 0, end)  # without an end of the head it is too short for that
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
    """Return the reason phrase of a status, such as "Not Found". Raises ValueError for one that nobody has defined."""
    return _PHRASES.get(status) or HTTPStatus(status).phrase
