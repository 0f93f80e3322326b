"""The media type of a file, found from its first bytes; what the sender claims is ignored (decisions 7)."""

from __future__ import annotations

import codecs
from typing import Final

import filetype

from deskwire.engine.uploads.audio import begins_with_frames

HEAD_BYTES: Final = 8_192
"""The bytes that are looked at; the signature of every known type lies within them."""

UNKNOWN: Final = "application/octet-stream"
TEXT: Final = "text/plain"

_ALIASES: Final = {
    "audio/x-aiff": "audio/aiff",
    "audio/x-flac": "audio/flac",
    "audio/x-wav": "audio/wav",
    "image/x-icon": "image/vnd.microsoft.icon",
}
"""The registered or better known names of types, by the library's names."""

_LONG_WAVE: Final = (b"RF64", b"BW64")
"""First bytes of a WAV file with lengths of 64 bits, as recorders write them."""

_CONTROL: Final = frozenset(range(32)) - frozenset(b"\t\n\f\r\x1b")


def sniff(head: bytes) -> str:
    """Return the media type of a file that begins with `head`.

    Text of any kind is `text/plain`, so that no HTML or SVG is ever shown as such.
    """
    match = filetype.guess(head[:HEAD_BYTES])
    if match is not None:
        name: str = match.mime
        return _ALIASES.get(name, name)
    if head[:4] in _LONG_WAVE and head[8:12] == b"WAVE":
        return "audio/wav"
    if begins_with_frames(head):  # the library knows the commonest of their first bytes alone
        return "audio/mpeg"
    return TEXT if head and _is_text(head[:HEAD_BYTES]) else UNKNOWN


def _is_text(head: bytes) -> bool:
    """Tell whether this is UTF-8 without control characters; a character may be cut at the end."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return not _CONTROL & set(head)
