"""Websocket frames as bytes (RFC 6455 5.2)."""

from __future__ import annotations

from typing import Final

_TEXT: Final = 0x81
CLOSE: Final = b"\x88"
"""The first byte of a close frame."""
_SHORT: Final = 125
_TWO_BYTES: Final = 0xFFFF


def text_frame(payload: bytes) -> bytes:
    """Return `payload`, which is UTF-8, as one unmasked, unfragmented text frame."""
    size = len(payload)
    if size <= _SHORT:
        return bytes((_TEXT, size)) + payload
    if size <= _TWO_BYTES:
        return bytes((_TEXT, 126)) + size.to_bytes(2) + payload
    return bytes((_TEXT, 127)) + size.to_bytes(8) + payload


def close_frame(code: int, reason: str) -> bytes:
    """Return an unmasked close frame (5.5.1); the reason is cut to what a control frame holds."""
    payload = code.to_bytes(2) + reason.encode()[: _SHORT - 2].decode(errors="ignore").encode()
    return CLOSE + bytes((len(payload),)) + payload
