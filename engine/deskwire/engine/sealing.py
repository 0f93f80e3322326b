"""Secrets at rest: encrypted under keys that are derived from the installation's one secret.

Each purpose has a key of its own, so that what is known of one says nothing about another.
"""

from __future__ import annotations

import base64
from typing import Final

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_KEY_BYTES: Final = 32
_SEALING_LABEL: Final = "sealing"


class SealBroken(Exception):
    """Sealed text can't be opened: it was altered, or sealed under another installation's secret."""


def derived_key(secret: str, label: str) -> bytes:
    """The 32-byte key for the purpose `label` (HKDF-SHA256, RFC 5869).

    Args:
        secret: the installation's secret.
        label: names the purpose; the same label always gives the same key.
    """
    info = f"deskwire/{label}".encode()
    return HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=info).derive(secret.encode())


class Sealing:
    """Seals texts for storage, and opens them again (Fernet: AES-128-CBC with HMAC-SHA256).

    Args:
        secret: the installation's secret; what one secret sealed no other opens.
        label: names the purpose; by default that of webhooks' secrets.
    """

    def __init__(self, secret: str, label: str = _SEALING_LABEL) -> None:
        self._fernet = Fernet(base64.urlsafe_b64encode(derived_key(secret, label)))

    def seal(self, text: str) -> bytes:
        """`text` in a form that may be stored; sealing it twice gives two different results."""
        return self._fernet.encrypt(text.encode())

    def open(self, sealed: bytes) -> str:
        """The text that was sealed. Raises SealBroken if this secret did not seal it."""
        try:
            return self._fernet.decrypt(sealed).decode()
        except InvalidToken:
            raise SealBroken(
                "A stored secret can't be opened: it was altered, or DESKWIRE_SECRET (or the secret's file "
                "in the data directory) is not the one it was sealed with."
            ) from None
