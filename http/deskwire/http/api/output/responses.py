"""Parts of all responses: the JSON line and the security headers (ADR 25)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson
from werkzeug.datastructures import Headers

# Responses that need other values, such as pages and files, set them; every response has each of these
# headers.
BASELINE: Final = (
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
    ("Content-Security-Policy", "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)

# One year, for this host only, because other names of the domain are not ours (RFC 6797).
STRICT_TRANSPORT: Final = ("Strict-Transport-Security", "max-age=31536000")


def add_missing_headers(headers: Headers, *, secure: bool) -> None:
    """Add the headers that a response lacks.

    Args:
        secure: True if the request came over TLS; without TLS, browsers ignore Strict-Transport-Security
            (RFC 6797 8.1).
    """
    for name, value in (*BASELINE, STRICT_TRANSPORT) if secure else BASELINE:
        headers.setdefault(name, value)


def missing_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers that a response made without the app lacks."""
    there = {name.lower() for name, _ in headers}
    wanted = ((name.lower().encode(), value.encode()) for name, value in BASELINE)
    return [(name, value) for name, value in wanted if name not in there]


def json_line(value: Mapping[str, Any]) -> bytes:
    """Return an object as a line of JSON.

    The line break keeps a terminal's prompt off the line.
    """
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
