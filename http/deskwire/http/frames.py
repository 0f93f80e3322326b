"""Websocket frames as bytes (RFC 6455 5.2)."""

from __future__ import annotations

from typing import Final

_TEXT: Final = 0x81
_SHORT: Final = 125
_TWO_BYTES: Final = 0xFFFF


def text_frame(payload: bytes) -> bytes:
    """`payload`, which is UTF-8, as one unmasked, unfragmented text frame."""
    size = len(payload)
    if size <= _SHORT:
        return bytes((_TEXT, size)) + payload
    if size <= _TWO_BYTES:
        return bytes((_TEXT, 126)) + size.to_bytes(2) + payload
    return bytes((_TEXT, 127)) + size.to_bytes(8) + payload
