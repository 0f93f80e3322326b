"""The check that a delivery is genuine: a receiver must make it over the raw bytes (contract 6.3)."""

from __future__ import annotations

import hmac
from typing import Final

TOLERANCE_S: Final = 300  # contract 8
_DIGITS: Final = 15
"""The most digits of a time: Python makes no float of a number with hundreds of them, and no number of thousands."""


def signature_fault(secret: str, header: str, body: bytes, now: float) -> str | None:
    """Return the fault of the signature; None if it is right.

    Args:
        secret: the whole secret, `whsec_` included.
        header: `Service-Signature`, `t=<unix seconds>,v1=<hex>`, with several `v1` during a rotation.
        now: the receiver's clock, in seconds since the epoch.
    """
    parts = [part.partition("=") for part in header.split(",")]
    times = [value for name, _, value in parts if name == "t"]
    signatures = [value for name, _, value in parts if name == "v1"]
    if len(times) != 1 or not _is_time(times[0]) or not signatures:
        return f"the signature header {header!r} has no t and v1"
    if abs(now - int(times[0])) > TOLERANCE_S:
        return f"it was signed more than {TOLERANCE_S} s away from now"
    expected = hmac.digest(secret.encode(), times[0].encode() + b"." + body, "sha256").hex()
    # Bytes, as compare_digest refuses text that is not ASCII.
    if not any(hmac.compare_digest(expected.encode(), each.encode()) for each in signatures):
        return "the signature does not fit the body"
    return None


def _is_time(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS
