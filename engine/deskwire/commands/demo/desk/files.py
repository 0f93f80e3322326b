"""The files that the demo's customers attach, made by code: a picture and a text."""

from __future__ import annotations

import struct
import zlib
from typing import Final

_WIDTH: Final = 320
_HEIGHT: Final = 220
_BOX: Final = (186, 140, 99)
_SHADE: Final = (160, 116, 78)
_TAPE: Final = (222, 196, 150)
_LABEL: Final = (250, 250, 246)
_INK: Final = (40, 40, 44)
_GROUND: Final = (226, 230, 235)


def picture() -> bytes:
    """Return a picture of a parcel, as PNG."""
    rows = b"".join(b"\0" + b"".join(bytes(_colour(x, y)) for x in range(_WIDTH)) for y in range(_HEIGHT))
    head = struct.pack(">IIBBBBB", _WIDTH, _HEIGHT, 8, 2, 0, 0, 0)
    parts = (_chunk(b"IHDR", head), _chunk(b"IDAT", zlib.compress(rows, 9)), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def text() -> bytes:
    """Return the carrier's log, as plain text."""
    lines = (f"08:{minute:02} depot 7: scan of A-4100, label not readable" for minute in range(0, 60, 4))
    return "\n".join(lines).encode() + b"\n"


def _colour(x: int, y: int) -> tuple[int, int, int]:
    if not (40 <= x < 280 and 40 <= y < 190):
        return _GROUND
    if 180 <= x < 260 and 110 <= y < 165:
        bar = 190 <= x < 250 and 130 <= y < 155 and (x * 7 // 5) % 4 < 2
        return _INK if bar else _LABEL
    if 148 <= x < 172:
        return _TAPE
    return _SHADE if y >= 175 or x >= 268 else _BOX


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
