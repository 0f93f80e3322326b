"""Downloads: the requested range of a file, its headers and its bytes.

Sources: RFC 9110 and RFC 6266.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final
from urllib.parse import quote

from werkzeug.http import parse_etags, parse_range_header

from deskwire.engine.core.errors import RangeNotSatisfiable
from deskwire.engine.uploads.service import UploadService
from deskwire.engine.uploads.upload import Upload
from deskwire.http.api.input.headers import Fields

# Types that a browser may display, because they contain no scripts. All others are saved.
INLINE: Final = frozenset(
    {
        "audio/aac",
        "audio/flac",
        "audio/mp4",
        "audio/mpeg",
        "audio/ogg",
        "audio/wav",
        "image/avif",
        "image/gif",
        "image/jpeg",
        "image/png",
        "image/webp",
        "text/plain",
        "video/mp4",
        "video/webm",
    }
)

# Bytes that are read and sent at a time; each write has a timeout of its own.
_PIECE: Final = 128 * 1024

_TOKEN: Final = "!#$&+-.^_`|~"  # RFC 8187, attr-char


class UploadBody(AsyncIterator[bytes]):
    """A part of an upload in chunks.

    Nothing stays open between two chunks, so iteration may stop anywhere.
    """

    def __init__(self, uploads: UploadService, upload: Upload, start: int, end: int) -> None:
        self._uploads = uploads
        self._upload = upload
        self._at = start
        self._end = end

    async def __anext__(self) -> bytes:
        """Return the next chunk.

        Raises Unavailable if the file has been removed, which ends the connection.
        """
        if self._at >= self._end:
            raise StopAsyncIteration
        data = await self._uploads.read(self._upload, self._at, min(_PIECE, self._end - self._at))
        self._at = self._at + len(data) if data else self._end
        return data


def etag_of(upload: Upload) -> str:
    """Return the entity tag: the digest of the content."""
    return upload.sha256


def not_modified(headers: Fields, upload: Upload) -> bool:
    """Return whether the client already has the file (RFC 9110 section 13.1.2)."""
    return parse_etags(headers.get("if-none-match")).contains_weak(etag_of(upload))


def requested_range(headers: Fields, upload: Upload) -> tuple[int, int] | None:
    """Return start and end of the requested range.

    Returns None for the whole file (RFC 9110 section 14.2).

    Several ranges get the whole file, which a server may always send. Raises RangeNotSatisfiable.
    """
    asked = headers.get("range") or ""
    condition = headers.get("if-range")
    if not asked.lower().startswith("bytes=") or condition not in (None, f'"{etag_of(upload)}"'):
        return None
    parsed = parse_range_header(asked)
    if parsed is not None and len(parsed.ranges) > 1:
        return None
    found = parsed and parsed.range_for_length(upload.size)
    if not found:
        raise RangeNotSatisfiable(upload.size)
    return found


def headers_of(upload: Upload) -> Mapping[str, str]:
    """Return headers that keep the file from doing harm in a browser."""
    return {
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
        "Content-Disposition": disposition(upload),
        "Content-Security-Policy": "default-src 'none'; base-uri 'none'; sandbox",
        "Cross-Origin-Resource-Policy": "cross-origin",
        "ETag": f'"{etag_of(upload)}"',
        "Referrer-Policy": "no-referrer",
    }


def disposition(upload: Upload) -> str:
    """Return the header Content-Disposition (RFC 6266, RFC 8187).

    It says whether to show or save the file, and its name.
    """
    how = "inline" if upload.type in INLINE else "attachment"
    plain = "".join(each if " " <= each <= "~" and each not in '"\\%' else "_" for each in upload.name)
    return f"{how}; filename=\"{plain}\"; filename*=UTF-8''{quote(upload.name, safe=_TOKEN)}"


def content_type(upload: Upload) -> str:
    """Return the header Content-Type.

    Text is UTF-8, because other text is not recognized as text.
    """
    return "text/plain; charset=utf-8" if upload.type == "text/plain" else upload.type
