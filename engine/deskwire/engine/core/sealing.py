"""Secrets at rest: encrypted under keys that are derived from the installation's one secret.

Each purpose has a key of its own, so that what is known of one says nothing about another.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Final

from cryptography.fernet import Fernet, InvalidToken

from deskwire.engine.core.secret import Secrets, derived_key

_SEALING_LABEL: Final = "sealing"


class SealBroken(Exception):
    """Sealed text can't be opened: it was altered, or sealed under another installation's secret."""


class Sealing:
    """Seals texts for storage, and opens them again (Fernet: AES-128-CBC with HMAC-SHA256).

    Args:
        secrets: the installation's; what is sealed under none of them does not open.
        label: names the purpose; by default that of webhooks' secrets.
    """

    def __init__(self, secrets: Secrets, label: str = _SEALING_LABEL) -> None:
        self._secrets = secrets
        self._label = label

    def seal(self, text: str) -> bytes:
        """`text` in a form that may be stored; sealing it twice gives two different results."""
        return _fernet(self._secrets.current, self._label).encrypt(text.encode())

    def open(self, sealed: bytes) -> str:
        """The text that was sealed. Raises SealBroken if no secret of the installation sealed it."""
        for secret in self._secrets.known:
            opened = self._opened(secret, sealed)
            if opened is not None:
                return opened
        raise SealBroken(
            "A stored secret can't be opened: it was altered, or DESKWIRE_SECRET (or the secret's file "
            "in the data directory) is not the one it was sealed with."
        )

    def renewed(self, sealed: bytes) -> bytes:
        """The same text under the current secret; as it is if it is that already, or can't be opened."""
        if self._opened(self._secrets.current, sealed) is not None:
            return sealed
        try:
            return self.seal(self.open(sealed))
        except SealBroken:
            return sealed

    def _opened(self, secret: str, sealed: bytes) -> str | None:
        try:
            return _fernet(secret, self._label).decrypt(sealed).decode()
        except InvalidToken:
            return None


@lru_cache(maxsize=16)
def _fernet(secret: str, label: str) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(derived_key(secret, label)))
