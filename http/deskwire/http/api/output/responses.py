"""The headers of all responses for browsers and caches, on every path through the server (ADR 25)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson
from werkzeug.datastructures import Headers

BASELINE: Final = (
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
    ("Content-Security-Policy", "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
"""An answer that needs another value, as a page or a file does, says so itself; none goes without one."""

STRICT_TRANSPORT: Final = ("Strict-Transport-Security", "max-age=31536000")
"""A year, for this host only: what other names of the domain do is not ours to decide (RFC 6797)."""


def add_missing_headers(headers: Headers, *, secure: bool) -> None:
    """Add what is missing.

    Args:
        secure: whether the request came by TLS; without it a browser ignores the last header (RFC 6797 8.1).
    """
    for name, value in (*BASELINE, STRICT_TRANSPORT) if secure else BASELINE:
        headers.setdefault(name, value)


def missing_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return what is missing among the headers of a response that is not made by the app."""
    there = {name.lower() for name, _ in headers}
    wanted = ((name.lower().encode(), value.encode()) for name, value in BASELINE)
    return [(name, value) for name, value in wanted if name not in there]


# DOC lines.py: """JSON as it is sent: one line that ends, so that a terminal's prompt stands behind it on a line of its own."""
#


def json_line(value: Mapping[str, Any]) -> bytes:
    """Return an object as a line of JSON."""
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
