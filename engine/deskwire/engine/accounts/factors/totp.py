"""Time-based one-time codes of an authenticator app (RFC 6238, with HMAC-SHA-1, 6 digits and steps of 30 seconds)."""

from __future__ import annotations

import base64
import hmac
import secrets
from typing import Final
from urllib.parse import quote, urlencode

STEP_S: Final = 30
DIGITS: Final = 6
DRIFT_STEPS: Final = 1
"""Steps by which the clock of a telephone may differ, in each direction (RFC 6238 5.2)."""
_SECRET_BYTES: Final = 20  # RFC 4226 4 recommends 160 bits
_ISSUER: Final = "Deskwire"


def new_totp_secret() -> str:
    """Return a secret in base32, the form that authenticator apps take."""
    return base64.b32encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def totp_code(secret: bytes, step: int, digits: int = DIGITS) -> str:
    """Return the code of a time step (RFC 4226 5.3)."""
    digest = hmac.digest(secret, step.to_bytes(8, "big"), "sha1")
    offset = digest[-1] & 0x0F
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
    return f"{number % 10**digits:0{digits}d}"


def matching_step(secret: str, code: str, now: int, used_step: int) -> int | None:
    """Return the time step of a valid code, None if there is none.

    All steps are compared, so that the time of the check says nothing about the code.

    Args:
        secret: in base32.
        now: in milliseconds.
        used_step: the newest step whose code was used. Codes up to this step are not accepted again (RFC 6238 5.2).
    """
    key, current, given = (
        base64.b32decode(secret),
        now // (STEP_S * 1000),
        code.encode("utf-8", "surrogatepass"),
    )
    found = None
    for step in range(current - DRIFT_STEPS, current + DRIFT_STEPS + 1):
        if hmac.compare_digest(totp_code(key, max(0, step)).encode(), given) and step > used_step:
            found = step
    return found


def totp_uri(secret: str, email: str) -> str:
    """Return the `otpauth` URI for an authenticator app."""
    values = {"secret": secret, "issuer": _ISSUER, "algorithm": "SHA1", "digits": DIGITS, "period": STEP_S}
    return f"otpauth://totp/{quote(f'{_ISSUER}:{email}', safe=':@')}?{urlencode(values)}"
