"""Responses packed by gzip, for those who wait for them at the end of a slow line: users who read (ADR 15).

A backend's calls stay as they are: it is near, and pays for the processor time. So do responses to calls that change
something, which are short, and the only ones that show a secret once: what is packed together with a text of somebody
else's choosing can be guessed from its length (BREACH).
"""

from __future__ import annotations

import zlib
from functools import lru_cache, partial
from typing import Final

import trio
from werkzeug.http import parse_accept_header

COMPRESS_MIN_BYTES: Final = 1024
"""Bytes from which on it is worth it; shorter ones fit into a packet or two."""

LEVEL: Final = 3
"""50 KB of conversations become 10.5 KB in 0.24 ms; level 6 makes a tenth less of them in three times the time."""

_INLINE_BYTES_MAX: Final = 128 * 1024
"""Bytes that are packed within the other work, in about a millisecond; more are packed in a thread."""

_GZIP: Final = 16 + zlib.MAX_WBITS
VARY: Final = {"Vary": "Accept-Encoding"}
GZIP_HEADERS: Final = {**VARY, "Content-Encoding": "gzip"}


@lru_cache(maxsize=256)  # browsers all send one of a few
def accepts_gzip(accepted: str | None) -> bool:
    """Tell whether a client with this `Accept-Encoding` takes gzip (RFC 9110 12.5.3)."""
    return accepted is not None and parse_accept_header(accepted)["gzip"] > 0


async def compress(body: bytes) -> bytes:
    """Return the body in gzip form."""
    if len(body) <= _INLINE_BYTES_MAX:
        return _gzipped(body)
    return await trio.to_thread.run_sync(partial(_gzipped, body))


def _gzipped(body: bytes) -> bytes:
    return zlib.compress(body, LEVEL, wbits=_GZIP)
