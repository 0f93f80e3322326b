"""Answers that every reader of HTTP/1.1 understands in the same way, and that are there at once (ADR 28).

Nearly all that receivers answer is one small piece with a length. It is read here by one expression, which allows one way
to write each thing; whatever else there is in HTTP/1.1 is h11's to read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

Header = tuple[bytes, bytes]

_END: Final = b"\r\n\r\n"
_NAME: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_VALUE: Final = rb"(?:[!-~]++(?: ++[!-~]++)*+)?+"
_HEAD: Final = re.compile(
    rb"HTTP/1\.1 ([2-5][0-9]{2})(?: [ -~]*+)?+\r\n((?:" + _NAME + rb": *+" + _VALUE + rb"\r\n)*+)\r\n"
)
_FIELD: Final = re.compile(rb"(" + _NAME + rb"): *+([^\r]*+)\r\n")
_LENGTH: Final = re.compile(rb"0|[1-9][0-9]{0,5}")
_ELSEWHERE: Final = frozenset({b"transfer-encoding", b"upgrade"})
_WITHOUT_CONTENT: Final = (204, 304)


class Answer(NamedTuple):
    """The head of an answer; names of headers are in small letters."""

    status: int
    headers: Sequence[Header]


def plain_answer(data: bytes) -> tuple[Answer, bytes] | None:
    """The answer that `data` is, and its body; None if it is not plain or not just one.

    After a plain one the connection may have another request.
    """
    end = data.find(_END) + len(_END)
    found = _HEAD.fullmatch(data, 0, end)  # without an end of the head it is too short for that
    if found is None:
        return None
    status, headers, length = int(found[1]), list[Header](), None
    for field, value in _FIELD.findall(found[2]):
        name = field.lower()
        headers.append((name, value))
        if name == b"content-length":
            if length is not None or not _LENGTH.fullmatch(value):
                return None
            length = int(value)
        elif name in _ELSEWHERE or (name == b"connection" and value.lower() != b"keep-alive"):
            return None
    if (length is None) != (status in _WITHOUT_CONTENT) or len(data) != end + (length or 0):
        return None
    return Answer(status, headers), data[end:]
