"""Frames of MPEG audio (MP3 and its elder layers), by which a recording is recognised and measured.

A file of varying bit rate has no true length in its first frames, and a recorder that writes a stream leaves no header with it: what
counts is the frames that are there. Source: ISO/IEC 11172-3 2.4.2 and 13818-3; the lowest rates are those of MPEG-2.5.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
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
def parse_frame(header: bytes) -> Frame | None:
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
    first = parse_frame(head[:_HEADER])
    second = None if first is None else parse_frame(head[first.length : first.length + _HEADER])
    return first is not None and second is not None and first.stream == second.stream


def mpeg_seconds(content: bytes) -> float | None:
    """Return the seconds that the frames of a file last; None if there are none.

    What is no frame is passed over: tags, a head of other data, gaps in a damaged file. A frame that is cut off counts.
    """
    at, seconds, false, stream, first = _after_tags(content), 0.0, 0, None, True
    while (found := _SYNC.search(content, at)) is not None:
        at = found.start()
        here = parse_frame(content[at : at + _HEADER])
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
    following = parse_frame(content[end : end + _HEADER])
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


_FORMS: Final = (b"RIFF", b"RF64", b"BW64")
"""First bytes of such a file; the later ones have lengths of 64 bits in a chunk of their own."""

_HEAD: Final = 12
_CHUNK: Final = 8
_FORMAT: Final = struct.Struct("<HHIIHH")
_IS_IN_SAMPLES: Final = frozenset({1, 3, 6, 7})
"""PCM, floating point, A-law, µ-law: each sample takes as many bits as the format says."""
_EXTENSIBLE: Final = 0xFFFE
_SUBFORMAT: Final = slice(24, 26)
_CHUNKS_MAX: Final = 10_000
"""Chunks that are looked at: real files have a dozen, a crafted one millions of empty ones."""


class _Chunk(NamedTuple):
    name: bytes
    begin: int
    size: int


def wave_seconds(content: bytes) -> float | None:
    """Return the seconds that a file lasts; None if it is no WAV file, or has no sound."""
    if content[:4] not in _FORMS or content[8:_HEAD] != b"WAVE":
        return None
    bytes_a_second, lengths = 0.0, b""
    for chunk in _chunks(content, _HEAD):
        body = content[chunk.begin : chunk.begin + min(chunk.size, 64)]
        if chunk.name == b"fmt ":
            bytes_a_second = _bytes_a_second(body)
        elif chunk.name == b"ds64":
            lengths = body
        elif chunk.name == b"data":
            if not bytes_a_second:
                return None
            return _sound_bytes(content, chunk, lengths) / bytes_a_second or None
    return None


def _chunks(content: bytes, at: int) -> Iterator[_Chunk]:
    for _ in range(_CHUNKS_MAX):
        if at + _CHUNK > len(content):
            return
        (size,) = struct.unpack_from("<I", content, at + 4)
        yield _Chunk(content[at : at + 4], at + _CHUNK, size)
        at += _CHUNK + size + size % 2


def _bytes_a_second(body: bytes) -> float:
    """Return the bytes of a second, 0 if the format can't be read."""
    if len(body) < _FORMAT.size:
        return 0
    coding, channels, rate, average, _, bits = _FORMAT.unpack_from(body)
    if coding == _EXTENSIBLE and len(body) >= _SUBFORMAT.stop:
        (coding,) = struct.unpack("<H", body[_SUBFORMAT])
    if coding in _IS_IN_SAMPLES:
        return float(channels * rate * ((bits + 7) // 8))
    return float(average)


def _sound_bytes(content: bytes, data: _Chunk, lengths: bytes) -> int:
    """Return the bytes of the sound: as its chunk says if other chunks follow it there to the end, else the rest of the file."""
    rest, size = len(content) - data.begin, data.size
    if size == 0xFFFFFFFF and len(lengths) >= 16:
        (size,) = struct.unpack_from("<Q", lengths, 8)
    end = data.begin + size
    if size <= rest and (_is_chunks(content, end + size % 2) or _is_chunks(content, end)):
        return size  # some programs do not fill up an odd length
    return rest


def _is_chunks(content: bytes, at: int) -> bool:
    """Return whether the file has nothing but whole chunks from a place to its end, but for a byte that fills up the last one."""
    for _ in range(_CHUNKS_MAX):
        if at >= len(content):
            return at - len(content) <= 1
        name = content[at : at + 4]
        if at + _CHUNK > len(content) or not all(0x20 <= byte < 0x7F for byte in name):
            return False
        (size,) = struct.unpack_from("<I", content, at + 4)
        at += _CHUNK + size + size % 2
    return False
