"""Secrets at rest: encrypted under keys that are derived from the installation's one secret.

Each purpose has keys of its own, so that what is known of one says nothing about another (ADR 24).
"""

from __future__ import annotations

import base64
import os
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from deskwire.engine.core.secret import Secrets, derived_key

_SEALING_LABEL: Final = "sealing"
_FORM: Final = b"\x01"
"""The first byte of what is sealed today; Fernet, with which versions before 0.2 sealed, begins with another one."""
_SALT_BYTES: Final = 16
_NONCE_BYTES: Final = 12
_LEAST_BYTES: Final = len(_FORM) + _SALT_BYTES + _NONCE_BYTES
_TEXTS_MAX: Final = 1 << 32
"""Texts that one key seals at most, as their nonces are random (NIST SP 800-38D 8.3)."""


class DecryptionFailed(Exception):
    """Sealed text can't be opened: it was altered, or sealed under another installation's secret."""


class Encryption:
    """Seals texts for storage, and opens them again (AES-256-GCM; Fernet for what older versions have sealed).

    Each one seals under a key of its own, derived from the secret and a random salt that stands in what is sealed. So no
    run, node or copy of the process has to know which nonces another one has used.

    Args:
        secrets: the installation's; what is sealed under none of them does not open.
        label: names the purpose; by default that of webhooks' secrets.
    """

    def __init__(self, secrets: Secrets, label: str = _SEALING_LABEL) -> None:
        self._secrets = secrets
        self._label = label
        self._key: _Key | None = None

    def seal(self, text: str) -> bytes:
        """Return `text` in a form that may be stored; sealing it twice gives two different results."""
        return self.seal_bytes(text.encode())

    def seal_bytes(self, plain: bytes) -> bytes:
        """Return `plain` as `seal` does a text."""
        key = self._key
        if key is None or key.left <= 0 or key.secret is not self._secrets.current:
            key = self._key = _Key(self._secrets.current, self._label)
        return key.sealed(plain)

    def open(self, sealed: bytes) -> str:
        """Return the text that was sealed. Raises as `open_bytes`."""
        return self.open_bytes(sealed).decode()

    def open_bytes(self, sealed: bytes) -> bytes:
        """Return what was sealed. Raises SealBroken if no secret of the installation sealed it."""
        for secret in self._secrets.known:
            opened = self._opened(secret, sealed)
            if opened is not None:
                return opened
        raise DecryptionFailed(
            "A stored secret can't be opened: it was altered, or DESKWIRE_SECRET (or the secret's file "
            "in the data directory) is not the one it was sealed with."
        )

    def renewed(self, sealed: bytes) -> bytes:
        """Return the same text under the current secret; as it is if it is that already, or can't be opened."""
        if self._opened(self._secrets.current, sealed) is not None:
            return sealed
        try:
            return self.seal_bytes(self.open_bytes(sealed))
        except DecryptionFailed:
            return sealed

    def _opened(self, secret: str, sealed: bytes) -> bytes | None:
        try:
            if not sealed.startswith(_FORM):
                return _fernet(secret, self._label).decrypt(sealed)
            if len(sealed) < _LEAST_BYTES:
                return None
            salt, nonce = sealed[1 : 1 + _SALT_BYTES], sealed[1 + _SALT_BYTES : _LEAST_BYTES]
            return _aes(secret, self._label, salt).decrypt(nonce, sealed[_LEAST_BYTES:], None)
        except (InvalidToken, InvalidTag):
            return None


class _Key:
    """The key that one `Encryption` seals with; `left` is how many texts more."""

    __slots__ = ("_aes", "_head", "left", "secret")

    def __init__(self, secret: str, label: str) -> None:
        salt = os.urandom(_SALT_BYTES)
        self.secret = secret
        self.left = _TEXTS_MAX
        self._aes = _aes(secret, label, salt)
        self._head = _FORM + salt

    def sealed(self, plain: bytes) -> bytes:
        self.left -= 1
        nonce = os.urandom(_NONCE_BYTES)
        return self._head + nonce + self._aes.encrypt(nonce, plain, None)


@lru_cache(maxsize=64)  # the runs of some days, whose answers are kept
def _aes(secret: str, label: str, salt: bytes) -> AESGCM:
    return AESGCM(derived_key(secret, label, salt))


@lru_cache(maxsize=16)
def _fernet(secret: str, label: str) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(derived_key(secret, label)))
