"""Media type detection from a file's first bytes (decisions 7).

The media type that the sender claims is ignored.
"""

from __future__ import annotations

import codecs
from typing import Final

import filetype

from deskwire.engine.uploads.audio import begins_with_frames

# Number of bytes examined. The signatures of all known types lie within them.
HEAD_BYTES: Final = 8_192

UNKNOWN: Final = "application/octet-stream"
TEXT: Final = "text/plain"

# Registered or better known names of media types, by the library's names.
_ALIASES: Final = {
    "audio/x-aiff": "audio/aiff",
    "audio/x-flac": "audio/flac",
    "audio/x-wav": "audio/wav",
    "image/x-icon": "image/vnd.microsoft.icon",
}

# First bytes of a WAV file with 64-bit lengths, as some recorders write them.
_LONG_WAVE: Final = (b"RF64", b"BW64")

_CONTROL: Final = frozenset(range(32)) - frozenset(b"\t\n\f\r\x1b")


def sniff(head: bytes) -> str:
    """Return the media type of a file that starts with `head`.

    Every kind of text is `text/plain`, so that no HTML or SVG is ever rendered.
    """
    match = filetype.guess(head[:HEAD_BYTES])
    if match is not None:
        name: str = match.mime
        return _ALIASES.get(name, name)
    if head[:4] in _LONG_WAVE and head[8:12] == b"WAVE":
        return "audio/wav"
    if begins_with_frames(head):  # the library detects only the most common frame headers
        return "audio/mpeg"
    return TEXT if head and _is_text(head[:HEAD_BYTES]) else UNKNOWN


def _is_text(head: bytes) -> bool:
    """Return whether this is UTF-8 without control characters.

    The last character may be incomplete.
    """
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return not _CONTROL & set(head)
