"""Gzip compression of responses to users in browsers (ADR 15).

Their connections may be slow. Responses to backends are not compressed: their networks are fast, and the
processor time matters more. Neither are responses to changing calls: they are short, and some contain a
secret, which could be guessed from the length of a response that is compressed together with a text of an
attacker's choice (BREACH).
"""

from __future__ import annotations

import zlib
from functools import lru_cache, partial
from typing import Final

import trio
from werkzeug.http import parse_accept_header

# Shorter responses fit into a packet or two.
COMPRESS_MIN_BYTES: Final = 1024

# 50 KB of conversations become 10.5 KB in 0.24 ms; level 6 saves a tenth more and takes three times as
# long.
LEVEL: Final = 3

# Bytes that are compressed on Trio's thread, in about a millisecond; more are compressed in another thread.
_INLINE_BYTES_MAX: Final = 128 * 1024

_GZIP: Final = 16 + zlib.MAX_WBITS
VARY: Final = {"Vary": "Accept-Encoding"}
GZIP_HEADERS: Final = {**VARY, "Content-Encoding": "gzip"}


@lru_cache(maxsize=256)  # browsers send one of a few values
def accepts_gzip(accepted: str | None) -> bool:
    """Return whether a client accepts gzip (RFC 9110 12.5.3).

    `accepted` is the value of its `Accept-Encoding`.
    """
    return accepted is not None and parse_accept_header(accepted)["gzip"] > 0


async def compress(body: bytes) -> bytes:
    """Return the body in gzip format."""
    if len(body) <= _INLINE_BYTES_MAX:
        return _gzipped(body)
    return await trio.to_thread.run_sync(partial(_gzipped, body))


def _gzipped(body: bytes) -> bytes:
    return zlib.compress(body, LEVEL, wbits=_GZIP)
