"""Duration of recordings: MPEG audio (MP3 and older layers) and WAV.

Both are measured by the audio that the file contains, because headers can be wrong. An MPEG file with a
variable bit rate has no duration in its first frames, and a recorder that streams writes no header, so all
frames are counted. A program that writes WAV to a pipe can't go back to its header and leaves a length of 0
or the maximum, so a length counts only if the file confirms it.

Sources: ISO/IEC 11172-3 2.4.2 and 13818-3, with the lowest rates of MPEG-2.5; Microsoft's RIFF and multiple
channel audio data, EBU Tech 3306 (RF64).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

_FRAME_HEADER_SIZE: Final = 4
_SAMPLE_RATES: Final = (44_100, 48_000, 32_000)
# By the two version bits: MPEG-1, MPEG-2, MPEG-2.5.
_DIVISORS: Final = {3: 1, 2: 2, 0: 4}
# Kilobits per second for the bit rate bits 1 to 14. The key is whether it is MPEG-1, and the two layer bits
# (3 is layer I).
_KBPS: Final = {
    (True, 3): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (True, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 1): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 3): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 1): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
# The start of a possible frame header.
_SYNC: Final = re.compile(rb"\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff][\x10-\xef]", re.DOTALL)
# Marks of a first frame that describes the others and contains no audio.
_SUMMARIES: Final = (b"Xing", b"Info", b"VBRI")
_SUMMARY_SEARCH_SIZE: Final = 64
# After this many false headers the file is given up, because a crafted file can consist of them.
_FALSE_HEADERS_MAX: Final = 20_000


class Frame(NamedTuple):
    """A frame: length in bytes, samples, sample rate, and its stream's properties.

    All frames of one stream have the same `stream`.
    """

    length: int
    samples: int
    rate: int
    stream: tuple[int, int, int]


@lru_cache(maxsize=4096)
def parse_frame(header: bytes) -> Frame | None:
    """Return the frame that starts with these four bytes.

    None if there is none, or if its length is not in the header (free format).
    """
    if len(header) < _FRAME_HEADER_SIZE or header[0] != 0xFF or header[1] & 0xE0 != 0xE0:
        return None
    version, layer = header[1] >> 3 & 3, header[1] >> 1 & 3
    bits, rate_bits, padding = header[2] >> 4, header[2] >> 2 & 3, header[2] >> 1 & 1
    if version == 1 or layer == 0 or bits in (0, 15) or rate_bits == 3:
        return None
    rate = _SAMPLE_RATES[rate_bits] // _DIVISORS[version]
    bits_a_second = _KBPS[version == 3, layer][bits - 1] * 1000
    if layer == 3:
        length, samples = (12 * bits_a_second // rate + padding) * 4, 384
    else:
        samples = 576 if layer == 1 and version != 3 else 1152
        length = samples // 8 * bits_a_second // rate + padding
    return Frame(length, samples, rate, (version, layer, rate_bits))


def begins_with_frames(head: bytes) -> bool:
    """Return whether a file starts with two frames of one stream."""
    first = parse_frame(head[:_FRAME_HEADER_SIZE])
    second = None if first is None else parse_frame(head[first.length : first.length + _FRAME_HEADER_SIZE])
    return first is not None and second is not None and first.stream == second.stream


def mpeg_seconds(content: bytes) -> float | None:
    """Return the total duration of a file's frames in seconds; None without frames.

    Other data is skipped: tags, other formats, gaps in a damaged file. A truncated last frame counts.
    """
    at, seconds, false, stream, first = _after_tags(content), 0.0, 0, None, True
    while (found := _SYNC.search(content, at)) is not None:
        at = found.start()
        here = parse_frame(content[at : at + _FRAME_HEADER_SIZE])
        if here is None or not _is_followed(content, at, here, stream):
            false, at = false + 1, at + 1
            if false > _FALSE_HEADERS_MAX:
                break
            continue
        if not (first and any(mark in content[at : at + _SUMMARY_SEARCH_SIZE] for mark in _SUMMARIES)):
            seconds += here.samples / here.rate
        stream, first, at = here.stream, False, at + here.length
    return seconds or None


def _is_followed(content: bytes, at: int, here: Frame, stream: tuple[int, int, int] | None) -> bool:
    """Return whether a frame belongs to a stream.

    It must continue the previous frame's stream, be followed by a frame of its own stream, or end the file.
    """
    if stream == here.stream:
        return True
    end = at + here.length
    if end >= len(content):
        return stream is None and end == len(content)
    following = parse_frame(content[end : end + _FRAME_HEADER_SIZE])
    return following is not None and following.stream == here.stream


def _after_tags(content: bytes) -> int:
    """Return the position after the ID3 tags at the start."""
    at = 0
    while content[at : at + 3] == b"ID3" and len(content) >= at + 10:
        size = 0
        for byte in content[at + 6 : at + 10]:
            size = size << 7 | byte & 0x7F
        at += 10 + size + (10 if content[at + 5] & 0x10 else 0)
    return at


# First bytes of a WAV file. The later forms have a chunk with 64-bit lengths.
_FORMS: Final = (b"RIFF", b"RF64", b"BW64")

_WAVE_HEADER_SIZE: Final = 12
_CHUNK_HEADER_SIZE: Final = 8
_FORMAT: Final = struct.Struct("<HHIIHH")
# PCM, floating point, A-law, µ-law: each sample has the number of bits in the format.
_SAMPLE_CODINGS: Final = frozenset({1, 3, 6, 7})
_EXTENSIBLE: Final = 0xFFFE
_SUBFORMAT: Final = slice(24, 26)
# Maximum chunks examined. Real files have a dozen, a crafted one millions of empty ones.
_CHUNKS_MAX: Final = 10_000


class _Chunk(NamedTuple):
    name: bytes
    begin: int
    size: int


def wave_seconds(content: bytes) -> float | None:
    """Return the duration of a WAV file in seconds; None for other or silent files."""
    if content[:4] not in _FORMS or content[8:_WAVE_HEADER_SIZE] != b"WAVE":
        return None
    bytes_a_second, lengths = 0.0, b""
    for chunk in _chunks(content, _WAVE_HEADER_SIZE):
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
        if at + _CHUNK_HEADER_SIZE > len(content):
            return
        (size,) = struct.unpack_from("<I", content, at + 4)
        yield _Chunk(content[at : at + 4], at + _CHUNK_HEADER_SIZE, size)
        at += _CHUNK_HEADER_SIZE + size + size % 2


def _bytes_a_second(body: bytes) -> float:
    """Return the bytes per second, 0 if the format can't be read."""
    if len(body) < _FORMAT.size:
        return 0
    coding, channels, rate, average, _, bits = _FORMAT.unpack_from(body)
    if coding == _EXTENSIBLE and len(body) >= _SUBFORMAT.stop:
        (coding,) = struct.unpack("<H", body[_SUBFORMAT])
    if coding in _SAMPLE_CODINGS:
        return float(channels * rate * ((bits + 7) // 8))
    return float(average)


def _sound_bytes(content: bytes, data: _Chunk, lengths: bytes) -> int:
    """Return the number of bytes of audio.

    The chunk's length counts if whole chunks follow it to the end of the file; otherwise the rest of the file
    is audio.
    """
    rest, size = len(content) - data.begin, data.size
    if size == 0xFFFFFFFF and len(lengths) >= 16:
        (size,) = struct.unpack_from("<Q", lengths, 8)
    end = data.begin + size
    if size <= rest and (_is_chunks(content, end + size % 2) or _is_chunks(content, end)):
        return size  # some programs do not pad an odd length
    return rest


def _is_chunks(content: bytes, at: int) -> bool:
    """Return whether only whole chunks follow, apart from a padding byte at the end."""
    for _ in range(_CHUNKS_MAX):
        if at >= len(content):
            return at - len(content) <= 1
        name = content[at : at + 4]
        if at + _CHUNK_HEADER_SIZE > len(content) or not all(0x20 <= byte < 0x7F for byte in name):
            return False
        (size,) = struct.unpack_from("<I", content, at + 4)
        at += _CHUNK_HEADER_SIZE + size + size % 2
    return False
