"""Frames of MPEG audio (MP3 and its elder layers), by which a recording is recognised and measured.

A file of varying bit rate has no true length in its first frames, and a recorder that writes a stream leaves no header with it: what
counts is the frames that are there. Source: ISO/IEC 11172-3 2.4.2 and 13818-3; the lowest rates are those of MPEG-2.5.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

_HEADER: Final = 4
_RATES: Final = (44_100, 48_000, 32_000)
_DIVISORS: Final = {3: 1, 2: 2, 0: 4}
"""By the two bits of the version: MPEG-1, MPEG-2, MPEG-2.5."""
_KBPS: Final = {
    (True, 3): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (True, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 1): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 3): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 1): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
"""Kilobits a second by whether it is MPEG-1 and by the two bits of the layer, 3 for layer I, for the bits 1 to 14."""
_SYNC: Final = re.compile(rb"\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff][\x10-\xef]", re.DOTALL)
"""The begin of what may be a frame's header."""
_SUMMARIES: Final = (b"Xing", b"Info", b"VBRI")
"""Marks of a first frame that is about the others, and has no sound."""
_SUMMARY_BYTES: Final = 64
_FALSE_MAX: Final = 20_000
"""Places that look like a header and are none, after which a file is given up: a crafted one consists of them."""


class Frame(NamedTuple):
    """A frame: its length in bytes, its samples, the samples a second, and what all frames of a stream share."""

    length: int
    samples: int
    rate: int
    stream: tuple[int, int, int]


@lru_cache(maxsize=4096)
def frame(header: bytes) -> Frame | None:
    """Return the frame that these four bytes begin; None if they begin none, or one of free format."""
    if len(header) < _HEADER or header[0] != 0xFF or header[1] & 0xE0 != 0xE0:
        return None
    version, layer = header[1] >> 3 & 3, header[1] >> 1 & 3
    bits, rate_bits, padding = header[2] >> 4, header[2] >> 2 & 3, header[2] >> 1 & 1
    if version == 1 or layer == 0 or bits in (0, 15) or rate_bits == 3:
        return None
    rate = _RATES[rate_bits] // _DIVISORS[version]
    bits_a_second = _KBPS[version == 3, layer][bits - 1] * 1000
    if layer == 3:
        length, samples = (12 * bits_a_second // rate + padding) * 4, 384
    else:
        samples = 576 if layer == 1 and version != 3 else 1152
        length = samples // 8 * bits_a_second // rate + padding
    return Frame(length, samples, rate, (version, layer, rate_bits))


def begins_with_frames(head: bytes) -> bool:
    """Return whether a file begins with two frames of one stream."""
    first = frame(head[:_HEADER])
    second = None if first is None else frame(head[first.length : first.length + _HEADER])
    return first is not None and second is not None and first.stream == second.stream


def mpeg_seconds(content: bytes) -> float | None:
    """Return the seconds that the frames of a file last; None if there are none.

    What is no frame is passed over: tags, a head of other data, gaps in a damaged file. A frame that is cut off counts.
    """
    at, seconds, false, stream, first = _after_tags(content), 0.0, 0, None, True
    while (found := _SYNC.search(content, at)) is not None:
        at = found.start()
        here = frame(content[at : at + _HEADER])
        if here is None or not _is_followed(content, at, here, stream):
            false, at = false + 1, at + 1
            if false > _FALSE_MAX:
                break
            continue
        if not (first and any(mark in content[at : at + _SUMMARY_BYTES] for mark in _SUMMARIES)):
            seconds += here.samples / here.rate
        stream, first, at = here.stream, False, at + here.length
    return seconds or None


def _is_followed(content: bytes, at: int, here: Frame, stream: tuple[int, int, int] | None) -> bool:
    """Return whether a frame is one of a stream: of the one before it, or by the frame after it, or as the file ends with it."""
    if stream == here.stream:
        return True
    end = at + here.length
    if end >= len(content):
        return stream is None and end == len(content)
    following = frame(content[end : end + _HEADER])
    return following is not None and following.stream == here.stream


def _after_tags(content: bytes) -> int:
    """Return the place behind the ID3 tags at the begin."""
    at = 0
    while content[at : at + 3] == b"ID3" and len(content) >= at + 10:
        size = 0
        for byte in content[at + 6 : at + 10]:
            size = size << 7 | byte & 0x7F
        at += 10 + size + (10 if content[at + 5] & 0x10 else 0)
    return at
