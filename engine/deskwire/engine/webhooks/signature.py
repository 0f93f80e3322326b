"""Signatures that let a receiver verify a delivery (contract 6.3).

The HMAC key is the whole secret as UTF-8 bytes, including `whsec_`. The part after the prefix is not decoded
(decisions 6).
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

SECRET_PREFIX: Final = "whsec_"

_SECRET_BYTES: Final = 32
_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# Number of base 62 digits that encode 32 bytes.
_SECRET_DIGITS: Final = 43


def new_secret() -> str:
    """Return a new signing secret: `whsec_` and 32 random bytes in base 62."""
    number = int.from_bytes(secrets.token_bytes(_SECRET_BYTES))
    digits = []
    for _ in range(_SECRET_DIGITS):
        number, digit = divmod(number, len(_BASE62))
        digits.append(_BASE62[digit])
    return SECRET_PREFIX + "".join(reversed(digits))


class SigningSecrets(Struct, frozen=True):
    """An endpoint's signing secrets.

    The old secret signs until `old_until` (ms).
    """

    secret: str
    old: str | None = None
    old_until: int | None = None

    def at(self, now: int) -> tuple[str, ...]:
        """Return the secrets that sign at `now` (ms), the current one first."""
        if self.old is None or self.old_until is None or now >= self.old_until:
            return (self.secret,)
        return (self.secret, self.old)


def sign(secret: str, t: int, body: bytes) -> str:
    """Return the `v1` signature (contract 6.3.1).

    It is the HMAC-SHA256 of `<t>.<body>`, hex encoded.

    Args:
        secret: the endpoint's whole secret string.
        t: time of the attempt, in seconds since the epoch.
        body: the raw request body.
    """
    return hmac.digest(secret.encode(), b"%d." % t + body, "sha256").hex()


def signature_header(secrets_: Sequence[str], t: int, body: bytes) -> str:
    """Return the value of `Service-Signature`: `t=<t>` and one `v1=` per secret.

    While a secret is rotated, both the new and the old one sign (decisions 6).
    """
    return ",".join((f"t={t}", *(f"v1={sign(secret, t, body)}" for secret in secrets_)))
