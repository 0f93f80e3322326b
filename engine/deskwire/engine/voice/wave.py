"""The length of WAV files, by the sound that they hold.

A program that writes to a pipe can't go back to its header: it leaves a length there of 0, or the largest. So a length counts
only as far as the file bears it out. Source: Microsoft's RIFF and multiple channel audio data, EBU Tech 3306 (RF64).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

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
