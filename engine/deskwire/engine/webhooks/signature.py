"""Signatures that let a receiver verify a delivery: the contract's, and the one of Standard Webhooks.

The contract's signature has as its HMAC key the whole secret as UTF-8 bytes, including `whsec_` (contract 6.3,
decisions 6). Standard Webhooks decodes the part after the prefix from base64. Both work with one secret, because its
characters are base64, too.

Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import hmac
import secrets
from binascii import Error as NotBase64
from binascii import a2b_base64, b2a_base64
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

SECRET_PREFIX: Final = "whsec_"

# Letters and digits are also base64, without the `+` and `/` that end a selection by double click.
_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

# 262 bits. A multiple of 4, so that strict decoders of base64 need no padding. Version 0.1 made 43 characters.
_SECRET_LENGTH: Final = 44


def new_secret() -> str:
    """Return a new signing secret: `whsec_` and 44 random letters and digits."""
    return SECRET_PREFIX + "".join(secrets.choice(_ALPHABET) for _ in range(_SECRET_LENGTH))


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


def standard_key(secret: str) -> bytes:
    """Return the HMAC key that libraries of Standard Webhooks derive from a secret.

    It is the part after `whsec_`, decoded from base64 with or without padding. A part that is not base64, which only
    `deskwire listen --secret` accepts, is the key itself (the format "raw" of the libraries).
    """
    encoded = secret.removeprefix(SECRET_PREFIX).encode()
    digits = encoded.rstrip(b"=")
    try:
        return a2b_base64(digits + b"=" * (-len(digits) % 4), strict_mode=True)
    except NotBase64:
        return encoded


def standard_signature(secrets_: Sequence[str], message_id: str, t: int, body: bytes) -> str:
    """Return the value of `webhook-signature`: one `v1,<base64>` per secret, separated by blanks.

    Each is the HMAC-SHA256 of `<message id>.<t>.<body>`.

    Args:
        secrets_: the endpoint's whole secrets, the current one first.
        message_id: the value of `webhook-id`, without a full stop.
        t: the value of `webhook-timestamp`, in seconds since the epoch.
        body: the raw request body.
    """
    signed = b"%b.%d.%b" % (message_id.encode(), t, body)
    digests = (hmac.digest(standard_key(secret), signed, "sha256") for secret in secrets_)
    return " ".join("v1," + b2a_base64(digest, newline=False).decode() for digest in digests)
